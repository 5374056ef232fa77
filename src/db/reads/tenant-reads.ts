/**
 * The tenants that there are. There is no table of them: a tenant is there once anything is its. Each is found by one
 * step into the indexes that begin with the tenant, from the one before on, so that a page costs as many steps as it
 * has tenants, however much these have. Reads only.
 */

/**
 * As many as `$2`, in the order of their names, from the one after `$1` on.
 *
 * @param tables each has an index that begins with the tenant
 */
export function tenantsText(tables: readonly string[]): string {
  const step = (place: string) => (table: string) =>
    `(select tenant_id from ${table} where tenant_id > ${place} order by tenant_id limit 1)`;
  /** `least` passes over the tables that have no further one. */
  const after = (place: string) => `least(${tables.map(step(place)).join(', ')})`;
  return (
    `with recursive found(tenant_id, number) as (select ${after('$1::text')}, 1::bigint union all ` +
    `select ${after('found.tenant_id')}, number + 1 from found ` +
    'where tenant_id is not null and number < $2::bigint) ' +
    'select tenant_id from found where tenant_id is not null limit $2::bigint'
  );
}

export interface TenantRow {
  readonly tenant_id: string;
}
