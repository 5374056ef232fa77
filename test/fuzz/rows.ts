/** All rows of the database as one value for each table, to show that nothing changed. */

import pg from 'pg';

/** What the engine writes by itself, whoever asks or does not: its lease, and when keys were used. */
const OWN_TABLES: ReadonlySet<string> = new Set([
  'engine_lease',
  'lanes',
  'workers',
  'change_mark',
]);

export type Snapshot = ReadonlyMap<string, string>;

/** By table: the number of rows and a hash of them, in no order. */
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
              md5(string_agg(md5(t::text), '' order by md5(t::text))) as hash
         from ${name} t`,
    );
    found.set(name, `${rows[0]?.rows} rows, ${rows[0]?.hash}`);
  }
  return found;
}

/** The tables whose rows differ. */
export function changedTables(before: Snapshot, after: Snapshot): string[] {
  return [...after].filter(([name, rows]) => before.get(name) !== rows).map(([name]) => name);
}
