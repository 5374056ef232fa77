/** All rows of the database as one value for each table, to show that nothing changed. */

import pg from 'pg';

/** What the engine writes by itself, whoever asks or does not. */
const OWN_TABLES: ReadonlySet<string> = new Set([
  'engine_lease',
  'lanes',
  'lane_flushes',
  'workers',
  'change_mark',
  'activity',
]);

export type Snapshot = ReadonlyMap<string, string>;

/**
 * By table: the number of rows and a hash of them, in no order. A key is used by whoever is refused with
 * it, too, which is written down once in a while.
 */
export async function snapshotOf(connectionString: string): Promise<Snapshot> {
  const client = new pg.Client({ connectionString });
  await client.connect();
  try {
    return await readTables(client);
  } finally {
    await client.end();
  }
}

async function readTables(client: pg.Client): Promise<Snapshot> {
  const { rows: tables } = await client.query<{ name: string }>(
    "select tablename as name from pg_tables where schemaname = 'public' order by 1",
  );
  const found = new Map<string, string>();
  for (const { name } of tables.filter((table) => !OWN_TABLES.has(table.name))) {
    const { rows } = await client.query<{ rows: string; hash: string | null }>(
      `select count(*)::text as rows,
              md5(string_agg(hash, '' order by hash)) as hash
         from (select md5((to_jsonb(t) - 'last_used_at')::text) as hash from ${name} t) h`,
    );
    found.set(name, `${rows[0]?.rows} rows, ${rows[0]?.hash}`);
  }
  return found;
}

/** The tables whose rows differ. */
export function changedTables(before: Snapshot, after: Snapshot): string[] {
  return [...after].filter(([name, rows]) => before.get(name) !== rows).map(([name]) => name);
}
