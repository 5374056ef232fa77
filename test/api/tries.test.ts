/** Tries, back-off, time-outs and their tasks, over HTTP. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import pg from 'pg';
import type { WorkerAttempt, WorkerTask } from '../../schema/worker.js';
import {
  eventually,
  forEach,
  type Json,
  loop,
  newHandler,
  parallel,
  race,
  sleep,
  step,
  type Tenant,
  tryCatch,
  useSharedApi,
} from '../helpers/api.js';

const CALLS = ['complete', 'fail', 'heartbeat'] as const;
const QUICK = { max_attempts: 3, initial_backoff: 1, max_backoff: 1 };
/** Never over within a test. */
const LONG_MS = 600_000;

const api = useSharedApi();

describe('Retryable worker failure of a step with `retry`: Tries in total = max_attempts; the wait before try n+1 is the back-off formula, for external steps too. Meanwhile the instance is `scheduled` with that next_fire_at if nothing else of it is active, and the new task exists only when the wait ends. Exhausted = permanent failure. `initial_backoff` defaults to 1,000 ms, `max_backoff` to 60,000 ms, `backoff_multiplier` to 2', () => {
  const busy = (retry: Json) => step('a', 'fail', { params: { retryable: true }, retry });

  test('tries in total are max_attempts, in the process and at workers', async () => {
    const tenant = api.tenant();
    const own = await tenant.runUntil('failed', [busy(QUICK)]);
    assert.deepEqual(
      (await tenant.outputs(own)).map((row) => row.attempt),
      [2],
    );
    const handler = newHandler();
    const id = await tenant.run([step('a', handler, { retry: QUICK })]);
    for (const attempt of [0, 1, 2]) {
      const task = await tenant.task(handler);
      assert.equal(task.attempt, attempt);
      await tenant.fail(task, 'busy', true);
    }
    await tenant.until(id, 'failed');
    assert.deepEqual(await tenant.poll(handler), []);
  });

  /** The waits before the tries 2, 3 …, each cut short by a move. */
  async function waits(retry: Json, count: number): Promise<number[]> {
    const tenant = api.tenant();
    const id = await tenant.run([busy({ max_attempts: count + 1, ...retry })]);
    const found: number[] = [];
    for (let attempt = 0; attempt < count; attempt++) {
      const { state, next_fire_at, context } = await eventually(async () => {
        const instance = await tenant.instance(id);
        assert.equal(instance.context.runtime.attempt, attempt);
        return instance;
      });
      assert.equal(state, 'scheduled');
      const triedAt = Date.parse(context.runtime.current_step_started_at ?? '');
      found.push(Date.parse(next_fire_at ?? '') - triedAt);
      await tenant.move(id, 'running');
    }
    await tenant.until(id, 'failed');
    return found;
  }

  test('the defaults of the formula', async () => {
    const expected = [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000];
    assert.deepEqual(await waits({}, expected.length), expected);
  });

  test('the formula: min(initial_backoff * multiplier ^ attempt, max_backoff)', async () => {
    const retry = { initial_backoff: 20_000, max_backoff: 60_000, backoff_multiplier: 1.5 };
    assert.deepEqual(await waits(retry, 4), [20_000, 30_000, 45_000, 60_000]);
  });

  /** When the only try of the task was reported as failed, by the engine's clock. */
  async function failedAt(tenant: Tenant, task: WorkerTask): Promise<number> {
    await tenant.fail(task, 'busy', true);
    const { body } = await tenant.get<WorkerAttempt[]>(`/workers/tasks/${task.id}/attempts`);
    return Date.parse(body.find((entry) => entry.event === 'failed')?.created_at ?? '');
  }

  test('for external steps too: scheduled meanwhile, and the new task exists only afterwards', async () => {
    const tenant = api.tenant();
    const handler = newHandler();
    const retry = { max_attempts: 2, initial_backoff: LONG_MS, max_backoff: LONG_MS };
    const id = await tenant.run([step('a', handler, { retry })]);
    const from = await failedAt(tenant, await tenant.task(handler));
    const { state, next_fire_at } = await tenant.instance(id);
    assert.equal(state, 'scheduled');
    const wait = Date.parse(next_fire_at ?? '') - from;
    // The report and the back-off read the clock one after the other.
    assert.ok(wait >= LONG_MS && wait < LONG_MS + 1_000, `${wait} ms`);
    assert.deepEqual(await tenant.tasks(handler), []);
    assert.deepEqual(await tenant.poll(handler), []);
    await tenant.move(id, 'running');
    assert.equal((await tenant.task(handler)).attempt, 1);
  });

  test('a wait that is over by itself: the task is made at its end', async () => {
    const tenant = api.tenant();
    const handler = newHandler();
    await tenant.run([step('a', handler, { retry: { max_attempts: 2, initial_backoff: 150 } })]);
    const from = await failedAt(tenant, await tenant.task(handler));
    assert.ok(Date.parse((await tenant.task(handler)).created_at) >= from + 150);
  });

  test('not scheduled while something else of the instance is active', async () => {
    const tenant = api.tenant();
    const retry = { max_attempts: 2, initial_backoff: LONG_MS, max_backoff: LONG_MS };
    const id = await tenant.run([parallel('p', [busy(retry)], [sleep('b', LONG_MS)])]);
    assert.equal((await tenant.instance(id)).state, 'running');
    assert.equal((await tenant.nodeStates(id)).a, 'waiting');
  });

  test('exhausted is a permanent failure, which a try_catch can catch', async () => {
    const tenant = api.tenant();
    const caught = tryCatch('t', [busy(QUICK)], [step('caught', 'noop')]);
    const id = await tenant.runUntil('completed', [caught]);
    assert.deepEqual(await tenant.rowsOf(id), ['a', 'caught']);
  });
});

describe('Wrong worker, no epoch sent: 404; with epoch 409', () => {
  for (const name of CALLS) {
    test(name, async () => {
      const tenant = api.tenant();
      const handler = newHandler();
      await tenant.run([step('a', handler)]);
      const task = await tenant.task(handler);
      const wrong = { worker_id: 'wrong' };
      assert.equal(await tenant.call(name, task, wrong), 404);
      assert.equal(await tenant.call(name, task, { ...wrong, claim_epoch: 1 }), 409);
      assert.equal(await tenant.call(name, task, { claim_epoch: 2 }), 409);
      assert.equal(await tenant.call(name, task, { claim_epoch: 0 }), 409);
      assert.equal((await tenant.instance(task.instance_id)).state, 'waiting');
      assert.equal(await tenant.call(name, task), 200);
    });
  }
});

describe('`timeout` of a step: Durable. The task of an external step ends `failed` (late calls get 404/409); the step fails retryably under its `retry`, and without `retry` it is a final step failure', {
  concurrency: true,
}, () => {
  test('without `retry` it is a final step failure, and the task ends failed', async () => {
    const tenant = api.tenant();
    const handler = newHandler();
    const id = await tenant.run([step('a', handler, { timeout: 300 }), step('b', 'noop')]);
    await tenant.poll(handler);
    await tenant.until(id, 'failed');
    const [task] = await tenant.tasks(handler);
    assert.ok(task);
    assert.deepEqual([task.state, task.timeout_ms], ['failed', 300]);
    for (const name of CALLS) {
      const late = { worker_id: 'w1' };
      assert.equal(await tenant.call(name, task, late), 404, name);
      assert.equal(await tenant.call(name, task, { ...late, claim_epoch: 1 }), 409, name);
    }
    assert.deepEqual(await tenant.rowsOf(id), []);
    assert.deepEqual(await tenant.deadLetters(), [id]);
    const events = (await tenant.attempts(task.id)).map(([event]) => event);
    assert.deepEqual(events.slice(0, 2), ['claimed', 'timed_out']);
    assert.match(task.error_message ?? '', /timed out/);
  });

  /** The task of a try that has timed out, and that of the next one. */
  async function timedOut() {
    const tenant = api.tenant();
    const handler = newHandler();
    // More tries than needed: on a busy machine some of them time out before they are claimed.
    const retry = { max_attempts: 50, initial_backoff: 1, max_backoff: 1 };
    const id = await tenant.run([step('a', handler, { timeout: 300, retry })]);
    const first = await tenant.task(handler);
    return { tenant, id, handler, first, second: await tenant.task(handler) };
  }

  test('under its `retry` the step fails retryably: the next try is a new task', async () => {
    const { tenant, id, first, second } = await timedOut();
    assert.ok(second.id !== first.id && second.attempt > first.attempt);
    assert.equal(await tenant.call('complete', first), 404);
    assert.equal(await tenant.call('complete', first, { claim_epoch: 1 }), 409);
    const { state } = await tenant.instance(id);
    assert.ok(state !== 'failed' && state !== 'completed', state);
  });

  test('what is dispatched again leaves the list, as after any failure', async () => {
    const { tenant, handler } = await timedOut();
    assert.ok((await tenant.tasks(handler)).length <= 1);
  });

  test('a step of the process likewise', async () => {
    const tenant = api.tenant();
    const id = await tenant.runUntil('failed', [
      sleep('a', LONG_MS, { timeout: 50, retry: QUICK }),
    ]);
    const [row] = await tenant.outputs(id);
    assert.deepEqual([row?.attempt, row?.output.retryable], [2, true]);
  });
});

describe("Attempt numbers: Outside loops the output's `attempt` is the try (0-based), equal to the task's. Inside loop and for_each bodies rows count 0, 1, 2 … per block over the iterations, the iteration path and the try are stored beside; tries are counted per iteration", () => {
  const retry = { max_attempts: 2, initial_backoff: 1, max_backoff: 1 };

  /** Lets every second try succeed, `count` times; gives the tries as the tasks tell them. */
  async function work(tenant: Tenant, handler: string, count: number): Promise<number[]> {
    const tries: number[] = [];
    for (let index = 0; index < 2 * count; index++) {
      const task = await tenant.task(handler);
      tries.push(task.attempt);
      if (index % 2 === 0) await tenant.fail(task, 'busy', true);
      else await tenant.complete(task);
    }
    return tries;
  }
  const attemptsOf = async (tenant: Tenant, id: string) =>
    (await tenant.outputs(id)).filter((row) => row.block_id === 'a').map((row) => row.attempt);

  test('outside loops', async () => {
    const tenant = api.tenant();
    const handler = newHandler();
    const id = await tenant.run([step('a', handler, { retry })]);
    assert.deepEqual(await work(tenant, handler, 1), [0, 1]);
    await tenant.until(id, 'completed');
    assert.deepEqual(await attemptsOf(tenant, id), [1]);
  });

  test('inside loop and for_each bodies', async () => {
    const tenant = api.tenant();
    const handler = newHandler();
    const body = loop('l', 'true', [step('a', handler, { retry })], 2);
    const id = await tenant.run([forEach('f', 'items', [body])], {
      context: { data: { items: ['x', 'y'] } },
    });
    assert.deepEqual(await work(tenant, handler, 4), [0, 1, 0, 1, 0, 1, 0, 1]);
    await tenant.until(id, 'completed');
    assert.deepEqual(await attemptsOf(tenant, id), [0, 1, 2, 3]);
    assert.deepEqual(await storedBeside(id, 'a'), [
      ['0.0', 1],
      ['0.1', 1],
      ['1.0', 1],
      ['1.1', 1],
    ]);
  });

  /** Iteration path and try of each row of a block: what the routes do not show. */
  async function storedBeside(id: string, block: string): Promise<[string, number][]> {
    const client = new pg.Client({ connectionString: api.database.connectionString });
    await client.connect();
    try {
      const { rows } = await client.query<{ iteration: string; try: number }>(
        'select iteration, try from block_outputs where instance_id = $1 and block_id = $2 order by attempt',
        [id, block],
      );
      return rows.map((row) => [row.iteration, row.try]);
    } finally {
      await client.end();
    }
  }
});

describe('Worker task of a cancelled branch: Not offered, not listed; late calls get 404/409 and an attempt entry (at most 100 a task); the history stays', () => {
  /** A race that the other branch has won; the tasks of the loser were claimed and pending. */
  async function lost() {
    const tenant = api.tenant();
    const [loser, winner] = [newHandler(), newHandler()];
    const branches = [[step('claimed', loser)], [step('pending', loser)], [step('won', winner)]];
    const id = await tenant.run([race('r', branches)]);
    const task = await tenant.task(loser);
    const pending = (await tenant.tasks(loser)).find((listed) => listed.id !== task.id);
    assert.ok(pending);
    await tenant.complete(await tenant.task(winner));
    await tenant.until(id, 'completed');
    return { tenant, loser, task, pending };
  }

  test('not offered, not listed', async () => {
    const { tenant, loser } = await lost();
    assert.deepEqual(await tenant.poll(loser, { limit: 10 }), []);
    assert.deepEqual(await tenant.tasks(loser), []);
  });

  test('late calls get 404/409 and an attempt entry; the history stays', async () => {
    const { tenant, task, pending } = await lost();
    for (const name of CALLS) {
      assert.equal(await tenant.call(name, task), 404, name);
      assert.equal(await tenant.call(name, task, { claim_epoch: 1 }), 409, name);
    }
    assert.deepEqual(await tenant.attempts(task.id), [
      ['claimed', 1],
      ['cancelled', 1],
      ...Array(3).fill(['stale_mutation_rejected', 1]),
    ]);
    const late = { worker_id: 'w1', claim_epoch: 0 };
    assert.equal(await tenant.call('complete', pending, late), 409);
    assert.deepEqual(
      (await tenant.attempts(pending.id)).map(([event]) => event),
      ['cancelled', 'stale_mutation_rejected'],
    );
  });

  test('at most 100 entries a task', async () => {
    const { tenant, task } = await lost();
    const calls = Array.from({ length: 110 }, () => tenant.call('fail', task, { claim_epoch: 1 }));
    assert.deepEqual(new Set(await Promise.all(calls)), new Set([409]));
    assert.equal((await tenant.attempts(task.id)).length, 100);
  });
});
