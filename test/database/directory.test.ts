/** The directory of a cluster on a real Postgres: what two that meet in it agree on, and what it refuses. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Directory, DirectoryError, makeDirectory } from '../../src/cluster/directory.js';
import { eventually } from '../helpers/api.js';
import { useDirectory } from '../helpers/cluster.js';
import { column } from '../helpers/columns.js';

const cell = (name: string) => ({
  name,
  database_url: 'postgresql://db/app',
  engines: ['127.0.0.1:1'],
  state: 'open' as const,
});

const { database, directory } = useDirectory(async () => {
  await assert.rejects(directory.check(), DirectoryError);
  await Promise.all([1, 2, 3].map(() => makeDirectory(database.connectionString)));
  await directory.check();
  await directory.createCell(cell('east'));
  await directory.createCell(cell('west'));
});

test('a directory of another version is refused', async () => {
  await directory.transaction((client) =>
    client.query('update cluster.revision set schema_version = schema_version + 1'),
  );
  await assert.rejects(directory.check(), /has version 3 and this program knows 2/);
  await directory.transaction((client) =>
    client.query('update cluster.revision set schema_version = schema_version - 1'),
  );
});

test('a directory of an earlier program is brought up to date', async () => {
  await directory.transaction(async (client) => {
    await client.query('update cluster.revision set schema_version = 1');
    await client.query('alter table cluster.cells drop column joined_at, drop column found_at');
  });
  await directory.check();
  assert.equal((await directory.cell('east'))?.found_at, null);
});

test('a cell has one row, however often it is created', async () => {
  assert.equal(await directory.createCell(cell('east')), undefined);
  assert.deepEqual(column(await directory.cells(), 'name'), ['east', 'west']);
  assert.equal((await directory.changeCell('west', { state: 'closed' }))?.state, 'closed');
  assert.equal((await directory.changeCell('west', { state: 'open' }))?.state, 'open');
  assert.equal(await directory.changeCell('nowhere', { state: 'open' }), undefined);
});

test('cells that meet a tenant at the same time settle it once, and are told the same', async () => {
  const tenants = Array.from({ length: 50 }, (_, at) => `met-${at}`);
  const told = await Promise.all(
    ['east', 'west', 'east', 'west'].map((name) => directory.settle(tenants, name, 'hash')),
  );
  for (const tenant of tenants) {
    const cells = new Set(told.map((found) => found.get(tenant)));
    assert.equal(cells.size, 1);
    assert.ok(['east', 'west'].includes([...cells][0] as string));
  }
});

test('a closed cell takes those that are placed there, and nobody by a hash', async () => {
  await directory.changeCell('west', { state: 'closed' });
  assert.equal((await directory.settle(['late'], 'west', 'hash')).get('late'), undefined);
  assert.equal((await directory.settle(['late'], 'nowhere', 'hand')).get('late'), undefined);
  assert.equal((await directory.settle(['late'], 'west', 'hand')).get('late'), 'west');
  assert.equal((await directory.settle(['late'], 'east', 'hand')).get('late'), 'west');
  const placed = await directory.placement('late');
  assert.equal(placed?.placed_by, 'hand');
  await directory.changeCell('west', { state: 'open' });
});

test('whoever waits for a cell to be closed is not settled there', async () => {
  let settling: ReturnType<Directory['settle']> | undefined;
  await directory.transaction(async (client) => {
    await client.query('update cluster.revision set number = number + 1');
    settling = directory.settle(['waits'], 'west', 'hash');
    await eventually(async () => {
      const { rows } = await client.query<{ waiting: number }>(
        `select count(*)::int as waiting from pg_stat_activity
         where wait_event_type = 'Lock' and datname = current_database()`,
      );
      assert.equal(rows[0]?.waiting, 1);
    });
    await client.query("update cluster.cells set state = 'closed' where name = 'west'");
  });
  assert.equal((await settling)?.get('waits'), undefined);
  await directory.changeCell('west', { state: 'open' });
});

test('while a cell with engines was not looked through nobody is settled by a hash', async () => {
  const settledIn = async (tenant: string, by: 'hash' | 'hand') =>
    (await directory.settle([tenant], 'west', by)).get(tenant);
  await directory.markCell('east', 'joined');
  assert.equal(await settledIn('early', 'hash'), undefined);
  assert.equal(await settledIn('by-hand', 'hand'), 'west');
  await directory.markCell('east', 'searched');
  assert.equal(await settledIn('early', 'hash'), 'west');
  await directory.markCell('east', 'unsearched');
  assert.equal(await settledIn('later', 'hash'), undefined);
  await directory.markCell('east', 'searched');
});

test('what was placed is read from a revision on, in pages that end anywhere', async () => {
  const known = await directory.revision();
  await directory.settle(['p1', 'p2', 'p3'], 'east', 'found');
  await directory.settle(['p4'], 'west', 'hand');
  const seen: string[] = [];
  for (let after = { revision: known, tenant_id: '' }; ; ) {
    const rows = await directory.placedSince(after, 2);
    seen.push(...column(rows, 'tenant_id'));
    const last = rows.at(-1);
    if (last === undefined) break;
    after = last;
  }
  assert.deepEqual(seen, ['p1', 'p2', 'p3', 'p4']);
  const inWest = await directory.placements({ after: 'p', limit: 10, cell: 'west' });
  assert.deepEqual(column(inWest, 'tenant_id'), ['p4']);
});

test('whoever listens is told the revision of each change', async () => {
  const told: number[] = [];
  let broken = 0;
  const stop = await directory.listen(
    (revision) => told.push(revision),
    () => {
      broken += 1;
    },
  );
  await directory.settle(['heard'], 'east', 'hash');
  const revision = await directory.revision();
  await eventually(() => assert.equal(told.at(-1), revision));
  await directory.transaction((client) =>
    client.query(
      `select pg_terminate_backend(pid) from pg_stat_activity
       where application_name = 'test listens' and datname = current_database()`,
    ),
  );
  await eventually(() => assert.equal(broken, 1));
  stop();
});

test('a cell is removed once it has no tenants, engines or moves', async () => {
  await directory.createCell(cell('north'));
  const says = {
    id: 'e1',
    cell: 'north',
    address: 'a:1',
    role: 'owner' as const,
    version: '1.0.0',
    lag_ms: 3,
    migration: 32,
    key_ids: ['k1'],
  };
  await directory.report(says);
  assert.equal(await directory.removeCell('north'), 'has engines');
  await directory.settle(['n1'], 'north', 'hand');
  assert.equal(await directory.removeCell('north'), 'has tenants');
  await directory.transaction(async (client) => {
    await client.query("delete from cluster.placements where cell = 'north'");
    await client.query(
      `insert into cluster.moves (id, tenant_id, from_cell, to_cell, state)
       values ('0190b5c0-0000-7000-8000-000000000001', 'n1', 'north', 'east', 'copying')`,
    );
  });
  assert.equal(await directory.removeCell('north'), 'is moved');
  assert.equal((await directory.counts()).get('north')?.moves_under_way, 1);
  assert.equal((await directory.moves({ limit: 5, isUnderWay: true }))[0]?.tenant_id, 'n1');
  await directory.transaction((client) =>
    client.query("update cluster.moves set state = 'given_up', ended_at = now()"),
  );
  assert.deepEqual(await directory.moves({ limit: 5, isUnderWay: true }), []);
  const [engine] = await directory.engines();
  const seen = { ...engine, seen_at: '', silent_ms: 0 };
  assert.deepEqual(seen, { ...says, seen_at: '', silent_ms: 0 });
  await directory.forgetEngine('e1');
  assert.equal(await directory.removeCell('north'), undefined);
  assert.equal(await directory.removeCell('north'), 'missing');
  assert.equal((await directory.moves({ limit: 5 })).length, 1);
});
