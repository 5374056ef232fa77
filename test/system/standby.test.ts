/** Two engines on one database: one works, the other waits, and takes over when the first cannot. */

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { after, before, test } from 'node:test';
import type { TaskInstance } from '../../schema/instance.js';
import { eventually } from '../helpers/api.js';
import { createClient, expectStatus, type Reply } from '../helpers/client.js';
import { createTestDatabase, type TestDatabase } from '../helpers/database.js';
import { DEFAULT_API_KEY, type Engine, startEngine } from '../helpers/engine.js';

const TENANT = 'standby';
/** A take-over lasts some seconds, and longer on a slow machine. */
const TAKE_OVER_MS = 150_000;

let database: TestDatabase;
let sequence: string;
/** Who took over last; the next test begins with it. */
let owner: Engine;
const engines: Engine[] = [];

before(async () => {
  database = await createTestDatabase();
});

after(async () => {
  for (const engine of engines) await engine.kill();
  await database?.drop();
});

const clientOf = (engine: Engine) =>
  createClient({ url: engine.url, apiKey: engine.apiKey, tenant: TENANT });

async function start(waitFor: 'ready' | 'listening'): Promise<Engine> {
  const engine = await startEngine({ databaseUrl: database.connectionString, waitFor });
  engines.push(engine);
  return engine;
}

async function storeSequence(engine: Engine): Promise<string> {
  const client = clientOf(engine);
  const reply = await client.post<{ id: string }>('/sequences', {
    tenant_id: TENANT,
    namespace: 'n',
    name: 'noop',
    version: 1,
    blocks: [{ type: 'step', id: 'a', handler: 'noop' }],
  });
  assert.equal(reply.status, 201);
  await client.close();
  return reply.body.id;
}

async function create(engine: Engine): Promise<string> {
  const client = clientOf(engine);
  const body = { sequence_id: sequence, tenant_id: TENANT, namespace: 'n' };
  const reply = await client.post<{ id: string }>('/instances', body);
  assert.equal(reply.status, 201, reply.text);
  await client.close();
  return reply.body.id;
}

/** Fires every second. */
async function createSchedule(engine: Engine): Promise<string> {
  const client = clientOf(engine);
  const place = { tenant_id: TENANT, namespace: 'cron', sequence_id: sequence };
  const body = { ...place, cron_expr: '* * * * * ? *' };
  const { id } = expectStatus(await client.post<{ id: string }>('/cron', body), 201);
  await client.close();
  return id;
}

/** A connection that is there before the other end is stopped. */
async function open(engine: Engine): Promise<Socket> {
  const socket = connect(engine.port, '127.0.0.1').on('error', () => undefined);
  await once(socket, 'connect');
  return socket;
}

function expectOk({ status, text }: Reply<unknown>): string {
  assert.equal(status, 200, text);
  return text;
}

type Question = readonly [method: string, path: string, body?: object];

/** Resolves with the status, or with `none` when the connection ends without one. */
function ask(socket: Socket, [method, path, body]: Question): Promise<string> {
  const text = body === undefined ? '' : JSON.stringify(body);
  const head = [
    `${method} /api/v1${path} HTTP/1.1`,
    'host: owner',
    `x-api-key: ${DEFAULT_API_KEY}`,
    `x-tenant-id: ${TENANT}`,
    `content-length: ${text.length}`,
  ];
  socket.write(`${head.join('\r\n')}\r\n\r\n${text}`);
  return new Promise((resolve) => {
    socket.once('data', (data) => resolve(data.toString('latin1').slice(9, 12)));
    socket.once('close', () => resolve('none'));
  });
}

async function assertStandby(engine: Engine): Promise<void> {
  const client = clientOf(engine);
  const deadline = performance.now() + TAKE_OVER_MS;
  assert.equal((await client.get('/health/live')).status, 200);
  // It is starting until it has seen who owns the database.
  for (;;) {
    const ready = await client.get('/health/ready');
    assert.equal(ready.status, 503);
    if (ready.text.includes('standby')) {
      assert.ok(ready.headers['retry-after'] !== undefined);
      break;
    }
    assert.ok(performance.now() < deadline, ready.text);
  }
  const list = await client.get('/instances');
  assert.equal(list.status, 503);
  assert.ok(list.headers['retry-after'] !== undefined);
  // Whoever scrapes has to hear of it as well.
  assert.match(expectOk(await client.get('/metrics')), /^engine_ready 0$/m);
  assert.equal((await client.with({ apiKey: null }).get('/metrics')).status, 401);
  await client.close();
}

const told = (engine: Engine) => engine.logs().map(({ msg }) => msg);

/** How often the schedule has fired, by its fire times: none of them may have two instances. */
async function firings(engine: Engine, schedule: string): Promise<number> {
  const client = clientOf(engine);
  const { body } = await client.get<TaskInstance[]>('/instances?namespace=cron&limit=1000');
  await client.close();
  const keys = body.map(({ idempotency_key }) => idempotency_key ?? '');
  assert.ok(keys.every((key) => key.startsWith(`cron:${schedule}:`)));
  assert.equal(new Set(keys).size, keys.length);
  return keys.length;
}

async function untilFired(engine: Engine, schedule: string, more: number): Promise<void> {
  const before = await firings(engine, schedule);
  await eventually(async () => assert.ok((await firings(engine, schedule)) >= before + more));
}

test('a standby lives, is not ready, and takes over at once when the owner is killed', async () => {
  owner = await start('ready');
  sequence = await storeSequence(owner);
  const schedule = await createSchedule(owner);
  await untilFired(owner, schedule, 2);
  const before = await create(owner);
  const standby = await start('listening');
  await assertStandby(standby);
  await owner.kill('SIGKILL');
  await standby.waitReady(TAKE_OVER_MS);
  owner = standby;
  const client = clientOf(owner);
  assert.equal((await client.get(`/instances/${before}`)).status, 200);
  await create(owner);
  // The schedules go on.
  await untilFired(owner, schedule, 2);
  expectStatus(await client.put(`/cron/${schedule}`, { enabled: false }), 200);
  await client.close();
  await eventually(() => {
    assert.ok(told(owner).includes('took the database over'));
  });
});

test('a stopped owner is replaced within 15 s, and once continued it answers nothing and exits', async () => {
  const stopped = owner;
  const resident = await create(stopped);
  const standby = await start('listening');
  const sockets = await Promise.all(Array.from({ length: 40 }, () => open(stopped)));
  await assertStandby(standby);
  stopped.signal('SIGSTOP');
  await standby.waitReady(TAKE_OVER_MS);
  owner = standby;
  const created = await create(standby);
  // Asked of the old owner, who does not know yet that it is none.
  const body = { sequence_id: sequence, tenant_id: TENANT, namespace: 'n' };
  const questions: readonly Question[] = [
    ['GET', '/health/ready'],
    ['GET', '/instances'],
    ['GET', `/instances/${resident}`],
    ['POST', '/instances', body],
    ['POST', '/workers/tasks/poll', { handler_name: 'h', worker_id: 'w' }],
  ];
  const asked = sockets.map((socket, i) => ask(socket, questions[i % questions.length]!));
  stopped.signal('SIGCONT');
  const exit = await stopped.exited;
  assert.equal(exit.code, 1);
  const statuses = new Set(await Promise.all(asked));
  // 408: the connection had been open for too long before anything was asked.
  const refusals = ['none', '503', '408'];
  assert.deepEqual(
    [...statuses].filter((status) => !refusals.includes(status)),
    [],
  );
  const client = clientOf(standby);
  assert.equal((await client.get(`/instances/${created}`)).status, 200);
  await client.close();
});

test('an owner that is stopped properly hands over at once, and each tells so in its log', async () => {
  const standby = await start('listening');
  await assertStandby(standby);
  await eventually(() =>
    assert.ok(told(standby).includes('another engine owns the database: standing by')),
  );
  assert.ok(!told(standby).includes('took the database over'));
  const exit = await owner.stop();
  assert.equal(exit.code, 0);
  await standby.waitReady(TAKE_OVER_MS);
  owner = standby;
  await eventually(() => assert.ok(told(standby).includes('took the database over')));
});
