/** Timers, pauses, time-outs and the order of polls, over HTTP. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  forEach,
  type Json,
  loop,
  newHandler,
  parallel,
  race,
  router,
  sleep,
  step,
  type Tenant,
  tryCatch,
  useSharedApi,
} from '../helpers/api.js';
import { expectStatus } from '../helpers/client.js';

/** Never over within a test. */
const LONG_MS = 600_000;

const api = useSharedApi();

const delayed = (id: string, duration: number) => step(id, 'noop', { delay: { duration } });
const startOf = async (tenant: Tenant, id: string, block: string) =>
  Date.parse((await tenant.tree(id))[block]?.started_at ?? '');
const endOf = async (tenant: Tenant, id: string, block: string) =>
  Date.parse((await tenant.tree(id))[block]?.completed_at ?? '');

describe('Delay, rate limit, timeout, retry: Work the same at every depth of the tree', () => {
  const data = { yes: true, items: ['x'] };
  /** The block inside one of every kind, reached once. */
  const deep = (block: Json) => [
    parallel('p', [
      race('r', [
        [
          router('q', {
            yes: [
              tryCatch(
                't',
                [step('x', 'fail')],
                [forEach('f', 'items', [loop('l', 'yes', [block], 1)])],
              ),
            ],
          }),
        ],
      ]),
    ]),
  ];
  const depths: readonly [string, (block: Json) => Json[]][] = [
    ['at the root', (block) => [block]],
    ['deep down', deep],
  ];
  for (const [where, at] of depths) {
    describe(where, () => {
      test('delay', async () => {
        const tenant = api.tenant();
        const id = await tenant.run(at(delayed('a', LONG_MS)), { context: { data } });
        const { state, next_fire_at } = await tenant.instance(id);
        assert.equal(state, 'scheduled');
        const wait = Date.parse(next_fire_at ?? '') - (await startOf(tenant, id, 'a'));
        assert.equal(wait, LONG_MS);
        await tenant.move(id, 'running');
        await tenant.until(id, 'completed');
      });

      test('timeout', async () => {
        const tenant = api.tenant();
        const handler = newHandler();
        const id = await tenant.run(at(step('a', handler, { timeout: 100 })), {
          context: { data },
        });
        await tenant.task(handler);
        await tenant.until(id, 'failed');
        assert.match((await tenant.tasks(handler))[0]?.error_message ?? '', /timed out/);
      });

      test('retry', async () => {
        const tenant = api.tenant();
        const handler = newHandler();
        const retry = { max_attempts: 2, initial_backoff: LONG_MS, max_backoff: LONG_MS };
        const id = await tenant.run(at(step('a', handler, { retry })), { context: { data } });
        await tenant.fail(await tenant.task(handler), 'busy', true);
        assert.equal((await tenant.instance(id)).state, 'scheduled');
        await tenant.move(id, 'running');
        const last = await tenant.task(handler);
        assert.equal(last.attempt, 1);
        await tenant.fail(last, 'busy', true);
        await tenant.until(id, 'failed');
      });

      test('rate limit', async () => {
        const tenant = api.tenant();
        const limit = { max_count: 1, window_seconds: 3_600 };
        expectStatus(await tenant.put('/rate-limits/k', limit), 200);
        const blocks = at(step('a', 'noop', { rate_limit_key: 'k' }));
        const first = await tenant.runUntil('completed', blocks, data);
        const second = await tenant.runUntil('scheduled', blocks, data);
        const row = (await tenant.outputs(first)).find(({ block_id }) => block_id === 'a');
        const { next_fire_at } = await tenant.instance(second);
        // The grant, from which the window counts, and the end of the step are told by two threads.
        const wait = Date.parse(next_fire_at ?? '') - Date.parse(row?.created_at ?? '');
        assert.ok(Math.abs(wait - 3_600_000) < 60_000, `${wait} ms`);
        assert.equal((await tenant.nodeStates(second)).a, 'waiting');
      });
    });
  }
});

describe('`sleep`: A durable timer: it holds no thread and survives a restart with its deadline; `slept_ms` is the requested duration. The instance stays `running` and keeps its concurrency slot (`waiting` only when every open leaf is an external task or a gate). Pause and cancel act on it at once, protected sleeps excepted; after resume the old deadline counts. A `delay` makes the instance `scheduled` with the earliest wake as next_fire_at when nothing else of it is active', () => {
  test('it holds no thread: more sleep than handlers may run, and others go on', async () => {
    const tenant = api.tenant();
    const sequence = await tenant.sequence([sleep('a', LONG_MS)]);
    const instances = Array(1_000).fill(tenant.creation(sequence));
    expectStatus(await tenant.post('/instances/batch', { instances }), 201);
    await tenant.runUntil('completed', [sleep('a', 1), step('b', 'noop')]);
  });

  test('slept_ms is the requested duration', async () => {
    const tenant = api.tenant();
    const id = await tenant.runUntil('completed', [sleep('a', 37)]);
    assert.deepEqual(await tenant.outputsOf(id), { a: { slept_ms: 37 } });
  });

  test('the instance stays running; waiting only when every open leaf is an external task', async () => {
    const tenant = api.tenant();
    const [one, two] = [step('one', newHandler()), step('two', newHandler())];
    for (const [blocks, state] of [
      [[sleep('a', LONG_MS)], 'running'],
      [[parallel('p', [sleep('a', LONG_MS)], [one])], 'running'],
      [[parallel('p', [sleep('a', LONG_MS)], [delayed('b', LONG_MS)])], 'running'],
      [[parallel('p', [one], [two])], 'waiting'],
    ] as const) {
      assert.equal((await tenant.instance(await tenant.run(blocks))).state, state);
    }
  });

  test('it keeps its concurrency slot', async () => {
    const tenant = api.tenant();
    const sequence = await tenant.sequence([sleep('a', LONG_MS)]);
    const key = { concurrency_key: 'k', max_concurrency: 1 };
    const first = await tenant.create(sequence, key);
    await tenant.until(first, 'running');
    const second = await tenant.create(sequence, key);
    await tenant.runUntil('completed', [sleep('meanwhile', 100)]);
    assert.equal((await tenant.instance(second)).state, 'scheduled');
    await tenant.signal(first, 'cancel');
    await tenant.until(second, 'running');
  });

  test('pause acts at once, and after resume the old deadline counts', async () => {
    const tenant = api.tenant();
    const id = await tenant.run([sleep('a', 500), step('b', newHandler())]);
    await tenant.signal(id, 'pause');
    assert.equal((await tenant.instance(id)).state, 'paused');
    await tenant.runUntil('completed', [sleep('longer', 550)]);
    assert.equal((await tenant.instance(id)).state, 'paused');
    await tenant.signal(id, 'resume');
    const shorter = await tenant.runUntil('completed', [sleep('shorter', 300)]);
    await tenant.until(id, 'waiting');
    assert.ok((await endOf(tenant, id, 'a')) < (await endOf(tenant, shorter, 'shorter')));
  });

  test('cancel acts at once, protected sleeps excepted', async () => {
    const tenant = api.tenant();
    const id = await tenant.run([sleep('a', LONG_MS)]);
    await tenant.signal(id, 'cancel');
    assert.equal((await tenant.instance(id)).state, 'cancelled');
    const protectedSleep = sleep('a', 500, { cancellable: false });
    const guarded = await tenant.run([protectedSleep, step('b', newHandler())]);
    await tenant.signal(guarded, 'cancel');
    await tenant.until(guarded, 'cancelled');
    assert.deepEqual(await tenant.outputsOf(guarded), { a: { slept_ms: 500 } });
  });

  test('a delay makes the instance scheduled with the earliest wake', async () => {
    const tenant = api.tenant();
    const id = await tenant.run([
      parallel('p', [delayed('a', 2 * LONG_MS)], [delayed('b', LONG_MS)]),
    ]);
    const { state, next_fire_at } = await tenant.instance(id);
    const wait = Date.parse(next_fire_at ?? '') - (await startOf(tenant, id, 'b'));
    assert.deepEqual([state, wait], ['scheduled', LONG_MS]);
  });
});

describe('Pause while an external task is open: Completion and permanent failure are both applied (output, node, or the failed state of a step-only instance); otherwise the instance stays paused', () => {
  async function paused(blocks: (handler: string) => Json[]) {
    const tenant = api.tenant();
    const handler = newHandler();
    const id = await tenant.run(blocks(handler));
    const task = await tenant.task(handler);
    await tenant.signal(id, 'pause');
    return { tenant, id, task };
  }

  test('completion: output and node; the instance stays paused and goes on after resume', async () => {
    const { tenant, id, task } = await paused((handler) => [step('a', handler), step('b', 'noop')]);
    await tenant.complete(task, { n: 1 });
    assert.deepEqual(await tenant.outputsOf(id), { a: { n: 1 } });
    assert.deepEqual(await tenant.nodeStates(id), { a: 'completed', b: 'pending' });
    assert.equal((await tenant.instance(id)).state, 'paused');
    await tenant.signal(id, 'resume');
    await tenant.until(id, 'completed');
  });

  test('permanent failure: the failed state of a step-only instance', async () => {
    const { tenant, id, task } = await paused((handler) => [step('a', handler), step('b', 'noop')]);
    await tenant.fail(task, 'no');
    assert.equal((await tenant.instance(id)).state, 'failed');
    assert.deepEqual(await tenant.deadLetters(), [id]);
  });

  test('permanent failure: the node, and otherwise the instance stays paused', async () => {
    const { tenant, id, task } = await paused((handler) => [
      tryCatch('t', [step('a', handler)], [step('caught', 'noop')]),
    ]);
    await tenant.fail(task, 'no');
    assert.equal((await tenant.nodeStates(id)).a, 'failed');
    assert.equal((await tenant.instance(id)).state, 'paused');
    assert.deepEqual(await tenant.rowsOf(id), []);
    await tenant.signal(id, 'resume');
    await tenant.until(id, 'completed');
    assert.deepEqual(await tenant.rowsOf(id), ['caught']);
  });
});

test('Read-your-writes for workers: Once a reply has shown `waiting`, the next poll returns the task. A reply to complete or fail comes after the commit; the instance never reads `waiting` on that task again', async () => {
  const tenant = api.tenant();
  for (let round = 0; round < 40; round++) {
    // A new queue each time, on whichever shard, that nothing has woken before.
    const handler = newHandler();
    const id = await tenant.run([step('a', handler)]);
    assert.equal((await tenant.instance(id)).state, 'waiting');
    const [task] = await tenant.poll(handler);
    assert.equal(task?.instance_id, id);
    if (round % 2 === 0) await tenant.complete(task);
    else await tenant.fail(task, 'no');
    const { state } = await tenant.instance(id);
    assert.equal(state, round % 2 === 0 ? 'completed' : 'failed');
  }
});

test('Poll order: Priority of the instance, then age of the task', async () => {
  const tenant = api.tenant();
  const handler = newHandler();
  const sequence = await tenant.sequence([step('a', handler)]);
  const ids: Record<string, string[]> = { low: [], normal: [], high: [], critical: [] };
  for (const priority of [
    'high',
    'low',
    'critical',
    'normal',
    'low',
    'normal',
    'critical',
    'high',
  ]) {
    ids[priority]?.push(await tenant.create(sequence, { priority }));
  }
  const tasks = await tenant.poll(handler, { limit: 10 });
  assert.deepEqual(
    tasks.map((task) => task.instance_id),
    ['critical', 'high', 'normal', 'low'].flatMap((priority) => ids[priority] ?? []),
  );
});
