/**
 * The tenants. There is no table of them: a tenant exists once it owns a row. Each is found by one index
 * step from the previous one, so that a page costs one step per tenant, however many rows it has.
 */

/**
 * Up to `$2` tenants in the order of their names, after `$1`.
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
