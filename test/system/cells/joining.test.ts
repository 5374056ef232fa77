/** How engines come into a cluster: what they refuse, and what they do with tenants that were there before. */

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { eventually, startApi, step } from '../../helpers/api.js';
import { expectStatus } from '../../helpers/client.js';
import { type Cluster, startCluster, tenantLedTo } from '../../helpers/cluster.js';
import { column } from '../../helpers/columns.js';
import { startEngine } from '../../helpers/engine.js';

let cluster: Cluster;

before(async () => {
  cluster = await startCluster();
});

after(() => cluster?.stop());

const refusalOf = async (env: Record<string, string>) =>
  startEngine({ databaseUrl: cluster.database.connectionString, env }).then(
    async (engine) => {
      await engine.stop();
      return 'it started';
    },
    (error: Error) => error.message,
  );

test('an engine whose cell the cluster does not know does not start, and names the command', async () => {
  assert.match(
    await refusalOf(cluster.envOf('nowhere')),
    /no cell nowhere: make it with durable-workflow-engine cells create nowhere --database URL/,
  );
});

test('an engine does not start where the database has no directory', async () => {
  const env = { ...cluster.envOf('east'), ENGINE_CLUSTER_URL: empty() };
  assert.match(await refusalOf(env), /no directory of a cluster: cells create makes it/);
});

/** Another database of the same server. */
function empty(): string {
  return Object.assign(new URL(cluster.database.connectionString), { pathname: '/postgres' }).href;
}

test('requests must name their tenant in a cluster', async () => {
  const env = {
    ...cluster.envOf('east'),
    ENGINE_REQUIRE_TENANT_HEADER: 'false',
    ENGINE_ALLOW_NO_TENANT_ISOLATION: 'true',
  };
  assert.match(await refusalOf(env), /exclude one another/);
});

test('tenants that a cell had before its cluster are settled there before it serves', async () => {
  const alone = await startApi({
    database: cluster.database,
    env: { ENGINE_DB_SCHEMA: 'older' },
  });
  const names = ['old-1', 'old-2', 'old-3'];
  for (const name of names) await alone.tenant(name).sequence([step('a', 'noop')]);
  await alone.stop();
  const older = await cluster.start('older');
  const placed = await cluster.directory.placements({ after: '', limit: 10 });
  assert.deepEqual(column(placed, 'tenant_id'), names);
  assert.deepEqual(new Set(column(placed, 'placed_by')), new Set(['found']));
  expectStatus(await older.tenant('old-1').get('/sequences'), 200);
});

test('an older cell is looked through before it serves although one of its tenants is settled', async () => {
  const alone = await startApi({ database: cluster.database, env: { ENGINE_DB_SCHEMA: 'begun' } });
  const names = ['begun-1', 'begun-2'];
  for (const name of names) await alone.tenant(name).sequence([step('a', 'noop')]);
  // Nothing of it is an instance, a sequence, a key or a limit.
  await alone.sql.query(
    "insert into begun.rate_limits values (gen_random_uuid(), 'begun-3', 'k', 1, 1, now())",
  );
  await alone.stop();
  const { directory, database } = cluster;
  const { connectionString: database_url } = database;
  await directory.createCell({ name: 'begun', database_url, engines: [], state: 'open' });
  await directory.settle(['begun-1'], 'begun', 'hand');
  await cluster.start('begun');
  const placed = await directory.placements({ after: '', limit: 10, cell: 'begun' });
  assert.deepEqual(column(placed, 'tenant_id'), [...names, 'begun-3']);
  assert.notEqual((await directory.cell('begun'))?.found_at, null);
});

test('while a cell with engines was not looked through nobody new is settled', async () => {
  const { directory, database } = cluster;
  const { connectionString: database_url } = database;
  const settles = await cluster.start('settles');
  await directory.createCell({ name: 'late', database_url, engines: [], state: 'closed' });
  const cells = (await directory.cells()).filter(({ state }) => state === 'open');
  const name = tenantLedTo('settles', column(cells, 'name'), 'newcomer');
  const write = () =>
    settles.tenant(name).post('/sequences', settles.tenant(name).definition([step('a', 'noop')]));
  // As its first engine does when it joins.
  await directory.noteJoined('late');
  const waits = await eventually(async () => {
    const reply = await write();
    expectStatus(reply, 503);
    return reply;
  });
  assert.equal(waits.headers['x-error-code'], 'ENG_NO_CELL');
  assert.equal(waits.headers['retry-after'], '1');
  assert.equal((await directory.placement(name))?.cell, undefined);
  await cluster.start('late');
  await eventually(async () => expectStatus(await write(), 201));
});

test('a tenant with rows here that is settled elsewhere is refused, and told of loudly', async () => {
  const alone = await startApi({
    database: cluster.database,
    env: { ENGINE_DB_SCHEMA: 'other' },
  });
  await alone.tenant('old-1').sequence([step('a', 'noop')]);
  await alone.stop();
  const other = await cluster.start('other');
  const line = await eventually(() => {
    const found = other.engine.logs().find(({ tenantId }) => tenantId === 'old-1');
    assert.ok(found);
    return found;
  });
  assert.equal(line.level, 50);
  assert.equal(line.settledIn, 'older');
  const reply = await other.tenant('old-1').get('/sequences');
  expectStatus(reply, 421);
  assert.equal(reply.headers['x-cell'], 'older');
  const { text } = await other.root.with({ prefix: '' }).get('/metrics');
  assert.match(text, /^engine_cluster_split_tenants 1$/m);
});

test('an engine that stops in order is gone from the directory at once', async () => {
  const third = await cluster.start('third');
  const there = async () =>
    column(await cluster.directory.engines(), 'address').includes(`127.0.0.1:${third.engine.port}`);
  await eventually(async () => assert.ok(await there()));
  await third.engine.stop();
  assert.equal(await there(), false);
});
