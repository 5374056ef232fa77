/** The tables as data are those of a migrated database, and the SQL that follows from them is committed. */

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { STORE } from '../../actors/shard/store.js';
import { statementsText } from '../../src/db/store.js';
import { columnType } from '../../src/db/table.js';
import { useSession } from '../helpers/database.js';
import { TABLES } from '../helpers/store.js';

const { client } = useSession();

/** The rest of the engine's own book-keeping; `lanes` is in the data for the simulation. */
const NOT_OF_ACTORS = ['engine_lease', 'schema_migrations', 'tenant_moves'];

const TYPE_NAMES: Readonly<Record<string, string>> = { timestamptz: 'timestamp with time zone' };

test('every table has the columns, the key and the unique indexes that the migrations give it', async () => {
  const columns = await client.query<{ name: string; columns: string[] }>(
    `select table_name as name,
        array_agg(column_name || ' ' || data_type || case when is_nullable = 'YES' then '?' else '' end
          order by column_name)::text[] as columns
      from information_schema.columns where table_schema = 'public' group by 1`,
  );
  const indexes = await client.query<{ name: string; indexes: string[] }>(
    `select c.relname as name, array_agg(
        case when i.indisprimary then 'key' else x.relname end || ' ' || (
          select string_agg(a.attname, ' ' order by k.at) from unnest(i.indkey) with ordinality k(attnum, at)
          join pg_attribute a on a.attrelid = c.oid and a.attnum = k.attnum)
        order by x.relname)::text[] as indexes
      from pg_index i join pg_class c on c.oid = i.indrelid join pg_class x on x.oid = i.indexrelid
      join pg_namespace n on n.oid = c.relnamespace
      where i.indisunique and n.nspname = 'public' group by 1`,
  );
  const found = new Map(columns.rows.map((row) => [row.name, row.columns]));
  const keys = new Map(indexes.rows.map((row) => [row.name, row.indexes]));
  const seen = [...found.keys()].filter((name) => !NOT_OF_ACTORS.includes(name)).sort();
  assert.deepEqual(seen, Object.keys(TABLES).sort());
  for (const [name, table] of Object.entries(TABLES)) {
    const typed = Object.keys(table.columns).map((column) => {
      const { base, isNullable } = columnType(table, column);
      return `${column} ${TYPE_NAMES[base] ?? base}${isNullable ? '?' : ''}`;
    });
    assert.deepEqual(typed.sort(), found.get(name)!.sort(), name);
    const unique = Object.entries(table.unique ?? {}).map(([index, of]) =>
      [index, ...of].join(' '),
    );
    const expected = [['key', ...table.key].join(' '), ...unique];
    assert.deepEqual(expected.sort(), keys.get(name)!.sort(), name);
  }
});

test('docs/statements.sql is what the writer sends: npm run generate writes it', () => {
  assert.ok(
    readFileSync('docs/statements.sql', 'utf8') === statementsText(STORE),
    'docs/statements.sql is old',
  );
});
