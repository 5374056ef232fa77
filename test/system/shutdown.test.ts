/** SIGTERM under load: what was accepted is answered, parked polls get [], the process ends in time. */

import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import type { WorkerTask } from '../../schema/worker.js';
import { eventually, newHandler, sleep, step, useApi } from '../helpers/api.js';
import { NoReplyError } from '../helpers/client.js';

/** The promise is 3 s from the signal to the exit on a machine that has nothing else to do. */
const EXIT_MS_MAX = 30_000;

const api = useApi({ env: { ENGINE_SHARDS: '2' } });

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
  const began = performance.now();
  const { code, signal } = await api.engine.kill('SIGTERM');
  const took = performance.now() - began;
  assert.deepEqual([code, signal], [0, null], api.engine.output());
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

describe('a SIGTERM that is sent again and again', () => {
  const SLEEP_MS = 10_000;
  const PARKED = 20;
  let sleeping: string;
  let parked: Promise<WorkerTask[]>[];
  let took: number;
  const tenant = api.tenant();

  before(async () => {
    sleeping = await tenant.run([sleep('a', SLEEP_MS)]);
    parked = Array.from({ length: PARKED }, () => tenant.poll(newHandler(), { wait_ms: 30_000 }));
    // Answered after the polls were received: they came first on their own connections.
    await eventually(async () => {
      const workers = await tenant.get<unknown[]>('/workers');
      assert.equal(workers.body.length, 1);
    });
    // These connections stay open.
    await Promise.all(Array.from({ length: 30 }, () => tenant.get('/instances')));
    const began = performance.now();
    // Signals that come before the first is handled count as one.
    await eventually(() => {
      api.engine.signal('SIGTERM');
      assert.ok(!api.engine.isRunning());
    });
    took = performance.now() - began;
  });

  test('does not cut the stop short, and idle connections do not hold the process', async () => {
    assert.deepEqual(await api.engine.exited, { code: 0, signal: null });
    assert.ok(took < EXIT_MS_MAX, `${took} ms`);
  });

  test('has parked polls answered [] at once', async () => {
    assert.deepEqual(await Promise.all(parked), Array(PARKED).fill([]));
  });

  test('does not wait for steps in flight, which run again after the restart', async () => {
    await api.restart();
    await tenant.until(sleeping, 'completed');
  });
});
