/** Two engines on one database: one works, the other waits, and takes over when the first cannot. */

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { after, before, test } from 'node:test';
import { createClient } from '../helpers/client.js';
import { createTestDatabase, type TestDatabase } from '../helpers/database.js';
import { DEFAULT_API_KEY, type Engine, startEngine } from '../helpers/engine.js';

const TENANT = 'standby';
/** A take-over lasts some seconds, and longer on a slow machine. */
const TAKE_OVER_MS = 150_000;

let database: TestDatabase;
let sequence: string;

before(async () => {
  database = await createTestDatabase();
});

after(() => database?.drop());

const clientOf = (engine: Engine) =>
  createClient({ url: engine.url, apiKey: engine.apiKey, tenant: TENANT });

const start = (waitFor: 'ready' | 'listening') =>
  startEngine({ databaseUrl: database.connectionString, waitFor });

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

/** A connection that is there before the other end is stopped. */
async function open(engine: Engine): Promise<Socket> {
  const socket = connect(engine.port, '127.0.0.1').on('error', () => undefined);
  await once(socket, 'connect');
  return socket;
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
  await client.close();
}

test('a standby lives, is not ready, and takes over at once when the owner is killed', async () => {
  const owner = await start('ready');
  sequence = await storeSequence(owner);
  const before = await create(owner);
  const standby = await start('listening');
  try {
    await assertStandby(standby);
    await owner.kill('SIGKILL');
    await standby.waitReady(TAKE_OVER_MS);
    const client = clientOf(standby);
    assert.equal((await client.get(`/instances/${before}`)).status, 200);
    await client.close();
    await create(standby);
  } finally {
    await standby.stop();
    await owner.stop();
  }
});

test('a stopped owner is replaced within 15 s, and once continued it answers nothing and exits', async () => {
  const owner = await start('ready');
  const resident = await create(owner);
  const standby = await start('listening');
  const sockets = await Promise.all(Array.from({ length: 40 }, () => open(owner)));
  try {
    await assertStandby(standby);
    owner.signal('SIGSTOP');
    await standby.waitReady(TAKE_OVER_MS);
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
    owner.signal('SIGCONT');
    const exit = await owner.exited;
    assert.equal(exit.code, 1);
    const statuses = new Set(await Promise.all(asked));
    assert.deepEqual(
      [...statuses].filter((status) => status !== 'none' && status !== '503'),
      [],
    );
    const client = clientOf(standby);
    assert.equal((await client.get(`/instances/${created}`)).status, 200);
    await client.close();
  } finally {
    await standby.stop();
    await owner.stop();
  }
});

test('an owner that is stopped properly hands over at once', async () => {
  const owner = await start('ready');
  const standby = await start('listening');
  try {
    await assertStandby(standby);
    const exit = await owner.stop();
    assert.equal(exit.code, 0);
    await standby.waitReady(TAKE_OVER_MS);
  } finally {
    await standby.stop();
  }
});
