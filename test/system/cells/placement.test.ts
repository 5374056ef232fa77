/**
 * Cells that know of one another: a request that reaches the wrong one is refused before anything is done, whoever
 * meets a tenant first settles it, and nobody needs the directory for tenants that are known. How engines come into
 * such a cluster is tried last.
 *
 * Cost: 40 s, since it starts a cluster of engines.
 */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, test } from 'node:test';
import type { KeyMinted } from '../../../schema/api-key.js';
import type { Cells, TenantMove } from '../../../schema/cell.js';
import type { Info } from '../../../schema/system.js';
import { parseExposition } from '../../../scripts/reference/exposition.js';
import { inSchema } from '../../../src/db/database-url.js';
import { migrate } from '../../../src/db/migrate.js';
import { type Api, eventually, step } from '../../helpers/api.js';
import { createClient, expectStatus, type Reply } from '../../helpers/client.js';
import { type Cluster, startCluster, tenantLedTo } from '../../helpers/cluster.js';
import { column } from '../../helpers/columns.js';
import { DEFAULT_API_KEY, startEngine } from '../../helpers/engine.js';

const CELLS = ['east', 'west'];

let cluster: Cluster;
let east: Api;
let west: Api;

before(async () => {
  cluster = await startCluster();
  const env = { ENGINE_ENCRYPTION_KEY: 'a7'.repeat(32) };
  east = await cluster.start('east', { env });
  west = await cluster.start('west', { env });
  // Each has seen both.
  const west1 = tenantLedTo('west', CELLS, 'first');
  await eventually(async () => expectWrong(await east.tenant(west1).get('/sequences'), 'west'));
});

after(() => cluster?.stop());

const ledTo = (cell: string) => tenantLedTo(cell, CELLS, randomUUID());

function expectWrong(reply: Reply<unknown>, cell: string): void {
  expectStatus(reply, 421);
  assert.equal(reply.headers['x-error-code'], 'ENG_WRONG_CELL');
  assert.equal(reply.headers['x-cell'], cell);
  assert.equal((reply.body as { cell: string }).cell, cell);
  assert.match((reply.body as { error: string }).error, new RegExp(`for the cell ${cell}`));
}

async function metric(api: Api, name: string): Promise<number> {
  const headers = { 'x-api-key': DEFAULT_API_KEY };
  const text = await (await fetch(`${api.url}/metrics`, { headers })).text();
  return parseExposition(text).families.get(name)?.samples[0]?.value ?? Number.NaN;
}

/** Rows of the tenant in the cell, in the tables that everything begins with. */
async function rowCount(cell: string, tenant: string): Promise<number> {
  const tables = ['sequences', 'instances', 'api_keys', 'tenant_limits'];
  const counts = tables.map(
    (table) => `(select count(*) from ${cell}.${table} where tenant_id = $1)`,
  );
  const { rows } = await east.sql.query(`select (${counts.join(' + ')})::int as count`, [tenant]);
  return (rows[0] as { count: number }).count;
}

test('an engine says that it is one of a cluster, and the directory who it is', async () => {
  const info = (await (await fetch(`${east.url}/info`)).json()) as Info;
  assert.deepEqual([info.cell, info.cluster], ['east', true]);
  const engines = await eventually(async () => {
    const found = await cluster.directory.engines();
    assert.deepEqual(column(found, 'role'), ['owner', 'owner']);
    return found;
  });
  assert.deepEqual(
    engines.map(({ cell, address }) => [cell, address]),
    [
      ['east', `127.0.0.1:${east.engine.port}`],
      ['west', `127.0.0.1:${west.engine.port}`],
    ],
  );
  assert.ok(engines.every(({ lag_ms, version }) => lag_ms !== null && version === info.version));
});

test('the cells are listed for the root key, by owners and by standbys, and their moves in pages', async () => {
  const ids = [1, 2, 3].map((at) => `0190b5c0-0000-7000-8000-00000000000${at}`);
  await cluster.directory.transaction((client) =>
    client.query(
      `insert into cluster.moves (id, tenant_id, from_cell, to_cell, state, ended_at)
       select id, 'gone', 'east', 'west', 'done', now() from unnest($1::uuid[]) as id`,
      [ids],
    ),
  );
  const standby = await east.engine.beside({ waitFor: 'listening' });
  try {
    const {
      cluster: isOne,
      own,
      cells,
    } = await eventually(async () => {
      const reply = await fetch(`${standby.url}/api/v1/cells`, {
        headers: { 'x-api-key': DEFAULT_API_KEY },
      });
      const found = (await reply.json()) as Cells;
      assert.equal(found.cells[0]?.engines.length, 2);
      return found;
    });
    assert.deepEqual([isOne, own, column(cells, 'name')], [true, 'east', CELLS]);
    assert.deepEqual(column(cells[0]?.engines ?? [], 'role'), ['owner', 'standby']);
  } finally {
    await standby.stop();
  }
  const first = await east.root.get<TenantMove[]>('/cells/moves?limit=2');
  const cursor = String(first.headers['x-next-cursor']);
  const rest = await east.root.get<TenantMove[]>(`/cells/moves?limit=2&cursor=${cursor}`);
  assert.deepEqual(column([...first.body, ...rest.body], 'id'), ids.toReversed());
  assert.deepEqual((await east.root.get('/cells/moves?under_way=true')).body, []);
  assert.equal((await east.root.get('/cells/moves?cursor=none')).status, 400);
});

test('a tenant is settled with its first write, where its bucket leads; the other cell refuses it with 421', async () => {
  const name = ledTo('east');
  expectStatus(await east.tenant(name).get('/sequences'), 200);
  assert.equal(await cluster.directory.placement(name), undefined);
  await east.tenant(name).run([step('a', 'noop')]);
  const placed = await cluster.directory.placement(name);
  assert.deepEqual([placed?.cell, placed?.placed_by], ['east', 'hash']);
  const wrong = west.tenant(name);
  expectWrong(await wrong.get('/instances'), 'east');
  expectWrong(await wrong.post('/sequences', wrong.definition([step('a', 'noop')])), 'east');
  assert.equal(await rowCount('west', name), 0);
  assert.ok((await rowCount('east', name)) > 0);
});

test('every way in which a request may name a tenant is refused in the wrong cell, and writes nothing', async () => {
  const name = ledTo('east');
  const sequence = await east.tenant(name).sequence([step('a', 'noop')]);
  const { root } = west;
  const minting = { tenant_id: name, name: 'k', capabilities: ['operator'] };
  const key = expectStatus(await east.root.post<KeyMinted>('/api-keys', minting), 201);
  const item = east.tenant(name).creation(sequence);
  const replies = {
    'header, root': await root.with({ tenant: name }).get('/instances'),
    'header, key': await root.with({ tenant: name, apiKey: key.secret }).get('/instances'),
    'header, wrong key': await root.with({ tenant: name, apiKey: 'wrong' }).get('/instances'),
    'header, no such instance': await root.with({ tenant: name }).get(`/instances/${randomUUID()}`),
    poll: await root
      .with({ tenant: name })
      .post('/workers/tasks/poll', { handler_name: 'x', worker_id: 'w' }),
    'query of changes': await root.get(`/changes?tenant_id=${name}`),
    'query of a stream': await root.get(`/changes/stream?tenant_id=${name}`),
    'body of a batch': await root.post('/instances/batch', { instances: [item] }),
    'body of a key': await root.post('/api-keys', minting),
    'query of keys': await root.get(`/api-keys?tenant_id=${name}`),
    'path of limits': await root.put(`/tenants/${name}/limits`, { rows_per_second: 5 }),
    'header of a cell': await root.request('GET', '/tenants', { headers: { 'x-cell': 'east' } }),
  };
  for (const [what, reply] of Object.entries(replies)) {
    assert.equal(reply.status, 421, `${what}: ${reply.status} ${reply.text}`);
    expectWrong(reply, 'east');
  }
  assert.equal(await rowCount('west', name), 0);
  assert.ok(
    (await metric(west, 'engine_requests_misdirected_total')) >= Object.keys(replies).length,
  );
  // A key says nothing in a cell that does not know it.
  expectStatus(await root.with({ apiKey: key.secret }).get('/whoami'), 401);
  expectStatus(await east.root.with({ apiKey: key.secret }).get('/whoami'), 200);
  expectStatus(await root.request('GET', '/tenants', { headers: { 'x-cell': 'west' } }), 200);
});

test('a webhook that waits is refused where its tenant does not live', async () => {
  const name = ledTo('east');
  await east.tenant(name).sequence([step('a', 'noop')]);
  const id = randomUUID();
  // As of a tenant that has left.
  await west.sql.query(
    `insert into west.webhook_outbox
       (id, url, event_type, instance_id, tenant_id, body, attempts, status, created_at)
     values ($1, 'http://127.0.0.1:1/', 'instance.completed', $1, $2, '{}', 1, 'parked', now())`,
    [id, name],
  );
  const { root } = west;
  expectWrong(await root.get(`/webhooks/outbox/${id}/redeliver-preview`), 'east');
  expectWrong(await root.post(`/webhooks/outbox/${id}/redeliver`, {}), 'east');
  expectWrong(await root.delete(`/webhooks/outbox/${id}`), 'east');
  expectStatus(await root.delete(`/webhooks/outbox/${randomUUID()}`), 404);
  expectStatus(await root.delete('/webhooks/outbox/none'), 400);
});

test('a link to an approval names its tenant for proxies, and is answered with that', async () => {
  const tenant = east.tenant(`${ledTo('east')} & co`);
  await cluster.directory.settle([tenant.name], 'east', 'hand');
  const id = await tenant.runUntil('waiting', [
    step('a', 'noop', { wait_for_input: { prompt: 'Pay?' } }),
  ]);
  const { body } = await tenant.get<{ items: readonly { id: string }[] }>('/approvals');
  const made = await tenant.post<{ url: string }>(`/approvals/${body.items[0]?.id}/link`, {});
  const { url } = expectStatus(made, 201);
  assert.ok(url.endsWith(`?tenant_id=${encodeURIComponent(tenant.name)}`), url);
  const page = await fetch(url, { headers: { accept: 'text/html' } });
  assert.equal(page.status, 200);
  // The form has no address of its own: it posts to that of the page.
  assert.match(await page.text(), /<form method="post">/);
  const form = new URLSearchParams({ value: 'yes' });
  assert.equal((await fetch(url, { method: 'POST', body: form })).status, 200);
  await tenant.until(id, 'completed');
});

test('root settles tenants that only a body or a path names', async () => {
  const [byKey, byLimits] = [ledTo('west'), ledTo('west')];
  const minting = { tenant_id: byKey, name: 'k', capabilities: ['operator'] };
  expectStatus(await west.root.post('/api-keys', minting), 201);
  expectStatus(await west.root.put(`/tenants/${byLimits}/limits`, { rows_per_second: 5 }), 200);
  for (const tenant of [byKey, byLimits]) {
    assert.equal((await cluster.directory.placement(tenant))?.cell, 'west');
  }
});

test('two cells that meet a tenant at the same time agree, and one of them alone writes', async () => {
  const names = Array.from({ length: 20 }, () => `race-${randomUUID()}`);
  const write = async (api: Api, name: string) =>
    (await api.tenant(name).post('/sequences', api.tenant(name).definition([step('a', 'noop')])))
      .status;
  const statuses = await Promise.all(
    names.map((name) => Promise.all([write(east, name), write(west, name)])),
  );
  for (const [at, pair] of statuses.entries()) {
    assert.deepEqual([...pair].sort(), [201, 421], names[at]);
    const cell = (await cluster.directory.placement(names[at] as string))?.cell;
    assert.equal(cell, pair[0] === 201 ? 'east' : 'west');
    assert.equal(await rowCount(cell === 'east' ? 'west' : 'east', names[at] as string), 0);
  }
});

test('while the directory is away known tenants are served and refused as before, and unknown ones wait', async () => {
  const [ours, theirs] = [ledTo('east'), ledTo('west')];
  await east.tenant(ours).sequence([step('a', 'noop')]);
  await west.tenant(theirs).sequence([step('a', 'noop')]);
  expectWrong(await east.tenant(theirs).get('/sequences'), 'west');
  cluster.way.refuse();
  await eventually(async () => assert.equal(await metric(east, 'engine_cluster_directory_up'), 0));
  await east.tenant(ours).run([step('a', 'noop')]);
  expectWrong(await east.tenant(theirs).get('/sequences'), 'west');
  const unknown = ledTo('east');
  const waits = await east.tenant(unknown).get('/sequences');
  expectStatus(waits, 503);
  assert.equal(waits.headers['x-error-code'], 'ENG_DIRECTORY_DOWN');
  assert.equal(waits.headers['retry-after'], '1');
  cluster.way.resume();
  await eventually(async () => expectStatus(await east.tenant(unknown).get('/sequences'), 200));
  await eventually(async () => assert.equal(await metric(east, 'engine_cluster_directory_up'), 1));
});

test('a directory that was restored is filled again by engines that run', async () => {
  const name = ledTo('east');
  await east.tenant(name).sequence([step('a', 'noop')]);
  // Nothing of it has rows.
  const [empty, elsewhere] = [ledTo('east'), ledTo('west')];
  expectStatus(await east.tenant(empty).delete(`/sequences/${randomUUID()}`), 404);
  await west.tenant(elsewhere).sequence([step('a', 'noop')]);
  assert.equal((await cluster.directory.placement(empty))?.cell, 'east');
  await cluster.directory.transaction(async (client) => {
    await client.query('delete from cluster.placements');
    await client.query('update cluster.revision set number = 1');
  });
  for (const [tenant, cell] of [
    [name, 'east'],
    [empty, 'east'],
    [elsewhere, 'west'],
  ] as const) {
    const placed = await eventually(async () => {
      const found = await cluster.directory.placement(tenant);
      assert.ok(found);
      return found;
    });
    assert.deepEqual([placed.cell, placed.placed_by], [cell, 'found']);
  }
  for (const [cell, api] of [
    ['east', east],
    ['west', west],
  ] as const) {
    const newcomer = ledTo(cell);
    const write = () => api.tenant(newcomer).delete(`/sequences/${randomUUID()}`);
    await eventually(async () => expectStatus(await write(), 404));
    assert.equal((await cluster.directory.placement(newcomer))?.cell, cell);
  }
});

test('a standby that takes its cell over knows who lives there', async () => {
  const name = ledTo('west');
  await west.tenant(name).sequence([step('a', 'noop')]);
  const standby = await west.engine.beside({ waitFor: 'listening' });
  try {
    await eventually(async () => {
      const roles = (await cluster.directory.engines()).filter(({ cell }) => cell === 'west');
      assert.deepEqual(column(roles, 'role'), ['owner', 'standby']);
    });
    cluster.way.refuse();
    await west.engine.kill();
    await standby.waitReady();
    const client = createClient({ url: standby.url, apiKey: DEFAULT_API_KEY, tenant: name });
    expectStatus(await client.get('/sequences'), 200);
    cluster.way.resume();
    expectWrong(await client.with({ tenant: ledTo('east') }).get('/sequences'), 'east');
    await client.close();
  } finally {
    cluster.way.resume();
    await standby.stop();
  }
  await west.restart();
});

// ---------------------------------------------------------------- engines that come

const refusalOf = async (env: Record<string, string>) =>
  startEngine({ databaseUrl: cluster.database.connectionString, env }).then(
    async (engine) => {
      await engine.stop();
      return 'it started';
    },
    (error: Error) => error.message,
  );

test('an engine does not start in a cell that the cluster does not know, without a directory, or without tenants', async () => {
  const other = new URL(cluster.database.connectionString);
  const refusals: readonly (readonly [env: Record<string, string>, says: RegExp])[] = [
    [
      cluster.envOf('nowhere'),
      /no cell nowhere: make it with durable-workflow-engine cells create nowhere --database URL/,
    ],
    [
      { ENGINE_CLUSTER_URL: Object.assign(other, { pathname: '/postgres' }).href },
      /no directory of a cluster: cells create makes it/,
    ],
    [
      { ENGINE_REQUIRE_TENANT_HEADER: 'false', ENGINE_ALLOW_NO_TENANT_ISOLATION: 'true' },
      /exclude one another/,
    ],
  ];
  for (const [env, says] of refusals) {
    assert.match(await refusalOf({ ...cluster.envOf('east'), ...env }), says);
  }
});

/** A schema of before the cluster, in which each of these tenants has a row of one table. */
async function leaveCell(cell: string, tenants: readonly string[]): Promise<void> {
  const { connectionString } = cluster.database;
  await east.sql.query(`create schema ${cell}`);
  await migrate(inSchema(connectionString, cell));
  await east.sql.query(
    `insert into ${cell}.rate_limits
     select gen_random_uuid(), name, 'k', 1, 1, now() from unnest($1::text[]) as name`,
    [tenants],
  );
}

const settledIn = async (cell: string) =>
  cluster.directory.placements({ after: '', limit: 10, cell });

test('tenants that a cell had before its cluster are settled there before it serves, although one of them is', async () => {
  const names = ['old-1', 'old-2', 'old-3'];
  await leaveCell('older', names);
  const { directory, database } = cluster;
  const { connectionString: database_url } = database;
  await directory.createCell({ name: 'older', database_url, engines: [], state: 'open' });
  await directory.settle(['old-1'], 'older', 'hand');
  const older = await cluster.start('older');
  const placed = await settledIn('older');
  assert.deepEqual(column(placed, 'tenant_id'), names);
  assert.deepEqual(column(placed, 'placed_by'), ['hand', 'found', 'found']);
  assert.notEqual((await directory.cell('older'))?.found_at, null);
  expectStatus(await older.tenant('old-2').get('/sequences'), 200);
});

test('while a cell with engines was not looked through nobody new is settled', async () => {
  const { directory, database } = cluster;
  const { connectionString: database_url } = database;
  await directory.createCell({ name: 'late', database_url, engines: [], state: 'closed' });
  const open = (await directory.cells()).filter(({ state }) => state === 'open');
  const name = tenantLedTo('east', column(open, 'name'), 'newcomer');
  const write = () =>
    east.tenant(name).post('/sequences', east.tenant(name).definition([step('a', 'noop')]));
  // As its first engine does when it joins.
  await directory.markCell('late', 'joined');
  const waits = await eventually(async () => {
    const reply = await write();
    expectStatus(reply, 503);
    return reply;
  });
  assert.equal(waits.headers['x-error-code'], 'ENG_NO_CELL');
  assert.equal(waits.headers['retry-after'], '1');
  assert.equal((await directory.placement(name))?.cell, undefined);
  const late = await cluster.start('late');
  await eventually(async () => expectStatus(await write(), 201));

  // One that stops in order is gone from the directory at once.
  const address = `127.0.0.1:${late.engine.port}`;
  const isThere = async () => column(await directory.engines(), 'address').includes(address);
  await eventually(async () => assert.ok(await isThere()));
  await late.engine.stop();
  assert.equal(await isThere(), false);
});

test('a tenant with rows here that is settled elsewhere is refused, and told of loudly', async () => {
  await leaveCell('other', ['old-1']);
  const other = await cluster.start('other');
  const line = await eventually(() => {
    const found = other.engine.logs().find(({ tenantId }) => tenantId === 'old-1');
    assert.ok(found);
    return found;
  });
  assert.deepEqual([line.level, line.settledIn], [50, 'older']);
  expectWrong(await other.tenant('old-1').get('/sequences'), 'older');
  assert.equal(await metric(other, 'engine_cluster_split_tenants'), 1);
});

test('an engine that has left its cluster does nothing for a tenant that had left its cell before', async () => {
  const schema = 'alone';
  await leaveCell(schema, []);
  await east.sql.query(
    `insert into ${schema}.tenant_moves (tenant_id, move_id, state, other_cell)
     values ('moved', $1, 'left', 'west')`,
    [randomUUID()],
  );
  const { connectionString: databaseUrl } = cluster.database;
  const engine = await startEngine({ databaseUrl, env: { ENGINE_DB_SCHEMA: schema } });
  const client = createClient({ url: engine.url, apiKey: DEFAULT_API_KEY, tenant: 'moved' });
  try {
    const write = () =>
      client.post('/sequences', east.tenant('moved').definition([step('a', 'noop')]));
    const refused = await write();
    expectStatus(refused, 503);
    assert.equal(refused.headers['x-error-code'], 'ENG_TENANT_MOVING');
    await east.sql.query(`delete from ${schema}.tenant_moves`);
    await eventually(async () => expectStatus(await write(), 201));
  } finally {
    await client.close();
    await engine.stop();
  }
});
