/**
 * The rules of docs/operate/citus.md hold for every statement and migration. Citus is not installed here: a database
 * gets the catalogue tables by which the engine recognises it.
 */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { LOAD_SQL } from '../../actors/shard/loads.js';
import { STORE } from '../../actors/shard/store.js';
import { refusalsOf } from '../../scripts/reference/distributed-rules.js';
import { sourcesIn, textsOf } from '../../scripts/reference/sources.js';
import { inSchema } from '../../src/db/database-url.js';
import { MIGRATIONS_DIR, migrate, readMigrations } from '../../src/db/migrate.js';
import { createClient, createPool } from '../../src/db/pool.js';
import { prepareRowSecurity } from '../../src/db/row-security.js';
import { statementsIn } from '../../src/db/sql-script.js';
import { WriterSession } from '../../src/db/writer-session.js';
import { useSession } from '../helpers/database.js';
import { tapStatements } from '../helpers/statements.js';

const MIGRATIONS = readMigrations(MIGRATIONS_DIR);
/** Without those of the directory, which is never distributed. */
const STATEMENTS = [
  ...['src', 'actors', 'cli'].flatMap(sourcesIn).flatMap(textsOf),
  ...STORE.statements.map(({ name, text }) => [name, text] as const),
  ...Object.entries(LOAD_SQL),
  ...MIGRATIONS.flatMap(({ name, sql }) => statementsIn(sql).map((text) => [name, text] as const)),
].filter(([, text]) => !text.includes('cluster.'));

test('no statement of the program breaks a rule of distributed schemas', () => {
  const found = STATEMENTS.flatMap(([name, text]) =>
    refusalsOf(text).map((refusal) => `${name}: ${refusal}: ${text.trim()}`),
  );
  assert.deepEqual(found, []);
  const refused = [
    'update a set b = 1 returning now()',
    'with c as (update a set b = 1 returning (b), b::text) select 1 from c',
    'insert into a values (1) on conflict (b) do update set c = now() returning b',
    'update a set b = random()',
    'insert into a select 1 where not exists (select from b)',
    'select pg_try_advisory_lock(1, b) from a',
  ];
  for (const text of refused) assert.equal(refusalsOf(text).length, 1, text);
});

test('SQL text is split at semicolons outside of quotes and comments', () => {
  const kept = [
    ...["select ';', 'it''s;', E'\\';', e'\\\\'", 'select ";""" from "a;b"'],
    ...['do $$ begin; end; $$', 'do $a_1$ $$;$$ $b$;$b$ $a_1$', 'select a$b$c, 1 as d$b$e'],
    ...["select 'e'';' || 'E;'", 'select $1::text || $2'],
  ];
  const text = ` -- a; b\n${kept.join(';\n/* c; /* d; */ ; */ ')} ;; -- e;`;
  assert.deepEqual(statementsIn(text), kept);
  assert.deepEqual(statementsIn('a (b, -- c; d\n e)'), ['a (b,  \n e)']);
  assert.deepEqual(statementsIn('/* nothing; */ -- at all;'), []);
});

describe('in a distributed schema', () => {
  const COLUMNS = `
    select table_name, column_name, data_type from information_schema.columns
    where table_schema = $1 order by 1, 2`;
  const { database, client } = useSession(async () => {
    for (const text of [
      'set allow_system_table_mods = on',
      `insert into pg_extension (oid, extname, extowner, extnamespace, extrelocatable, extversion)
       values (99999, 'citus', 10, 11, false, '13.2')`,
      'create table pg_catalog.pg_dist_schema (schemaid oid)',
      'create table pg_catalog.pg_dist_partition (logicalrelid regclass)',
      'create schema east',
      "insert into pg_dist_schema values ('east'::regnamespace)",
    ]) {
      await client.query(text);
    }
  });
  const url = (schema: string) => inSchema(database.connectionString, schema);

  test('migrations run statement by statement and create no policies, and row level security stays off', async () => {
    const tap = await tapStatements(url('east'));
    await migrate(tap.url);
    await tap.stop();
    const sent = tap.take().map(({ text }) => statementsIn(text));
    assert.ok(sent.length > MIGRATIONS.length);
    assert.ok(sent.every(({ length }) => length < 2));
    const { rows: policies } = await client.query(
      "select from pg_policy join pg_class c on c.oid = polrelid where relnamespace = 'east'::regnamespace",
    );
    assert.equal(policies.length, 0);
    const { rows: columns } = await client.query(COLUMNS, ['public']);
    assert.deepEqual((await client.query(COLUMNS, ['east'])).rows, columns);
    const prepared = (mode: 'auto' | 'required') =>
      prepareRowSecurity({
        store: STORE,
        mode,
        connectionString: url('east'),
        ownerUrl: url('east'),
      });
    assert.match(String(await prepared('auto')), /^Citus distributes the schema/);
    await assert.rejects(prepared('required'), /cannot be had: Citus distributes the schema/);
    // A schema that is no longer distributed still lacks its policies.
    await client.query('delete from pg_dist_schema');
    assert.match(String(await prepared('auto')), /^tables without a policy: \d\d/);
  });

  test('no generic plans are forced, as they are elsewhere', async () => {
    for (const [schema, mode] of [
      ['east', 'auto'],
      ['public', 'force_generic_plan'],
    ] as const) {
      await client.query('delete from pg_dist_partition');
      await client.query("insert into pg_dist_partition values ('east.lanes')");
      const options = { connectionString: url(schema), applicationName: 'distributed' };
      const ofShard = { connectionsMax: 1, isPlannedOnce: true, onError: () => undefined };
      const pool = createPool({ ...options, ...ofShard });
      const writer = createClient(options);
      const session = await WriterSession.open(writer, STORE.statements, () => undefined);
      for (const one of [pool, writer]) {
        const { rows } = await one.query('show plan_cache_mode');
        assert.deepEqual(rows, [{ plan_cache_mode: mode }], schema);
      }
      session.destroy();
      await pool.end();
    }
  });
});
