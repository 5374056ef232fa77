/** Two engines on one database: one works, the other waits, and takes over when the first cannot. */

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { createClient } from '../helpers/client.js';
import { createTestDatabase, type TestDatabase } from '../helpers/database.js';
import { type Engine, startEngine } from '../helpers/engine.js';

const TENANT = 'standby';
/** What the specification of the take-over allows after a stop of the owner's process. */
const TAKE_OVER_MS = 15_000;

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

test('a stopped owner is replaced within 15 s, and once continued it exits without a commit', async () => {
  const owner = await start('ready');
  const standby = await start('listening');
  try {
    await assertStandby(standby);
    owner.signal('SIGSTOP');
    await standby.waitReady(TAKE_OVER_MS);
    const created = await create(standby);
    // Asked of the old owner, who does not know yet that it is none.
    const stale = clientOf(owner);
    const asked = stale
      .post('/instances', { sequence_id: sequence, tenant_id: TENANT, namespace: 'n' })
      .then(
        (reply) => reply.status,
        () => 'no answer',
      );
    owner.signal('SIGCONT');
    const exit = await owner.exited;
    assert.equal(exit.code, 1);
    assert.notEqual(await asked, 201);
    await stale.close();
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
