/**
 * Checks the tenant of the header x-tenant-id against the tenant in a body, and against the owner of a row. Without
 * the header the tenant is '', which matches every tenant.
 */

import { forbidden, invalid, notFound } from './errors.js';

/** @param place path of the object, such as `filter.` @throws EngineError 403 when the tenants differ */
export function checkTenant(header: string, named: string, place = ''): void {
  if (header !== '' && named !== header) {
    throw forbidden(`${place}tenant_id is not the tenant of x-tenant-id`);
  }
}

/** '' when neither header nor body has a tenant. @throws EngineError 403 when they differ */
export function tenantOf(header: string, named: string | null | undefined): string {
  if (named == null || named === '') return header;
  checkTenant(header, named);
  return named;
}

/** Requires a tenant. @throws EngineError 403 when the tenants differ, 400 without one */
export function eventTenant(header: string, named: string | null | undefined, place = ''): string {
  if (named != null) checkTenant(header, named, place);
  const tenant = named ?? header;
  if (tenant === '') throw invalid(`${place}tenant_id is required without x-tenant-id`);
  return tenant;
}

export function isForeign(row: { readonly tenant_id: string }, tenant: string): boolean {
  return tenant !== '' && row.tenant_id !== tenant;
}

/** Undefined also for a row of another tenant, so that both cases get the same response. */
export function seenBy<Row extends { readonly tenant_id: string }>(
  tenant: string,
  row: Row | undefined,
): Row | undefined {
  return row === undefined || isForeign(row, tenant) ? undefined : row;
}

/** @throws EngineError 404 when the row does not exist or belongs to another tenant */
export function owned<Row extends { readonly tenant_id: string }>(
  row: Row | undefined,
  tenant: string,
  what: string,
): Row {
  const seen = seenBy(tenant, row);
  if (seen === undefined) throw notFound(what);
  return seen;
}
