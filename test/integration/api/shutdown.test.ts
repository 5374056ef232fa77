/** SIGTERM under load: what was accepted is answered, parked polls get [], the process ends in time. */

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type Api, eventually, newHandler, startApi, step } from '../../helpers/api.js';
import { NoReplyError } from '../../helpers/client.js';
import { createTestDatabase, type TestDatabase } from '../../helpers/database.js';

/** The promise is 3 s from the signal to the exit on a machine that has nothing else to do. */
const EXIT_MS_MAX = 30_000;

let database: TestDatabase;
let api: Api;

before(async () => {
  database = await createTestDatabase();
  api = await startApi({ database, env: { ENGINE_SHARDS: '2' } });
});
after(async () => {
  await api.stop();
  await database.drop();
});

/** Sends the signal and measures the time to the exit. */
async function terminate(): Promise<number> {
  const began = performance.now();
  const { code, signal } = await api.engine.kill('SIGTERM');
  assert.deepEqual([code, signal], [0, null], api.engine.output());
  return performance.now() - began;
}

test('parked polls are answered [] at once', async () => {
  const tenant = api.tenant();
  const parked = Array.from({ length: 20 }, () => tenant.poll(newHandler(), { wait_ms: 30_000 }));
  // Answered after the polls were received: they came first on their own connections.
  await eventually(async () => {
    const workers = await tenant.get<unknown[]>('/workers');
    assert.equal(workers.body.length, 1);
  });
  const took = await terminate();
  assert.deepEqual(await Promise.all(parked), Array(20).fill([]));
  assert.ok(took < EXIT_MS_MAX, `${took} ms`);
  await api.restart();
});

test('under load every request is answered or was never accepted, and what was acknowledged is there', async () => {
  const tenant = api.tenant();
  const handler = newHandler();
  const sequence = await tenant.sequence([step('a', handler)]);
  const acknowledged: string[] = [];
  const unanswered: NoReplyError[] = [];
  const refused: number[] = [];
  let isOver = false;
  const client = async () => {
    while (!isOver) {
      try {
        const reply = await tenant.post<{ id: string }>('/instances', tenant.creation(sequence));
        if (reply.status === 201) acknowledged.push(reply.body.id);
        else refused.push(reply.status);
      } catch (error) {
        if (!(error instanceof NoReplyError)) throw error;
        unanswered.push(error);
        return;
      }
    }
  };
  const clients = Array.from({ length: 32 }, client);
  await eventually(() => assert.ok(acknowledged.length > 200));
  const took = await terminate();
  isOver = true;
  await Promise.all(clients);
  assert.ok(took < EXIT_MS_MAX, `${took} ms`);
  assert.ok(
    refused.every((status) => status === 503),
    String(new Set(refused)),
  );
  // The next request after the last answer meets a closed connection or port.
  const cut = unanswered.filter(
    (error) => error.isSent && !/other side closed|ECONNRESET|socket/i.test(error.message),
  );
  assert.deepEqual(cut.map(String), []);
  await api.restart();
  const ids = new Set<string>();
  for (let offset = 0; ; offset += 1_000) {
    const page = await tenant.get<{ id: string }[]>(`/instances?limit=1000&offset=${offset}`);
    for (const { id } of page.body) ids.add(id);
    if (page.body.length < 1_000) break;
  }
  assert.deepEqual(
    acknowledged.filter((id) => !ids.has(id)),
    [],
  );
  assert.ok(ids.size - acknowledged.length <= 0, `${ids.size} stored, ${acknowledged.length} told`);
});

test('steps in flight are not waited for, and run again after the restart', async () => {
  const tenant = api.tenant();
  const SLEEP_MS = 10_000;
  const id = await tenant.run([step('a', 'sleep', { params: { duration_ms: SLEEP_MS } })]);
  const took = await terminate();
  assert.ok(took < SLEEP_MS, `${took} ms`);
  await api.restart();
  await tenant.until(id, 'completed');
});

test('idle connections do not hold the process, and further signals do not cut the stop short', async () => {
  const tenant = api.tenant();
  await Promise.all(Array.from({ length: 50 }, () => tenant.get('/instances')));
  const terminated = terminate();
  // Again and again, since signals that come before the first is handled count as one.
  await eventually(() => {
    api.engine.signal('SIGTERM');
    assert.ok(!api.engine.isRunning());
  });
  assert.ok((await terminated) < EXIT_MS_MAX);
  await api.restart();
});
