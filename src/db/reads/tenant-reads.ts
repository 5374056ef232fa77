/**
 * The tenants that there are. There is no table of them: a tenant is there once anything is its. Each is found by one
 * step into the indexes that begin with the tenant, from the one before on, so that a page costs as many steps as it
 * has tenants, however much these have. Reads only.
 */

import { pageCursor, placeIn } from '../../core/page-cursor.js';
import { invalid } from '../../errors.js';
import type { TableName } from '../tables.js';
import { lookup } from './lookup.js';
import type { PageRequest } from './reader.js';

/** Whoever has anything at all has something in one of these. */
const TABLES = [
  'sequences',
  'instances',
  'api_keys',
  'tenant_limits',
] as const satisfies readonly TableName[];

/** `least` passes over the tables that have no further one. */
const after = (place: string) =>
  `least(${TABLES.map(
    (table) =>
      `(select tenant_id from ${table} where tenant_id > ${place} order by tenant_id limit 1)`,
  ).join(', ')})`;

/** As many as `$2`, in the order of their names, from the one after `$1` on. */
export const TENANTS_TEXT =
  `with recursive found(tenant_id, number) as (select ${after('$1::text')}, 1::bigint union all ` +
  `select ${after('found.tenant_id')}, number + 1 from found ` +
  'where tenant_id is not null and number < $2::bigint) ' +
  'select tenant_id from found where tenant_id is not null limit $2::bigint';

/** The same for who needs no page of it: how many is `$2`. */
export const tenantsAfter = lookup<TenantRow>('reads_tenants_after', TENANTS_TEXT);

const ORDER = 'tenants.tenant_id';

interface TenantRow {
  readonly tenant_id: string;
}

/** `Tenant` records. @throws EngineError 400 for a cursor of another list */
export function tenantList(asked: {
  readonly limit: number;
  readonly cursor?: string | undefined;
}): PageRequest<TenantRow> {
  const place = asked.cursor === undefined ? [''] : placeIn(ORDER, ['text'], asked.cursor);
  if (place === undefined) {
    throw invalid('cursor is not one that an earlier page of this list gave');
  }
  return {
    query: { text: TENANTS_TEXT, values: [...place, asked.limit] },
    toText: (row) => JSON.stringify(row),
    cheaper: 'ask for a smaller limit',
    cursorAfter: ({ tenant_id }) => pageCursor(ORDER, [tenant_id]),
  };
}
