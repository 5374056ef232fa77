/**
 * Lists tenants. There is no table of tenants: a tenant exists while it owns a row. One index step finds
 * each tenant from the previous one, however many rows it has.
 */

/** Up to `$2` tenants after `$1`. @param tables each has an index that begins with the tenant */
export function tenantsText(tables: readonly string[]): string {
  const step = (place: string) => (table: string) =>
    `(select tenant_id from ${table} where tenant_id > ${place} order by tenant_id limit 1)`;
  /** `least` ignores tables without a further tenant. */
  const after = (place: string) => `least(${tables.map(step(place)).join(', ')})`;
  return (
    `with recursive found(tenant_id, number) as (select ${after('$1::text')}, 1::bigint union all ` +
    `select ${after('found.tenant_id')}, number + 1 from found ` +
    'where tenant_id is not null and number < $2::bigint) ' +
    'select tenant_id from found where tenant_id is not null limit $2::bigint'
  );
}

export type TenantRow = { readonly tenant_id: string };
