/** The runner of migrations, on databases that are empty, current, newer, damaged, or contended. */

import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import pg from 'pg';
import { IS_OPEN, OPEN_TASKS, TASKS } from '../../actors/instance/old-tables.js';
import {
  expectSchema,
  MIGRATIONS_DIR,
  migrate,
  OWNERSHIP_VERSION,
  readMigrations,
  SchemaError,
} from '../../src/db/migrate.js';
import { createTestDatabase, startPostgres, type TestDatabase } from '../helpers/database.js';

let database: TestDatabase;
let client: pg.Client;
/** A folder of migrations that the test writes itself; 0000 is the real one. */
let dir: string;

beforeEach(async () => {
  database = await createTestDatabase({ isMigrated: false });
  client = new pg.Client({ connectionString: database.connectionString });
  await client.connect();
  dir = mkdtempSync(path.join(tmpdir(), 'migrations-'));
  put('0000_engine.sql', readMigrations(MIGRATIONS_DIR)[0]!.sql);
  put('0001_one.sql', 'create table one (id integer primary key);');
});

afterEach(async () => {
  await client.end();
  await database.drop();
  rmSync(dir, { recursive: true });
});

/** Applies the migrations of the test's own folder. */
const run = (upTo?: number) => migrate(database.connectionString, dir, upTo);
const put = (file: string, sql: string) => writeFileSync(path.join(dir, file), sql);

async function applied(): Promise<string[]> {
  const { rows } = await client.query('select name from schema_migrations order by version');
  return rows.map(({ name }) => name);
}

async function tableExists(name: string): Promise<boolean> {
  const { rows } = await client.query('select to_regclass($1) is not null as found', [name]);
  return rows[0].found;
}

test('the migrations of the program apply to an empty database, and the schema is as expected', async () => {
  const names = await migrate(database.connectionString);
  assert.deepEqual(names, await applied());
  assert.equal(names.length, readMigrations(MIGRATIONS_DIR).length);
  await expectSchema(database.connectionString);
});

test('the migrations of the program apply to Postgres 15', async () => {
  const server = await startPostgres({ major: 15 });
  try {
    await expectSchema((await server.createDatabase()).connectionString);
  } finally {
    await server.stop();
  }
});

test('a task that was claimed before its claim lay with its place in the queue is claimed still', async () => {
  await migrate(database.connectionString, MIGRATIONS_DIR, 22);
  const [claimed, waiting, ended] = ['c', 'd', 'e'].map(
    (end) => `01950000-0000-7000-8000-00000000000${end}`,
  );
  const entry = { event: 'claimed', claim_epoch: 3, worker_id: 'w' };
  const insert =
    'insert into worker_tasks (id, instance_id, tenant_id, block_id, node, iteration, handler_name, ' +
    'params, attempt, priority, state, worker_id, claim_epoch, claimed_at, heartbeat_at, ' +
    'checkpoint_seq, history, created_at) ' +
    "values ($1, $1, 't', 'a', 0, '', 'h', '{}', 0, 1, $2, $3, $4, $5, $5, 2, $6, now())";
  const history = JSON.stringify([entry]);
  await client.query(insert, [claimed, 'claimed', 'w', 3, '2026-01-01T00:00:00Z', history]);
  await client.query(insert, [waiting, 'pending', null, 3, null, history]);
  await client.query(insert, [ended, 'completed', 'w', 3, '2026-01-01T00:00:00Z', history]);
  await client.query(
    'insert into open_tasks (task_id, instance_id, tenant_id, handler_name, rank, created_at) ' +
      "select id, id, 't', 'h', 2, created_at from worker_tasks where state <> 'completed'",
  );
  const columns =
    'id, state, worker_id, claim_epoch, claimed_at, heartbeat_at, checkpoint_seq, history';
  const stood = await client.query(`select ${columns} from worker_tasks order by id`);
  await migrate(database.connectionString);
  const stands = await client.query(`select ${columns} from ${TASKS} t order by id`);
  assert.deepEqual(stands.rows, stood.rows);
  const free = await client.query(
    `select id from ${OPEN_TASKS} o where ${IS_OPEN} and claimed_at is null`,
  );
  assert.deepEqual(free.rows, [{ id: waiting }]);
});

const FILL_INSTANCES = `insert into instances (id, sequence_id, tenant_id, namespace, state, priority, timezone,
    metadata, data, config, context_audit, runtime, execution, signal_count, audit_count, created_at, updated_at,
    next_fire_at, data_patch, end_outputs)
  select gen_random_uuid(), gen_random_uuid(), 't', 'n', 'waiting', 1, 'UTC', '{}', '{"a":1}', '{}', '[]',
    '{"attempt":0}', '{"t":1}', 2, 3, now(), now(), now(), '{"a":2}', '[]' from generate_series(1, $1::int)`;

/** Whether `state` lies behind what stays as it is. */
async function changesLast(): Promise<boolean> {
  const { rows } = await client.query<{ name: string }>(
    `select attname as name from pg_attribute
      where attrelid = 'instances'::regclass and attnum > 0 order by attnum`,
  );
  const names = rows.map(({ name }) => name);
  return names.indexOf('state') > names.indexOf('failure');
}

test('the columns of instances that change are moved behind the others, with what they hold', async () => {
  await migrate(database.connectionString, MIGRATIONS_DIR, 41);
  await client.query(FILL_INSTANCES, [3]);
  const text = 'select to_jsonb(i) as row from instances i order by id';
  const stood = await client.query(text);
  await migrate(database.connectionString);
  assert.deepEqual((await client.query(text)).rows, stood.rows);
  assert.equal(await changesLast(), true);
});

test('a table with more instances than are written again in seconds keeps the order of its columns', async () => {
  await migrate(database.connectionString, MIGRATIONS_DIR, 41);
  await client.query(FILL_INSTANCES, [100_001]);
  await migrate(database.connectionString);
  assert.equal(await changesLast(), false);
});

test('a second run applies nothing, and a new file alone', async () => {
  assert.deepEqual(await run(), ['0000_engine', '0001_one']);
  assert.deepEqual(await run(), []);
  put('0002_two.sql', 'create table two (id integer);');
  assert.deepEqual(await run(), ['0002_two']);
  assert.equal(readMigrations(dir).at(-1)?.version, 2);
});

test('ownership needs only the first file, and leaves the rest to the owner', async () => {
  await run(OWNERSHIP_VERSION);
  await run(OWNERSHIP_VERSION);
  assert.deepEqual(await applied(), ['0000_engine']);
  assert.equal(await tableExists('one'), false);
});

test('a database newer than the program is refused with a message that says so', async () => {
  put('0002_two.sql', 'create table two (id integer);');
  await run();
  rmSync(path.join(dir, '0002_two.sql'));
  const newer = (error: unknown) =>
    error instanceof SchemaError && /newer than this program: it has 0002_two/.test(error.message);
  await assert.rejects(run(), newer);
  await assert.rejects(run(OWNERSHIP_VERSION), newer);
  await assert.rejects(expectSchema(database.connectionString, dir), newer);
});

test('a file that was changed after it had been applied is refused', async () => {
  await run();
  put('0001_one.sql', 'create table one (id bigint primary key);');
  put('0002_two.sql', 'create table two (id integer);');
  await assert.rejects(run(), /0001_one was changed after it had been applied/);
  assert.equal(await tableExists('two'), false);
});

test('line ends do not change what a file is', async () => {
  await run();
  put('0000_engine.sql', readMigrations(MIGRATIONS_DIR)[0]!.sql.replaceAll('\n', '\r\n'));
  assert.deepEqual(await run(), []);
});

test('a database of another line of the program is refused', async () => {
  await run();
  rmSync(path.join(dir, '0001_one.sql'));
  put('0002_two.sql', 'create table two (id integer);');
  await assert.rejects(run(), /belongs to another line/);
});

test('a file that fails leaves nothing of itself and keeps those before it', async () => {
  put('0002_two.sql', 'create table two (id integer); select 1 / 0;');
  await assert.rejects(run(), /migration 0002_two failed: division by zero/);
  assert.equal(await tableExists('two'), false);
  assert.deepEqual(await applied(), ['0000_engine', '0001_one']);
  put('0002_two.sql', 'create table two (id integer);');
  assert.deepEqual(await run(), ['0002_two']);
});

test('programs that start together apply every file once', async () => {
  const runs = await Promise.all(Array.from({ length: 5 }, () => run()));
  assert.deepEqual(runs.flat().sort(), ['0000_engine', '0001_one']);
});

test('without the right to migrate, a schema that is behind is refused and stays as it is', async () => {
  await assert.rejects(
    expectSchema(database.connectionString, dir),
    /schema is empty, this program needs 0001_one/,
  );
  assert.equal(await tableExists('schema_migrations'), false);
  await run(OWNERSHIP_VERSION);
  await assert.rejects(
    expectSchema(database.connectionString, dir),
    /is 0000_engine, this program needs 0001_one/,
  );
});

test('two files of one number are refused', async () => {
  put('0001_other.sql', 'select 1;');
  await assert.rejects(run(), /two migrations have the number of 0001_other/);
});
