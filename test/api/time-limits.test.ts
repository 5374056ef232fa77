/** Limits of time, timers, pauses and the order of polls, over HTTP. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { CronSchedule, ScheduleRun } from '../../schema/cron.js';
import type { InstanceExplanation } from '../../schema/explanation.js';
import type { TaskInstance } from '../../schema/instance.js';
import type { WorkerAttempt, WorkerTask } from '../../schema/worker.js';
import {
  eventually,
  FAR,
  forEach,
  type Json,
  LONG_MS,
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
import { column } from '../helpers/columns.js';

const api = useSharedApi();
const tenant = api.tenant();

const delayed = (id: string, duration: number) => step(id, 'noop', { delay: { duration } });
const startOf = async (tenant: Tenant, id: string, block: string) =>
  Date.parse((await tenant.tree(id))[block]?.started_at ?? '');
const endOf = async (tenant: Tenant, id: string, block: string) =>
  Date.parse((await tenant.tree(id))[block]?.completed_at ?? '');

describe('Delay, rate limit, timeout and retry work at every depth of the tree', () => {
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
        const id = await tenant.run(at(delayed('a', LONG_MS)), { context: { data } });
        const { next_fire_at } = await tenant.until(id, 'scheduled');
        assert.equal(Date.parse(next_fire_at ?? '') - (await startOf(tenant, id, 'a')), LONG_MS);
        await tenant.move(id, 'running');
        await tenant.until(id, 'completed');
      });

      test('timeout', async () => {
        const handler = newHandler();
        const id = await tenant.run(at(step('a', handler, { timeout: 100 })), {
          context: { data },
        });
        await tenant.task(handler);
        await tenant.until(id, 'failed');
        assert.match((await tenant.tasks(handler))[0]?.error_message ?? '', /timed out/);
      });

      test('retry', async () => {
        const handler = newHandler();
        const retry = { max_attempts: 2, initial_backoff: LONG_MS, max_backoff: LONG_MS };
        const id = await tenant.run(at(step('a', handler, { retry })), { context: { data } });
        await tenant.fail(await tenant.task(handler), 'busy', true);
        await tenant.until(id, 'scheduled');
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

describe('`sleep` is a durable timer without a thread: the instance stays `running` and keeps its slot; pause and cancel apply at once, except to protected sleeps; after resume the old deadline counts. A `delay` makes an otherwise idle instance `scheduled`', () => {
  test('it holds no thread: more sleep than handlers may run, and others go on', async () => {
    const tenant = api.tenant();
    const sequence = await tenant.sequence([sleep('a', LONG_MS)]);
    const instances = Array(300).fill(tenant.creation(sequence));
    expectStatus(await tenant.post('/instances/batch', { instances }), 201);
    await tenant.runUntil('completed', [sleep('a', 1), step('b', 'noop')]);
  });

  test('the instance stays running; waiting only when every open leaf is an external task', async () => {
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

  test('pause acts at once, and after resume the old deadline counts', async () => {
    const id = await tenant.run([sleep('a', 250), step('b', newHandler())]);
    await tenant.signal(id, 'pause');
    assert.equal((await tenant.instance(id)).state, 'paused');
    await tenant.runUntil('completed', [sleep('longer', 300)]);
    assert.equal((await tenant.instance(id)).state, 'paused');
    await tenant.signal(id, 'resume');
    const shorter = await tenant.runUntil('completed', [sleep('shorter', 150)]);
    await tenant.until(id, 'waiting');
    assert.ok((await endOf(tenant, id, 'a')) < (await endOf(tenant, shorter, 'shorter')));
  });

  test('cancel acts at once, protected sleeps excepted', async () => {
    const id = await tenant.run([sleep('a', LONG_MS)]);
    await tenant.signal(id, 'cancel');
    assert.equal((await tenant.instance(id)).state, 'cancelled');
    const protectedSleep = sleep('a', 250, { cancellable: false });
    const guarded = await tenant.run([protectedSleep, step('b', newHandler())]);
    await tenant.signal(guarded, 'cancel');
    await tenant.until(guarded, 'cancelled');
    assert.deepEqual(await tenant.outputsOf(guarded), { a: { slept_ms: 250 } });
  });

  test('a delay makes the instance scheduled with the earliest wake', async () => {
    const id = await tenant.run([
      parallel('p', [delayed('a', 2 * LONG_MS)], [delayed('b', LONG_MS)]),
    ]);
    const { next_fire_at } = await tenant.until(id, 'scheduled');
    const wait = Date.parse(next_fire_at ?? '') - (await startOf(tenant, id, 'b'));
    assert.equal(wait, LONG_MS);
  });
});

describe('Pause with a claimed task: its completion or permanent failure is applied, and otherwise the instance stays paused', () => {
  async function paused(blocks: (handler: string) => Json[]) {
    const [tenant, handler] = [api.tenant(), newHandler()];
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

  test('permanent failure: the failed state, or the node of an instance that stays paused', async () => {
    const only = await paused((handler) => [step('a', handler), step('b', 'noop')]);
    await only.tenant.fail(only.task, 'no');
    assert.equal((await only.tenant.instance(only.id)).state, 'failed');
    const { tenant, id, task } = await paused((handler) => [
      tryCatch('t', [step('a', handler)], [step('caught', 'noop')]),
    ]);
    await tenant.fail(task, 'no');
    assert.equal((await tenant.nodeStates(id)).a, 'failed');
    assert.equal((await tenant.instance(id)).state, 'paused');
    await tenant.signal(id, 'resume');
    await tenant.until(id, 'completed');
    assert.deepEqual(await tenant.rowsOf(id), ['caught']);
  });
});

test('Workers read their writes: when a reply shows `waiting`, the next poll returns the task; complete and fail answer after the commit', async () => {
  for (let round = 0; round < 16; round++) {
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

test('Poll order: priority of the instance, then age of the task', async () => {
  const [tenant, handler] = [api.tenant(), newHandler()];
  const sequence = await tenant.sequence([step('a', handler)]);
  const ids: Record<string, string[]> = { low: [], normal: [], high: [], critical: [] };
  for (const priority of 'high low critical normal low normal critical high'.split(' ')) {
    ids[priority]?.push(await tenant.create(sequence, { priority }));
  }
  const tasks = await tenant.poll(handler, { limit: 10 });
  const expected = ['critical', 'high', 'normal', 'low'].flatMap((priority) => ids[priority] ?? []);
  assert.deepEqual(column(tasks, 'instance_id'), expected);
});

// ---------------------------------------------------------------- limits of time

const SHORT_MS = 150;

const codeOf = async (id: string) => (await tenant.instance(id)).failure?.code;
const explain = async (id: string) =>
  expectStatus(await tenant.get<InstanceExplanation>(`/instances/${id}/explain`), 200);

/** Resolves when time has passed by which a limit of so long, begun by now, is over. */
async function pass(ms: number): Promise<void> {
  await tenant.runUntil('completed', [sleep('clock', ms)]);
}

describe('Pause: tasks are not offered, timers do not fire and timeouts stand still; resume continues them, and a scheduled start in the future stays', {
  concurrency: true,
}, () => {
  test('an unclaimed task is listed and not offered until the resume; a claimed one goes on', async () => {
    const handler = newHandler();
    const id = await tenant.run([parallel('p', [step('a', handler)], [step('b', handler)])]);
    const held = await tenant.task(handler);
    await tenant.signal(id, 'pause');
    assert.deepEqual(await tenant.poll(handler), []);
    const states = (await tenant.tasks(handler)).map(({ state }) => state).sort();
    assert.deepEqual(states, ['claimed', 'pending']);
    await tenant.complete(held, { n: 1 });
    assert.equal((await tenant.instance(id)).state, 'paused');
    await tenant.signal(id, 'resume');
    await tenant.complete(await tenant.task(handler));
    await tenant.until(id, 'completed');
  });

  test('a poll that waits when the instance is paused gets its task at the resume', async () => {
    const handler = newHandler();
    const id = await tenant.run([step('a', handler)]);
    await tenant.signal(id, 'pause');
    const body = { handler_name: handler, worker_id: 'w', wait_ms: 60_000 };
    const waiting = tenant.post<WorkerTask[]>('/workers/tasks/poll', body);
    assert.equal((await tenant.move(id, 'scheduled')).state, 'scheduled');
    const [task] = (await waiting).body;
    assert.equal(task?.instance_id, id);
  });

  const resumes: Readonly<Record<string, (id: string, how: string) => Promise<unknown>>> = {
    'the signal': (id) => tenant.signal(id, 'resume'),
    'PATCH without next_fire_at': (id) => tenant.move(id, 'scheduled'),
    'a batch action': (_id, how) =>
      tenant.post('/instances/batch-action', {
        action: 'resume',
        filter: { states: ['paused'], metadata: { resumed: how } },
      }),
  };
  for (const [how, resume] of Object.entries(resumes)) {
    test(`a start in the future stays there when ${how} resumes`, async () => {
      const more = { next_fire_at: FAR, metadata: { resumed: how } };
      const id = await tenant.inState('paused', more);
      assert.equal((await tenant.instance(id)).next_fire_at, null);
      await resume(id, how);
      const { state, next_fire_at } = await tenant.instance(id);
      assert.deepEqual([state, next_fire_at], ['scheduled', FAR]);
    });
  }

  test('a delay that has not ended is shown at once', async () => {
    const id = await tenant.run([step('a', 'noop', { delay: { duration: LONG_MS } })]);
    const { next_fire_at } = await tenant.until(id, 'scheduled');
    await tenant.signal(id, 'pause');
    const resumed = await tenant.move(id, 'scheduled');
    assert.deepEqual([resumed.state, resumed.next_fire_at], ['scheduled', next_fire_at]);
  });

  test('limits of time go on with what was left', async () => {
    const limitMs = 500;
    const handler = newHandler();
    const ids = await Promise.all([
      tenant.run([{ ...parallel('p', [step('a', handler)]), timeout: limitMs }]),
      tenant.run([step('a', handler, { queue_timeout: limitMs })]),
      tenant.run([step('a', handler, { deadline: limitMs })]),
      tenant.run([step('a', handler)], { timeout: limitMs }),
      tenant.run([sleep('a', LONG_MS, { timeout: limitMs })]),
    ]);
    for (const id of ids) await tenant.signal(id, 'pause');
    await pass(limitMs);
    for (const id of ids) assert.equal((await tenant.instance(id)).state, 'paused');
    for (const id of ids) await tenant.signal(id, 'resume');
    for (const id of ids) await tenant.until(id, 'failed');
    const codes = await Promise.all(ids.map(codeOf));
    const expected = ['timeout', 'queue_timeout', 'deadline', 'instance_timeout', 'timeout'];
    assert.deepEqual(codes, expected);
  });

  test('a cancel withdraws what is not offered', async () => {
    const handler = newHandler();
    const id = await tenant.run([step('a', handler)]);
    await tenant.signal(id, 'pause');
    await tenant.signal(id, 'cancel');
    await tenant.until(id, 'cancelled');
    assert.deepEqual(await tenant.tasks(handler), []);
  });
});

describe('`timeout` of an external step counts from the claim, `queue_timeout` from the dispatch to the claim', {
  concurrency: true,
}, () => {
  test('a task may wait for a worker longer than its try may take', async () => {
    const handler = newHandler();
    const id = await tenant.run([step('a', handler, { timeout: SHORT_MS })]);
    await pass(2 * SHORT_MS);
    assert.equal((await tenant.instance(id)).state, 'waiting');
    assert.equal((await explain(id)).waiting_for[0]?.until, null);
    const task = await tenant.task(handler);
    assert.equal(task.timeout_ms, SHORT_MS);
    await tenant.until(id, 'failed');
    assert.equal(await codeOf(id), 'timeout');
    assert.equal(await tenant.call('complete', task), 404);
  });

  test('a task that nobody claims fails its try: it ends failed, and late claims find nothing', async () => {
    const handler = newHandler();
    const id = await tenant.run([step('a', handler, { queue_timeout: SHORT_MS })]);
    const { failure } = await tenant.until(id, 'failed');
    assert.equal(failure?.code, 'queue_timeout');
    assert.equal(failure?.message, `no worker claimed the task within ${SHORT_MS} ms`);
    assert.deepEqual(await tenant.poll(handler), []);
    const [task] = await tenant.tasks(handler);
    assert.ok(task);
    assert.deepEqual([task.state, task.error_retryable], ['failed', true]);
    const reply = await tenant.get<WorkerAttempt[]>(`/workers/tasks/${task.id}/attempts`);
    const seen = reply.body.map(({ event, reason }) => [event, /claimed/.test(reason ?? '')]);
    assert.deepEqual(seen, [['timed_out', true]]);
  });
});

describe('`timeout` works on every kind of block', { concurrency: true }, () => {
  const kinds: Readonly<Record<string, (inside: Json[]) => Json>> = {
    parallel: (inside) => parallel('b', inside),
    race: (inside) => ({ type: 'race', id: 'b', branches: [inside, [sleep('y', LONG_MS)]] }),
    router: (inside) => ({ type: 'router', id: 'b', routes: [], default: inside }),
    try_catch: (inside) => tryCatch('b', inside, [step('own', 'noop')]),
    loop: (inside) => loop('b', 'true', inside),
    for_each: (inside) => ({ type: 'for_each', id: 'b', collection: 'items', body: inside }),
  };
  for (const [kind, make] of Object.entries(kinds)) {
    test(`${kind}: what is inside is withdrawn, finally lists run, a try_catch around catches`, async () => {
      const handler = newHandler();
      const inside = [tryCatch('i', [step('x', handler)], [], [step('clean', 'noop')])];
      // Long enough for what is inside to begin, however busy the machine is.
      const block = { ...make(inside), timeout: 10 * SHORT_MS };
      const told = step('told', 'transform', {
        params: { code: '{{ data._error.code }}', block: '{{ data._error.failed_block_id }}' },
      });
      const id = await tenant.runUntil('completed', [tryCatch('t', [block], [told])], {
        items: [1],
      });
      const outputs = await tenant.outputsOf(id);
      assert.deepEqual(outputs.told, { code: 'timeout', block: 'b' });
      assert.deepEqual(outputs.clean, {});
      assert.equal(outputs.own, undefined);
      const { b, x, t } = await tenant.nodeStates(id);
      assert.deepEqual([b, x, t], ['failed', 'cancelled', 'completed']);
      assert.deepEqual(await tenant.poll(handler), []);
    });
  }
});

describe('An instance may have a `timeout`, in ms from its start', { concurrency: true }, () => {
  test('it is shown, and when it is over the instance fails, finally lists first', async () => {
    const blocks = [
      tryCatch('t', [sleep('a', LONG_MS)], [step('c', 'noop')], [step('last', 'noop')]),
    ];
    const id = await tenant.run(blocks, { timeout: SHORT_MS });
    const { timeout, failure } = await tenant.until(id, 'failed');
    assert.equal(timeout, SHORT_MS);
    assert.deepEqual([failure?.code, failure?.block_id], ['instance_timeout', null]);
    assert.deepEqual(await tenant.rowsOf(id), ['last']);
    assert.ok((await tenant.deadLetters()).includes(id));
    const list = await tenant.get<TaskInstance[]>('/instances?state=failed&limit=1000');
    assert.equal(list.body.find((one) => one.id === id)?.timeout, SHORT_MS);
  });

  test('a hook behind it that fails is what the instance is failed with, until a retry has run it', async () => {
    const on_failure = [step('tell', 'fail', { when: 'data.told != true' })];
    const id = await tenant.create(await tenant.sequence([sleep('a', LONG_MS)], { on_failure }), {
      timeout: SHORT_MS,
    });
    const failsWith = (code: string) =>
      eventually(async () => {
        const letters = await tenant.get<TaskInstance[]>(`/instances/dlq?failure_code=${code}`);
        assert.ok(letters.body.some((one) => one.id === id && one.failure?.code === code));
      });
    await failsWith('cleanup_failed');
    const { body } = await tenant.get<InstanceExplanation>(`/instances/${id}/explain`);
    const [again] = body.next.flatMap(({ runs_again = [] }) => runs_again);
    assert.deepEqual([again?.blocks[0]?.kind, again?.ends], ['hook', 'failed']);
    expectStatus(await tenant.post(`/instances/${id}/retry`, { context: { told: true } }), 200);
    await failsWith('instance_timeout');
  });

  test('instances of a batch and of a schedule have it, others have none', async () => {
    const sequence = await tenant.sequence([sleep('a', LONG_MS)]);
    const item = tenant.creation(sequence, { timeout: SHORT_MS, metadata: { of: 'batch' } });
    expectStatus(await tenant.post('/instances/batch', { instances: [item] }), 201);
    await eventually(async () => {
      const found = await tenant.get<TaskInstance[]>('/instances?metadata.of=batch&state=failed');
      assert.equal(found.body.length, 1);
    });
    const place = { tenant_id: tenant.name, namespace: 'test', sequence_id: sequence };
    const schedule = { ...place, cron_expr: '0 0 0 1 1 ? 2998', timeout: SHORT_MS };
    const { id } = expectStatus(await tenant.post<CronSchedule>('/cron', schedule), 201);
    assert.equal((await tenant.get<CronSchedule>(`/cron/${id}`)).body.timeout, SHORT_MS);
    const run = expectStatus(await tenant.post<ScheduleRun>(`/cron/${id}/run`, {}), 201);
    await tenant.until(run.id, 'failed');
    assert.equal('timeout' in (await tenant.instance(await tenant.create(sequence))), false);
  });
});
