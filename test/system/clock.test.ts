/** The clock of the database is set while an engine runs, which follows it on every thread. */

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import pg from 'pg';
import { PageReader } from '../helpers/changes.js';
import { type Client, createClient } from '../helpers/client.js';
import { createTestDatabase, type TestDatabase } from '../helpers/database.js';
import { shadowClock } from '../helpers/database-clock.js';
import { type Engine, startEngine } from '../helpers/engine.js';

const TENANT = 'clocks';
const HOUR_MS = 3_600_000;

let database: TestDatabase;
let admin: pg.Client;
let setClock: (aheadMs: number) => Promise<void>;
let engine: Engine;
let client: Client;
const sequences: Record<string, string> = {};

before(async () => {
  database = await createTestDatabase();
  admin = new pg.Client({ connectionString: database.connectionString });
  await admin.connect();
  setClock = await shadowClock(admin);
  engine = await startEngine({
    databaseUrl: database.connectionString,
    env: { ENGINE_SHARDS: '2' },
  });
  client = createClient({ url: engine.url, apiKey: engine.apiKey, tenant: TENANT });
  const blocks = {
    noop: { type: 'step', id: 'a', handler: 'noop' },
    late: { type: 'step', id: 'a', handler: 'noop', delay: { duration: HOUR_MS / 2 } },
    work: { type: 'step', id: 'a', handler: 'work' },
  };
  for (const [name, block] of Object.entries(blocks)) {
    const body = { tenant_id: TENANT, namespace: 'n', name, version: 1, blocks: [block] };
    const reply = await client.post<{ id: string }>('/sequences', body);
    assert.equal(reply.status, 201, reply.text);
    sequences[name] = reply.body.id;
  }
});

after(async () => {
  await client?.close();
  await engine?.stop();
  await admin?.end();
  await database?.drop();
});

interface Instance {
  readonly id: string;
  readonly state: string;
  readonly created_at: string;
}

async function create(name: string): Promise<Instance> {
  const body = { sequence_id: sequences[name], tenant_id: TENANT, namespace: 'n' };
  const { id } = (await client.post<Instance>('/instances', body)).body;
  return read(id);
}

const read = async (id: string) => (await client.get<Instance>(`/instances/${id}`)).body;

async function until(isSo: () => Promise<boolean>): Promise<void> {
  while (!(await isSo())) await wait(20);
}

/** How far engine time is ahead of this machine's. */
async function skewMs(): Promise<number> {
  const { text } = await client.get('/metrics');
  return Number(/^engine_clock_skew_seconds (.*)$/m.exec(text)![1]) * 1_000;
}

/** Sets the clock, and waits until the engine has followed. */
async function set(aheadMs: number): Promise<void> {
  await setClock(aheadMs);
  await until(async () => Math.abs((await skewMs()) - aheadMs) < HOUR_MS / 4);
}

test('what is created, due and measured follows the clock of the database', async () => {
  const late = await Promise.all(Array.from({ length: 4 }, () => create('late')));
  await set(HOUR_MS);
  for (const { id } of late) await until(async () => (await read(id)).state === 'completed');
  for (let i = 0; i < 10; i++) {
    const { created_at } = await create('noop');
    assert.ok(Math.abs(Date.parse(created_at) - Date.now() - HOUR_MS) < HOUR_MS / 4, created_at);
  }
  const told = engine.logs().filter(({ msg }) => msg === 'the clock of the database was set');
  assert.equal(told.length, 1);
  assert.ok(Math.abs(Number(told[0]!.jumpMs) - HOUR_MS) < HOUR_MS / 4);
});

test('a worker that was not silent keeps its task, and a poll does not wait for the clock', async () => {
  const { id } = await create('work');
  const poll = { handler_name: 'work', worker_id: 'w' };
  const claimed = await client.post<{ id: string }[]>('/workers/tasks/poll', poll);
  assert.equal(claimed.body.length, 1);
  const parked = client.post('/workers/tasks/poll', { ...poll, wait_ms: 20_000 });
  await set(-HOUR_MS);
  assert.equal((await parked).text, '[]');
  await set(HOUR_MS);
  const done = { output: {}, worker_id: 'w' };
  const reply = await client.post(`/workers/tasks/${claimed.body[0]!.id}/complete`, done);
  assert.equal(reply.status, 200, reply.text);
  await until(async () => (await read(id)).state === 'completed');
});

test('set back, the clock delays what it moved away from, and hides nothing from readers of changes', async () => {
  const reader = new PageReader(500);
  const early = await create('late');
  await reader.drain(client);
  await set(-HOUR_MS);
  for (let i = 0; i < 10; i++) {
    const { id } = await create('noop');
    await reader.drain(client);
    assert.ok(reader.seen.some(({ instance_id }) => instance_id === id));
  }
  assert.notEqual((await read(early.id)).state, 'completed');
  await set(HOUR_MS * 2);
  await until(async () => (await read(early.id)).state === 'completed');
});
