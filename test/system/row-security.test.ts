/** The second wall between tenants: what Postgres itself keeps from a statement that names no tenant. */

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type pg from 'pg';
import { createPool } from '../../src/db/pool.js';
import { list } from '../../src/db/reads/list.js';
import { createReads, READ_POOL_OPTIONS, type Reads } from '../../src/db/reads.js';
import { prepareRowSecurity, type RowSecurityMode } from '../../src/db/row-security.js';
import { TABLES, type Table } from '../../src/db/tables.js';
import { type Api, startApi, step, type Tenant } from '../helpers/api.js';
import { createTestDatabase, type TestDatabase } from '../helpers/database.js';

let database: TestDatabase;
let api: Api;
let a: Tenant;
let b: Tenant;
let pool: pg.Pool;
let reads: Reads;

before(async () => {
  database = await createTestDatabase();
  const env = { ENGINE_ENCRYPTION_KEY: 'a7'.repeat(32), ENGINE_ROW_SECURITY: 'required' };
  api = await startApi({ database, env });
  [a, b] = [api.tenant(), api.tenant()];
  for (const tenant of [a, b]) await leaveRows(tenant);
  pool = createPool({
    ...READ_POOL_OPTIONS,
    connectionString: database.connectionString,
    applicationName: 'row-security',
    // Each statement follows those of others on its connection.
    connectionsMax: 1,
    onError: () => undefined,
  });
  reads = createReads(pool);
  reads.wallTenants();
});

after(async () => {
  await pool?.end();
  await api?.stop();
  await database?.drop();
});

async function leaveRows(tenant: Tenant): Promise<void> {
  const id = await tenant.run([step('a', 'noop'), step('b', 'outside')]);
  await tenant.task('outside');
  await tenant.signal(id, 'custom:later');
  const failing = await tenant.run([step('a', 'fail', { message: 'no' })]);
  await tenant.until(failing, 'failed');
}

const everything = list<{ tenant_id: string }>({
  columns: 'tenant_id',
  from: 'instances',
  order: 'id',
  toText: ({ tenant_id }) => JSON.stringify(tenant_id),
  cheaper: '',
});

/** Whose instances are shown by a list without a condition, and by a look-up. */
async function ownersSeenBy(reader: Reads): Promise<string[]> {
  const listed = JSON.parse((await reader.page(everything({}))).text) as string[];
  const text = 'select tenant_id from instances';
  const rows = await reader.rows<{ tenant_id: string }>({
    name: 'test_owners',
    text,
    values: [],
    cheaper: '',
  });
  const owners = [...new Set(listed)].sort();
  assert.deepEqual([...new Set(rows.map(({ tenant_id }) => tenant_id))].sort(), owners);
  return owners;
}

test('a statement that forgot to ask for a tenant shows the rows of the one for whom it is read', async () => {
  const both = [a.name, b.name].sort();
  for (let round = 0; round < 2; round += 1) {
    assert.deepEqual(await ownersSeenBy(reads.of(a.name)), [a.name]);
    assert.deepEqual(await ownersSeenBy(reads), both);
    assert.deepEqual(await ownersSeenBy(reads.of(b.name)), [b.name]);
    assert.deepEqual(await ownersSeenBy(reads.of('')), both);
    assert.deepEqual(await ownersSeenBy(reads.of("'; reset role; --")), []);
  }
});

test('a statement that fails leaves a connection that is narrowed anew', async () => {
  const fails = { text: 'select 1 / (count(*) - count(*)) from instances', values: [] };
  for (const tenant of [a.name, '', b.name]) {
    await assert.rejects(reads.of(tenant).rowsOf(fails, ''), { code: 'ENG_INTERNAL' });
    await assert.rejects(reads.of(tenant).rowsOf({ text: 'select nothing', values: [] }, ''));
    assert.deepEqual(await ownersSeenBy(reads.of(a.name)), [a.name]);
    assert.equal((await ownersSeenBy(reads)).length, 2);
  }
});

test('of every table a tenant sees its own rows, and all of them', async () => {
  const counted = [];
  for (const [name, { columns }] of Object.entries<Table>(TABLES)) {
    if (!('tenant_id' in columns || 'instance_id' in columns)) continue;
    const count = async (reader: Reads) => {
      const query = { text: `select count(*)::integer as n from ${name}`, values: [] };
      return (await reader.rowsOf<{ n: number }>(query, ''))[0]?.n ?? 0;
    };
    const [all, ofA, ofB, ofNobody] = [
      await count(reads),
      await count(reads.of(a.name)),
      await count(reads.of(b.name)),
      await count(reads.of('nobody')),
    ];
    assert.deepEqual([ofA + ofB, ofNobody], [all, 0], name);
    if (ofA > 0 && ofB > 0) counted.push(name);
  }
  for (const name of ['instances', 'worker_tasks', 'block_outputs', 'signals', 'dead_letters']) {
    assert.ok(counted.includes(name), name);
  }
});

test('every table that names a tenant or an instance has a policy', async () => {
  const { rows } = await pool.query<{ name: string }>(
    "select polrelid::regclass::text as name from pg_policy where polname = 'own_rows'",
  );
  const guarded = new Set(rows.map(({ name }) => name));
  for (const [name, { columns }] of Object.entries<Table>(TABLES)) {
    if ('tenant_id' in columns || 'instance_id' in columns) assert.ok(guarded.has(name), name);
  }
});

test('the server itself reads for its tenants behind the wall', async () => {
  // It concerns nobody but who reads for one tenant.
  await api.sql.query("create policy nothing on instances as restrictive using (tenant_id = '')");
  const list = await a.request('GET', '/instances');
  assert.deepEqual(list.body, []);
  await api.sql.query('drop policy nothing on instances');
  assert.equal(((await a.request('GET', '/instances')).body as unknown[]).length, 2);
});

test('it is switched off on request, and on again', async () => {
  const other = await createTestDatabase();
  const { connectionString } = other;
  const prepare = (mode: RowSecurityMode, mayChange = true) =>
    prepareRowSecurity({
      mode,
      connectionString,
      ownerUrl: mayChange ? connectionString : undefined,
    });
  assert.equal(await prepare('required', false), undefined);
  assert.match(String(await prepare('off')), /ENGINE_ROW_SECURITY is off/);
  assert.match(String(await prepare('auto', false)), /ENGINE_RUN_MIGRATIONS is false/);
  await assert.rejects(prepare('required', false), /cannot be had: ENGINE_RUN_MIGRATIONS/);
  assert.equal(await prepare('auto'), undefined);
  await other.drop();
});
