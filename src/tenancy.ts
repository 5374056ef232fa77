/**
 * Whose thing it is: the tenant of the header x-tenant-id beside one that a body names, and beside the
 * owner of a row. Of a header that is absent the tenant is '', which stands for any.
 */

import { forbidden, notFound } from './errors.js';

/**
 * @param place of the member `tenant_id`, such as `filter.`
 * @throws EngineError 403 when the body names another tenant than the header
 */
export function checkTenant(header: string, named: string, place = ''): void {
  if (header !== '' && named !== header) {
    throw forbidden(`${place}tenant_id is not the tenant of x-tenant-id`);
  }
}

/**
 * The tenant of a request whose body may name it; '' when neither does.
 *
 * @throws EngineError 403 when they name two
 */
export function tenantOf(header: string, named: string | null | undefined): string {
  if (named == null || named === '') return header;
  checkTenant(header, named);
  return named;
}

export function isForeign(row: { readonly tenant_id: string }, tenant: string): boolean {
  return tenant !== '' && row.tenant_id !== tenant;
}

/**
 * @param what is told to be nowhere
 * @throws EngineError 404 when there is none, or only one of another tenant
 */
export function owned<Row extends { readonly tenant_id: string }>(
  row: Row | undefined,
  tenant: string,
  what: string,
): Row {
  if (row === undefined || isForeign(row, tenant)) throw notFound(what);
  return row;
}
