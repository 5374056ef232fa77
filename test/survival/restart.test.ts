/**
 * What outlives SIGKILL: records, tasks with their claims, timers, steps in flight. Everything is set
 * up first, then the server is killed, kept down for a while, started again, and looked at.
 */

import assert from 'node:assert/strict';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before } from 'node:test';
import type { EffectReceipt } from '../../schema/continuity.js';
import type { WorkerAttempt } from '../../schema/worker.js';
import { eventually, newHandler, parallel, step, useApi } from '../helpers/api.js';
import { column, columns } from '../helpers/columns.js';
import { survival } from '../helpers/survival.js';

const FAR = '2100-01-01T00:00:00.000Z';
/** The server is down for longer: without counting from readiness the claims would be over. */
const STALE_MS = 5_000;

const api = useApi({
  env: {
    ENGINE_SHARDS: '2',
    ENGINE_ALLOW_INTERNAL_URLS: 'true',
    ENGINE_WORKER_REAPER_STALE_SECS: String(STALE_MS / 1_000),
    ENGINE_WORKER_REAPER_TICK_SECS: '1',
  },
});
/** When the second process wrote this line. */
const toldAt = (message: 'listening' | 'ready'): number => {
  const line = api.engine.logs().find(({ msg }) => msg === message);
  return Date.parse(String(line?.time));
};
/** Requests to the outside, by path; they wait for their answer. */
const held = new Map<string, { response: ServerResponse; token: string }[]>();
const server = createServer((request, response) => {
  const path = request.url ?? '';
  const token = String(request.headers['idempotency-key']);
  held.set(path, [...(held.get(path) ?? []), { response, token }]);
});
const urlOf = (path: string) => `http://127.0.0.1:${(server.address() as AddressInfo).port}${path}`;
const requestsTo = (path: string) => held.get(path) ?? [];

before(async () => {
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
});
after(() => {
  server.closeAllConnections();
  server.close();
});

const survives = survival(api, STALE_MS);

survives('a claim with its checkpoint: its worker completes the task', async (tenant) => {
  const handler = newHandler();
  const id = await tenant.run([step('a', handler), step('b', 'noop')]);
  const task = await tenant.task(handler);
  const beat = { worker_id: 'w1', claim_epoch: 1 };
  const path = `/workers/tasks/${task.id}/heartbeat`;
  await tenant.post(path, { ...beat, checkpoint: { page: 3 }, checkpoint_seq: 0 });
  return async () => {
    const [again] = await tenant.poll(handler, { worker_id: 'w1' });
    // Either the claim still holds, or silence returned the task with its checkpoint.
    if (again === undefined) {
      assert.deepEqual((await tenant.post(path, beat)).body, { checkpoint_seq: 1 });
    } else {
      assert.deepEqual([again.id, again.resume_checkpoint], [task.id, { page: 3 }]);
    }
    await tenant.complete(again ?? task, { ok: true });
    await tenant.until(id, 'completed');
  };
});

survives('a hook that was at work: it is called again, with the same token', async (tenant) => {
  const [handler, path] = [newHandler(), '/hook'];
  const call = step('call', 'http_request', { params: { url: urlOf(path) } });
  const hooks = { on_failure: [call, step('last', 'noop')] };
  const id = await tenant.create(await tenant.sequence([step('a', handler)], hooks));
  await tenant.fail(await tenant.task(handler), 'no');
  await eventually(() => assert.equal(requestsTo(path).length, 1));
  return async () => {
    await eventually(() => assert.equal(requestsTo(path).length, 2));
    const [first, again] = requestsTo(path);
    assert.equal(again?.token, first?.token);
    again?.response.end('told');
    await eventually(async () => assert.deepEqual(await tenant.rowsOf(id), ['call', 'last']));
    assert.equal((await tenant.instance(id)).state, 'failed');
  };
});

survives('pending tasks, in their order', async (tenant) => {
  const handler = newHandler();
  const sequence = await tenant.sequence([step('a', handler)]);
  const low = await tenant.create(sequence, { priority: 'low' });
  const high = await tenant.create(sequence, { priority: 'high' });
  return async () => {
    const tasks = await tenant.poll(handler, { limit: 5 });
    assert.deepEqual(column(tasks, 'instance_id'), [high, low]);
  };
});

survives('instances of every state with outputs, trees, audit and timelines', async (tenant) => {
  const external = await tenant.sequence([step('a', 'noop'), step('b', newHandler())]);
  const ids: Record<string, string> = {
    completed: await tenant.run([step('a', 'transform', { params: { n: 1 } })]),
    failed: await tenant.run([step('a', 'noop'), step('b', 'fail')]),
    scheduled: await tenant.create(external, { next_fire_at: FAR, priority: 'high' }),
    waiting: await tenant.create(external, { context: { data: { x: ['é'] } } }),
    paused: await tenant.create(external),
    cancelled: await tenant.create(external, { metadata: { a: { b: null } } }),
    running: await tenant.run([step('a', 'sleep', { params: { duration_ms: 600_000 } })]),
  };
  await tenant.post(`/instances/${ids.paused}/signals`, { signal_type: 'pause' });
  await tenant.post(`/instances/${ids.cancelled}/signals`, { signal_type: 'cancel' });
  await tenant.patch(`/instances/${ids.waiting}/context`, { context: { audit: [{ n: 1 }] } });
  for (const [state, id] of Object.entries(ids)) await tenant.until(id, state);
  const parts = ['', '/outputs', '/tree', '/audit', '/timeline'];
  const paths = [
    ...['/instances', '/instances/dlq', '/workers/tasks', '/workers/tasks/stats', '/sequences'],
    ...Object.values(ids).flatMap((id) => parts.map((part) => `/instances/${id}${part}`)),
  ];
  const read = () =>
    Promise.all(paths.map(async (path) => [path, (await tenant.get(path)).body] as const));
  const told = await read();
  return async () => assert.deepEqual(await read(), told);
});

survives('an idempotency key', async (tenant) => {
  const sequence = await tenant.sequence([step('a', 'noop')]);
  const body = tenant.creation(sequence, { idempotency_key: 'over the kill' });
  const first = await tenant.post<{ id: string }>('/instances', body);
  return async () => {
    const second = await tenant.post('/instances', body);
    assert.deepEqual(second.body, { id: first.body.id, deduplicated: true });
  };
});

survives('the history of a task whose step has been dispatched again', async (tenant) => {
  const handler = newHandler();
  await tenant.run([step('a', handler)]);
  const task = await tenant.task(handler);
  await tenant.fail(task, 'later', true);
  const path = `/workers/tasks/${task.id}/attempts`;
  const told = (await tenant.get(path)).body;
  return async () => assert.deepEqual((await tenant.get(path)).body, told);
});

survives('`sleep`: A durable timer: it survives a restart with its deadline', async (tenant) => {
  const durationMs = 2 * STALE_MS;
  const id = await tenant.run([step('a', 'sleep', { params: { duration_ms: durationMs } })]);
  const { created_at } = await tenant.instance(id);
  return async () => {
    await tenant.until(id, 'completed');
    const rows = await tenant.get<{ created_at: string; output: unknown }[]>(
      `/instances/${id}/outputs`,
    );
    assert.deepEqual(rows.body[0]?.output, { slept_ms: durationMs });
    const endedAt = Date.parse(rows.body[0]?.created_at ?? '');
    const slept = endedAt - Date.parse(created_at);
    assert.ok(slept >= durationMs, `slept for ${slept} ms`);
    // One that began anew would take all of its time from there on.
    const left = endedAt - toldAt('ready');
    assert.ok(left < durationMs - STALE_MS / 2, `slept for ${left} ms after the start`);
  };
});

survives(
  '`timeout` of a step: Durable: it passes while the server is down, as do delays, back-offs and starts',
  async (tenant) => {
    const soon = { duration: STALE_MS / 2 };
    const delayed = await tenant.run([step('a', 'noop', { delay: soon })]);
    const retry = { max_attempts: 2, initial_backoff: STALE_MS / 2 };
    const retried = await tenant.run([step('a', 'fail', { params: { retryable: true }, retry })]);
    const handler = newHandler();
    const timed = await tenant.run([step('a', handler, { timeout: STALE_MS / 2 })]);
    await tenant.task(handler);
    const unclaimed = await tenant.run([step('a', newHandler(), { queue_timeout: STALE_MS / 2 })]);
    const late = await tenant.run([step('a', newHandler(), { deadline: STALE_MS / 2 })]);
    const block = { ...parallel('p', [step('a', newHandler())]), timeout: STALE_MS / 2 };
    const blocked = await tenant.run([block]);
    const whole = await tenant.run([step('a', newHandler())], { timeout: STALE_MS / 2 });
    const retriedInTime = await tenant.run([
      step('a', newHandler(), {
        queue_timeout: STALE_MS / 2,
        retry: { max_attempts: 2, initial_backoff: 1 },
      }),
    ]);
    const started = await tenant.run([step('a', 'noop')], {
      next_fire_at: new Date(Date.now() + STALE_MS / 2).toISOString(),
    });
    return async () => {
      await tenant.until(delayed, 'completed');
      await tenant.until(started, 'completed');
      await tenant.until(retried, 'failed');
      for (const id of [timed, unclaimed, late, blocked, whole]) await tenant.until(id, 'failed');
      await tenant.until(retriedInTime, 'failed');
      assert.equal((await tenant.outputs(retried))[0]?.attempt, 1);
    };
  },
);

survives(
  'a paused instance: its tasks are not offered, and its limits stand still',
  async (tenant) => {
    const handler = newHandler();
    const id = await tenant.run([
      { ...parallel('p', [step('a', handler)]), timeout: 2 * STALE_MS },
    ]);
    await tenant.signal(id, 'pause');
    return async () => {
      assert.deepEqual(await tenant.poll(handler), []);
      assert.equal((await tenant.instance(id)).state, 'paused');
      await tenant.signal(id, 'resume');
      await tenant.complete(await tenant.task(handler));
      await tenant.until(id, 'completed');
    };
  },
);

survives(
  'what a missed deadline calls: it is called again, though its instance has ended',
  async (tenant) => {
    const path = '/breach';
    const params = { url: urlOf(path), timeout_ms: 25_000 };
    const id = await tenant.run([
      step('a', newHandler(), {
        deadline: 1,
        on_deadline_breach: { handler: 'http_request', params },
      }),
    ]);
    await tenant.until(id, 'failed');
    await eventually(() => assert.equal(requestsTo(path).length, 1));
    return () => eventually(() => assert.equal(requestsTo(path).length, 2));
  },
);

survives(
  'a step in flight: it runs again with the same attempt, token and receipt',
  async (tenant) => {
    const path = '/in-flight';
    const id = await tenant.run([
      step('a', 'noop'),
      step('b', 'http_request', {
        params: { url: urlOf(path), method: 'POST', timeout_ms: 60_000 },
      }),
      step('c', 'noop'),
    ]);
    await eventually(() => assert.equal(requestsTo(path).length, 1));
    assert.equal((await tenant.instance(id)).state, 'running');
    const receipts = async () =>
      (await tenant.get<EffectReceipt[]>(`/instances/${id}/effects`)).body.map(
        ({ updated_at: _, ...receipt }) => receipt,
      );
    const [receipt] = await receipts();
    assert.ok(receipt);
    return async () => {
      await eventually(() => assert.equal(requestsTo(path).length, 2));
      const [first, second] = requestsTo(path);
      assert.equal(second?.token, first?.token);
      assert.notEqual(first?.token, 'undefined');
      second?.response.end('done');
      await tenant.until(id, 'completed');
      assert.deepEqual(columns(await tenant.outputs(id), 'block_id', 'attempt'), [
        ['a', 0],
        ['b', 0],
        ['c', 0],
      ]);
      assert.equal(requestsTo(path).length, 2);
      assert.deepEqual(await receipts(), [{ ...receipt, state: 'committed' }]);
    };
  },
);

survives('a cancelled instance does not run its step again', async (tenant) => {
  const path = '/cancelled';
  const params = { url: urlOf(path), timeout_ms: 60_000 };
  const id = await tenant.run([step('a', 'http_request', { params })]);
  await eventually(() => assert.equal(requestsTo(path).length, 1));
  await tenant.post(`/instances/${id}/signals`, { signal_type: 'cancel' });
  await tenant.until(id, 'cancelled');
  return async () => {
    const later = await tenant.run([step('a', 'sleep', { params: { duration_ms: 100 } })]);
    await tenant.until(later, 'completed');
    assert.equal(requestsTo(path).length, 1);
  };
});

survives('a batch that was half done: the rest is done, nothing twice', async (tenant) => {
  const sequence = await tenant.sequence([
    step('a', 'noop'),
    step('b', 'sleep', { params: { duration_ms: 5 } }),
    step('c', 'noop'),
  ]);
  const size = 1_000;
  await tenant.post('/instances/batch', { instances: Array(size).fill(tenant.creation(sequence)) });
  const completed = async () =>
    (await tenant.get<{ id: string }[]>('/instances?state=completed&limit=1000')).body;
  await eventually(async () => assert.ok((await completed()).length > 0));
  return async () => {
    await eventually(async () => assert.equal((await completed()).length, size));
    for (const { id } of (await completed()).filter((_, index) => index % 20 === 0)) {
      assert.deepEqual(column(await tenant.outputs(id), 'block_id'), ['a', 'b', 'c']);
    }
  };
});

// Last, so that the kill follows: on a busy machine the others take longer than a claim may be silent.
survives(
  'a claim: silence counts from readiness, then the task is offered again',
  async (tenant) => {
    const handler = newHandler();
    await tenant.run([step('a', handler)]);
    const task = await tenant.task(handler);
    return async () => {
      const again = await tenant.task(handler, { worker_id: 'w2' });
      assert.deepEqual([again.id, again.claim_epoch], [task.id, 2]);
      const { body } = await tenant.get<WorkerAttempt[]>(`/workers/tasks/${task.id}/attempts`);
      const events = body.map(({ event, claim_epoch }) => [event, claim_epoch]);
      assert.deepEqual(events, [
        ['claimed', 1],
        ['reclaimed', 1],
        ['claimed', 2],
      ]);
      // It listens before it is ready.
      const silence = Date.parse(body[1]?.created_at ?? '') - toldAt('listening');
      assert.ok(silence >= STALE_MS, `returned ${silence} ms after the start`);
    };
  },
);
