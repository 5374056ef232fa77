/** All rows of the database as one value for each table, to show that nothing changed. */

import type pg from 'pg';
import { withAdmin } from './database.js';

/** What the engine writes by itself, whoever asks or does not. */
const OWN_TABLES: ReadonlySet<string> = new Set(
  'engine_lease lanes lane_flushes workers change_mark activity step_activity queue_minutes'.split(
    ' ',
  ),
);

export type Snapshot = ReadonlyMap<string, string>;

/**
 * By table: the number of rows and a hash of them, in no order. A key is used by whoever is refused with
 * it, too, which is written down once in a while.
 *
 * @param tenants whose rows are meant, by the policies of row security; absent: all rows
 */
export async function snapshotOf(
  connectionString: string,
  tenants?: readonly string[],
): Promise<Snapshot> {
  return withAdmin(connectionString, async (client) => {
    if (tenants === undefined) return await readTables(client, await conditions(client, false));
    const found = new Map<string, string>();
    for (const tenant of tenants) {
      await client.query("select set_config('engine.tenant', $1, false)", [tenant]);
      for (const [table, rows] of await readTables(client, await conditions(client, true))) {
        found.set(`${table} of ${tenant}`, rows);
      }
    }
    return found;
  });
}

type Rows = { readonly name: string; readonly condition: string };

/** Which rows of which table; a policy that shows all rows to everybody names nobody's. */
async function conditions(client: pg.Client, isOfTenant: boolean): Promise<Rows[]> {
  const { rows } = await client.query<Rows>(
    isOfTenant
      ? `select tablename as name, qual as condition from pg_policies
          where schemaname = 'public' and qual <> 'true' order by 1`
      : "select tablename as name, 'true' as condition from pg_tables where schemaname = 'public' order by 1",
  );
  return rows.filter(({ name }) => !OWN_TABLES.has(name));
}

async function readTables(client: pg.Client, tables: readonly Rows[]): Promise<Snapshot> {
  const found = new Map<string, string>();
  for (const { name, condition } of tables) {
    const { rows } = await client.query<{ rows: string; hash: string | null }>(
      `select count(*)::text as rows,
              md5(string_agg(hash, '' order by hash)) as hash
         from (select md5((to_jsonb(${name}.*) - 'last_used_at')::text) as hash
                 from ${name} where ${condition}) h`,
    );
    found.set(name, `${rows[0]?.rows} rows, ${rows[0]?.hash}`);
  }
  return found;
}

/** The tables whose rows differ. */
export const changedTables = (before: Snapshot, after: Snapshot): string[] =>
  [...after].filter(([name, rows]) => before.get(name) !== rows).map(([name]) => name);
