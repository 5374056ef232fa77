/**
 * What the engine makes of a database in trouble. Postgres that stops answering without breaking a
 * connection, as a stalled disk or a paused machine does: every process of the server is stopped by a
 * signal, and continued later. Postgres that answers and does not write: its disk is full, or an
 * operator has changed what the engine needs.
 */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, test } from 'node:test';
import pg from 'pg';
import { LIMITS } from '../../src/limits.js';
import { eventually } from '../helpers/api.js';
import { type Client, createClient, expectStatus } from '../helpers/client.js';
import { startPostgres, type TestPostgres } from '../helpers/database.js';
import { type Engine, startEngine } from '../helpers/engine.js';
import { signalTree } from '../helpers/process-tree.js';

const TENANT = 'outage';
const RECOVERY_MS = 100_000;

let postgres: TestPostgres;
let admin: pg.Client;
let engine: Engine;
let client: Client;
/** With connections of its own: those of `client` wait for the database. */
let probe: Client;
let sequence: string;

before(async () => {
  postgres = await startPostgres();
  const database = await postgres.createDatabase();
  admin = new pg.Client(database.connectionString);
  await admin.connect();
  engine = await startEngine({ databaseUrl: database.connectionString });
  const options = { url: engine.url, apiKey: engine.apiKey, tenant: TENANT, timeoutMs: 60_000 };
  client = createClient({ ...options, connections: 64 });
  probe = createClient({ ...options, connections: 4 });
  const reply = await client.post<{ id: string }>('/sequences', {
    tenant_id: TENANT,
    namespace: 'n',
    name: 'noop',
    version: 1,
    blocks: [{ type: 'step', id: 'a', handler: 'noop' }],
  });
  assert.equal(reply.status, 201);
  sequence = reply.body.id;
});

after(async () => {
  await client?.close();
  await probe?.close();
  await engine?.stop();
  await stopDatabase();
});

let isDatabaseThere = true;

async function stopDatabase(): Promise<void> {
  if (!isDatabaseThere) return;
  isDatabaseThere = false;
  await admin?.end();
  await postgres?.stop();
}

const signalPostgres = (signal: NodeJS.Signals): void => signalTree(postgres.pid, signal);

const create = (through = client) =>
  through.post<{ id: string }>('/instances', {
    sequence_id: sequence,
    tenant_id: TENANT,
    namespace: 'n',
  });

async function untilReady(status: number, withinMs: number): Promise<void> {
  const deadline = performance.now() + withinMs;
  for (;;) {
    const reply = await probe.get('/health/ready');
    if (reply.status === status) return;
    assert.ok(performance.now() < deadline, `readiness stayed ${reply.status}`);
  }
}

const told = () => engine.logs().map(({ msg }) => msg);

test('the log tells of the life of the server, and nothing of single requests', async () => {
  for (const msg of ['starting', 'listening', 'ready']) assert.ok(told().includes(msg), msg);
  const before = told();
  for (let i = 0; i < 20; i += 1) expectStatus(await client.get('/instances'), 200);
  expectStatus(await client.get(`/instances/${randomUUID()}`), 404);
  assert.deepEqual(told(), before);
});

test('an engine with nothing to do sees that Postgres is silent', async (t) => {
  if (process.platform !== 'linux') return t.skip('the processes are found through /proc');
  await untilReady(200, RECOVERY_MS);
  signalPostgres('SIGSTOP');
  try {
    await untilReady(503, LIMITS.databaseSilenceMs + RECOVERY_MS);
    assert.equal((await probe.get('/health/live')).status, 200);
  } finally {
    signalPostgres('SIGCONT');
  }
  await untilReady(200, RECOVERY_MS);
});

test('while Postgres is silent the engine lives and says so, and loses nothing', async (t) => {
  if (process.platform !== 'linux') return t.skip('the processes are found through /proc');
  const resident = (await create()).body.id;
  const acknowledged: string[] = [];
  const note = async () => {
    const reply = await create();
    if (reply.status === 201) acknowledged.push(reply.body.id);
    else assert.equal(reply.status, 503, reply.text);
  };
  const before = Array.from({ length: 100 }, note);
  await Promise.race(before);
  signalPostgres('SIGSTOP');
  let during: Promise<void>[] = [];
  try {
    during = Array.from({ length: 100 }, note);
    await untilReady(503, LIMITS.databaseSilenceMs + RECOVERY_MS);
    assert.equal((await probe.get('/health/live')).status, 200);
    // Reads of an instance in memory need no database.
    assert.equal((await probe.get(`/instances/${resident}`)).status, 200);
    const refused = await create(probe);
    assert.equal(refused.status, 503);
    assert.ok(refused.headers['retry-after'] !== undefined);
  } finally {
    signalPostgres('SIGCONT');
  }
  await untilReady(200, RECOVERY_MS);
  await Promise.all([...before, ...during]);
  assert.ok(acknowledged.length > 0, 'what was accepted before the outage is committed after it');
  const replies = await Promise.all(acknowledged.map((id) => client.get(`/instances/${id}`)));
  assert.deepEqual(
    replies.filter(({ status }) => status !== 200),
    [],
  );
  assert.equal((await create()).status, 201);
  assert.ok(engine.isRunning());
});

/** The body of the first refusal of readiness, which must come. */
async function refusal(): Promise<unknown> {
  await untilReady(503, RECOVERY_MS);
  return (await probe.get<unknown>('/health/ready')).body;
}

test('when only writes fail, reads go on, writes wait, and the reason is told', async () => {
  const instance = (await create()).body.id;
  await admin.query(`
    create function no_room() returns trigger language plpgsql as $$
    begin
      raise exception 'no space left on device' using errcode = '53100';
    end $$;
    create trigger no_room before insert on instances execute function no_room()`);
  const waiting = create();
  const error = 'unavailable: the database takes no writes: its disk is full (53100)';
  try {
    assert.deepEqual(await refusal(), { error, reason: { kind: 'disk-full', sql_state: '53100' } });
    for (const path of ['/instances', `/instances/${instance}`, '/workers', '/sequences']) {
      assert.equal((await probe.get(path)).status, 200, path);
    }
    const refused = await create(probe);
    assert.deepEqual([refused.status, refused.body], [503, { error }]);
  } finally {
    await admin.query('drop function no_room cascade');
  }
  assert.equal((await waiting).status, 201);
  await untilReady(200, RECOVERY_MS);
  const line = engine.logs().find(({ msg }) => msg === 'the database takes no writes');
  assert.deepEqual([line?.kind, line?.sqlState], ['disk-full', '53100']);
});

for (const [what, begin, end, reason] of [
  [
    'a table is renamed',
    'alter table worker_tasks rename to worker_tasks_gone',
    'alter table worker_tasks_gone rename to worker_tasks',
    { kind: 'schema', sql_state: '42P01' },
  ],
  [
    'a column is renamed',
    'alter table worker_tasks rename column output to output_gone',
    'alter table worker_tasks rename column output_gone to output',
    { kind: 'schema', sql_state: '42703' },
  ],
] as const) {
  test(`while ${what} no task, instance or request fails`, async () => {
    const handler = `work-${reason.sql_state}`;
    const worker = { handler_name: handler, worker_id: 'w' };
    const sequenceOfWork = await client.post<{ id: string }>('/sequences', {
      tenant_id: TENANT,
      namespace: 'n',
      name: handler,
      version: 1,
      blocks: [{ type: 'step', id: 'a', handler }],
    });
    const body = { sequence_id: sequenceOfWork.body.id, tenant_id: TENANT, namespace: 'n' };
    const instance = (await client.post<{ id: string }>('/instances', body)).body.id;
    const poll = () => client.post<{ id: string }[]>('/workers/tasks/poll', worker);
    let task: string | undefined;
    while (task === undefined) task = (await poll()).body[0]?.id;
    const complete = () =>
      client.post(`/workers/tasks/${task}/complete`, { worker_id: 'w', output: { ok: true } });
    await admin.query(begin);
    const completed = complete();
    try {
      assert.deepEqual(((await refusal()) as { reason: unknown }).reason, reason);
    } finally {
      await admin.query(end);
    }
    assert.equal((await completed).status, 200);
    await untilReady(200, RECOVERY_MS);
    const { state } = (await client.get<{ state: string }>(`/instances/${instance}`)).body;
    assert.equal(state, 'completed');
  });
}

test('a database that may lose what it acknowledged is refused', async () => {
  const databaseUrl = (await postgres.createDatabase()).connectionString;
  const refused = startEngine({ databaseUrl, args: [] });
  await assert.rejects(refused, /fsync and full_page_writes off.*--unsafe-database/s);
});

test('without a database the log tells of a 5xx which request and instance, and of the end', async () => {
  const lines = engine.logs().length;
  await stopDatabase();
  await eventually(() => {
    const news = engine.logs().slice(lines);
    assert.ok(news.some(({ msg }) => msg === 'the database is away'));
  });
  const instance = randomUUID();
  const headers = { 'x-request-id': `r-${randomUUID()}` };
  const options = { body: { signal_type: 'resume' }, headers };
  expectStatus(await client.request('POST', `/instances/${instance}/signals`, options), 503);
  const line = await eventually(() => {
    const found = engine.logs().find(({ requestId }) => requestId === headers['x-request-id']);
    assert.ok(found);
    return found;
  });
  const { level, msg, route, status, instanceId, code } = line;
  assert.deepEqual(
    { level, msg, route, status, instanceId, code },
    {
      level: 40,
      msg: 'request failed',
      route: 'instances.signal',
      status: 503,
      instanceId: instance,
      code: 'ENG_DATABASE_DOWN',
    },
  );
  await engine.stop();
  await eventually(() => {
    for (const end of ['stopping', 'stopped']) assert.ok(told().includes(end), end);
  });
});
