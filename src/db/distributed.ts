/**
 * Detects whether Citus distributes the schema of a session, which restricts its SQL (docs/operate/citus.md). Checked
 * once per connection. Restrictions that cost nothing on a plain Postgres apply to every statement.
 */

import type pg from 'pg';

/** No row without the extension. Citus distributes schemas since version 12. */
export const KNOWS_SCHEMAS = `
select to_regclass('pg_catalog.pg_dist_schema') is not null as knows from pg_extension where extname = 'citus'`;

/** A distributed schema has a row before it has tables; tables may also be distributed one by one. */
const IS_DISTRIBUTED = `
with own as (select oid from pg_namespace where nspname = current_schema())
select exists (select from pg_dist_schema where schemaid in (select oid from own))
  or exists (
    select from pg_dist_partition join pg_class c on c.oid = logicalrelid
    where c.relnamespace in (select oid from own)) as is`;

export async function isDistributed(client: pg.ClientBase): Promise<boolean> {
  const citus = await client.query<{ readonly knows: boolean }>(KNOWS_SCHEMAS);
  if (citus.rows[0]?.knows !== true) return false;
  const { rows } = await client.query<{ readonly is: boolean }>(IS_DISTRIBUTED);
  return rows[0]?.is === true;
}

/** Turns off generic plans in a distributed schema: Citus cannot distribute many of them. */
export async function allowCustomPlans(client: pg.ClientBase): Promise<void> {
  if (await isDistributed(client)) await client.query('set plan_cache_mode = auto');
}
