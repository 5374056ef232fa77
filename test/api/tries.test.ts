/** Tries, back-off, policies, and why instances failed, over HTTP. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { OUTPUT_ROWS } from '../../actors/instance/output-tables.js';
import { FAILURE_MESSAGE_MAX, type Failure } from '../../schema/failure.js';
import type { AuditEntry, TaskInstance, Timeline } from '../../schema/instance.js';
import type { WorkerAttempt, WorkerTask } from '../../schema/worker.js';
import {
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
  transform,
  tryCatch,
  useSharedApi,
} from '../helpers/api.js';
import { expectStatus } from '../helpers/client.js';
import { columns } from '../helpers/columns.js';

const CALLS = ['complete', 'fail', 'heartbeat'] as const;
const QUICK = { max_attempts: 3, initial_backoff: 1, max_backoff: 1 };
const api = useSharedApi();
const tenant = api.tenant();

describe('A retryable failure of a step with `retry` has max_attempts in total, with the back-off between them: 1,000 ms, times 2, up to 60,000 ms by default. An otherwise idle instance is `scheduled` meanwhile, and the task exists only after the wait', () => {
  /** When the only try of the task was reported as failed, by the engine's clock. */
  async function failedAt(tenant: Tenant, task: WorkerTask): Promise<number> {
    await tenant.fail(task, 'busy', true);
    const { body } = await tenant.get<WorkerAttempt[]>(`/workers/tasks/${task.id}/attempts`);
    return Date.parse(body.find((entry) => entry.event === 'failed')?.created_at ?? '');
  }

  test('for external steps too: scheduled meanwhile, and the new task exists only afterwards', async () => {
    const [tenant, handler] = [api.tenant(), newHandler()];
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
});

describe('`timeout` of a step is durable. The task of an external step ends `failed` and late calls get 404/409; the step is retried under its `retry`, and fails without one', {
  concurrency: true,
}, () => {
  test('without `retry` it is a final step failure, and the task ends failed', async () => {
    const [tenant, handler] = [api.tenant(), newHandler()];
    const id = await tenant.run([step('a', handler, { timeout: 200 }), step('b', 'noop')]);
    await tenant.poll(handler);
    await tenant.until(id, 'failed');
    const [task] = await tenant.tasks(handler);
    assert.ok(task);
    assert.deepEqual([task.state, task.timeout_ms], ['failed', 200]);
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
    const [tenant, handler] = [api.tenant(), newHandler()];
    // More tries than needed: on a busy machine some of them time out before they are claimed.
    const retry = { max_attempts: 50, initial_backoff: 1, max_backoff: 1 };
    const id = await tenant.run([step('a', handler, { timeout: 200, retry })]);
    const first = await tenant.task(handler);
    return { tenant, id, handler, first, second: await tenant.task(handler) };
  }

  test('under its `retry` the step fails retryably: the next try is a new task', async () => {
    const { tenant, id, handler, first, second } = await timedOut();
    assert.ok(second.id !== first.id && second.attempt > first.attempt);
    assert.equal(await tenant.call('complete', first), 404);
    assert.equal(await tenant.call('complete', first, { claim_epoch: 1 }), 409);
    // What is dispatched again leaves the list, as after any failure.
    assert.ok((await tenant.tasks(handler)).length <= 1);
    const { state } = await tenant.instance(id);
    assert.ok(state !== 'failed' && state !== 'completed', state);
  });

  test('a step of the process likewise', async () => {
    const id = await tenant.runUntil('failed', [
      sleep('a', LONG_MS, { timeout: 50, retry: QUICK }),
    ]);
    const [row] = await tenant.outputs(id);
    assert.deepEqual([row?.attempt, row?.output.retryable], [2, true]);
  });
});

describe('Attempts: `attempt` of an output counts from 0 like that of the task; in loop and for_each bodies it counts iterations of the block, with the iteration path and the attempt beside it; attempts count per iteration', () => {
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
    const handler = newHandler();
    const id = await tenant.run([step('a', handler, { retry })]);
    assert.deepEqual(await work(tenant, handler, 1), [0, 1]);
    await tenant.until(id, 'completed');
    assert.deepEqual(await attemptsOf(tenant, id), [1]);
  });

  test('inside loop and for_each bodies', async () => {
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
    const { rows } = await api.sql.query<{ iteration: string; try: number }>(
      `select iteration, try from ${OUTPUT_ROWS} o where instance_id = $1 and block_id = $2 order by attempt`,
      [id, block],
    );
    return rows.map((row) => [row.iteration, row.try]);
  }
});

describe('The task of a cancelled branch is not offered or listed; late calls are 404/409 and recorded, up to 100 a task; its history stays', () => {
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
    assert.equal(await tenant.call('complete', pending, { worker_id: 'w1', claim_epoch: 0 }), 409);
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

// ---------------------------------------------------------------- policies

interface Failing {
  readonly tenant: Tenant;
  readonly id: string;
  readonly handler: string;
  /** The task whose try has failed retryably. */
  readonly task: WorkerTask;
}

/** An instance of one external step, whose first try has failed retryably. */
async function failedOnce(more: Json = {}): Promise<Failing> {
  const [tenant, handler] = [api.tenant(), newHandler()];
  const id = await tenant.run([step('a', handler, more)]);
  const task = await tenant.task(handler);
  await tenant.fail(task, 'busy', true);
  return { tenant, id, handler, task };
}

test('A retryable failure with a policy makes the instance scheduled, then waiting, and the next poll gets a task', async () => {
  const { tenant, id, handler } = await failedOnce({
    retry: { max_attempts: 2, initial_backoff: 100 },
  });
  await tenant.until(id, 'waiting');
  const [task] = await tenant.poll(handler);
  assert.deepEqual([task?.instance_id, task?.attempt], [id, 1]);
  const { body } = await tenant.get<Timeline>(`/instances/${id}/timeline`);
  const states = body.state_transitions.map((move) => move.to_state);
  assert.deepEqual(
    states.filter((state) => state !== 'running'),
    ['waiting', 'scheduled', 'waiting'],
  );
});

describe('An external step with max_attempts 3 offers exactly three tasks, then fails into the DLQ; without a policy a retryable failure is offered again', () => {
  test('max_attempts 3 offers exactly three tasks, then the instance fails into the DLQ', async () => {
    const { tenant, id, handler, task } = await failedOnce({ retry: QUICK });
    const ids = new Set([task.id]);
    for (const attempt of [1, 2]) {
      const next = await tenant.task(handler);
      assert.equal(next.attempt, attempt);
      ids.add(next.id);
      await tenant.fail(next, 'busy', true);
    }
    assert.equal(ids.size, 3);
    await tenant.until(id, 'failed');
    assert.deepEqual(await tenant.poll(handler), []);
    assert.deepEqual(await tenant.deadLetters(), [id]);
  });
});

describe('A retryable failure of a step without `retry` is dispatched again at once, then after 200 ms, 400 ms and so on, without limit', () => {
  test('dispatched again at once, attempt + 1', async () => {
    const { tenant, id, handler, task } = await failedOnce();
    assert.equal((await tenant.instance(id)).state, 'waiting');
    const [next] = await tenant.poll(handler);
    assert.deepEqual([next?.instance_id, next?.attempt], [id, 1]);
    assert.notEqual(next?.id, task.id);
  });

  test('from the second failure on it waits, so that a broken worker is no hot loop', async () => {
    const { tenant, id, handler } = await failedOnce();
    await tenant.fail(await tenant.task(handler), 'busy', true);
    assert.equal((await tenant.instance(id)).state, 'scheduled');
    assert.deepEqual(await tenant.poll(handler), []);
    const next = await tenant.task(handler);
    assert.equal(next.attempt, 2);
    await tenant.complete(next, { n: 1 });
    await tenant.until(id, 'completed');
    assert.equal((await tenant.outputs(id))[0]?.attempt, 2);
  });
});

// ---------------------------------------------------------------- failures

type Expected = Partial<Failure>;

/** How an instance comes to fail, and what is told of it. */
interface Way {
  readonly blocks: (handler: string) => Json[];
  readonly data?: Json;
  /** What happens to it after its creation. */
  readonly meanwhile?: (tenant: Tenant, id: string, handler: string) => Promise<unknown>;
  readonly failure: Expected;
}

const failTask =
  (retryable: boolean, times = 1) =>
  async (tenant: Tenant, _id: string, handler: string) => {
    for (let i = 0; i < times; i += 1) {
      await tenant.fail(await tenant.task(handler), 'no money', retryable);
    }
  };

const twice = { retry: { max_attempts: 2, initial_backoff: 0 } };
const at = (block_id: string, handler: string, attempt = 0) => ({ block_id, handler, attempt });

const WAYS: Readonly<Record<string, Way>> = {
  'a built-in handler gives up': {
    blocks: () => [step('a', 'fail', { params: { message: 'out of paper' } })],
    failure: { ...at('a', 'fail'), code: 'handler_failed', path: 'a', message: 'out of paper' },
  },
  'a worker says that it is for good': {
    blocks: (handler) => [step('a', handler)],
    meanwhile: failTask(false),
    failure: { block_id: 'a', attempt: 0, code: 'worker_failed', path: 'a', message: 'no money' },
  },
  'the last try of a worker fails': {
    blocks: (handler) => [step('a', handler, twice)],
    meanwhile: failTask(true, 2),
    failure: { block_id: 'a', attempt: 1, code: 'retries_exhausted', message: 'no money' },
  },
  'the last try of a built-in handler fails': {
    blocks: () => [step('a', 'fail', { params: { retryable: true }, ...twice })],
    failure: { ...at('a', 'fail', 1), code: 'retries_exhausted', message: 'forced failure' },
  },
  'a retryable failure has no policy': {
    blocks: () => [step('a', 'fail', { params: { retryable: true } })],
    failure: { ...at('a', 'fail'), code: 'not_retried' },
  },
  'a template names what there is not': {
    blocks: () => [transform('a', { n: '{{ nowhere.x }}' })],
    failure: { ...at('a', 'transform'), code: 'expression_error' },
  },
  'a sleep gets no duration': {
    blocks: () => [step('a', 'sleep', { params: { duration_ms: '{{data.items}}' } })],
    data: { items: 'long' },
    failure: { ...at('a', 'sleep'), code: 'invalid_params' },
  },
  'a collection is none': {
    blocks: () => [forEach('f', 'items', [step('a', 'noop')])],
    data: { items: 'x' },
    failure: { block_id: 'f', path: 'f', handler: null, attempt: null, code: 'invalid_collection' },
  },
  'an output does not conform to its schema': {
    blocks: (handler) => [step('a', handler, { output_schema: { required: ['paid'] } })],
    meanwhile: async (tenant, _id, handler) => tenant.complete(await tenant.task(handler), {}),
    failure: { block_id: 'a', code: 'output_schema' },
  },
  'somebody asks for it': {
    blocks: (handler) => [step('a', handler)],
    meanwhile: (tenant, id) => tenant.move(id, 'failed'),
    failure: {
      block_id: null,
      path: null,
      handler: null,
      attempt: null,
      code: 'failed_by_request',
      message: 'failed by request',
    },
  },
  'a pass of a loop within a for_each fails': {
    blocks: () => [
      forEach('f', 'items', [
        router('r', {
          'item == 2': [loop('l', 'yes', [step('x', 'fail', { params: { message: 'no' } })])],
        }),
      ]),
    ],
    data: { items: [1, 2], yes: true },
    failure: { block_id: 'x', path: 'f[1]/r/l[0]/x', code: 'handler_failed', message: 'no' },
  },
  'a branch fails, and what fails behind it is caught': {
    blocks: () => [
      parallel(
        'p',
        [step('first', 'fail', { params: { message: 'first' } })],
        [
          tryCatch('t', [step('second', 'fail', { params: { message: 'second' } })], []),
          step('b', 'noop'),
        ],
      ),
    ],
    failure: { block_id: 'first', path: 'p/first', message: 'first' },
  },
};

async function failed(
  tenant: Tenant,
  { blocks, data = {}, meanwhile }: Way,
): Promise<TaskInstance> {
  const handler = newHandler();
  const id = await tenant.run(blocks(handler), { context: { data } });
  await meanwhile?.(tenant, id, handler);
  return tenant.until(id, 'failed');
}

const FAILS: Way = WAYS['a built-in handler gives up']!;

describe('Failure: every failed instance reports the block, its place, the attempt, a code, a message and the time', () => {
  for (const [title, way] of Object.entries(WAYS)) {
    test(title, async () => {
      const { failure } = await failed(api.tenant(), way);
      assert.ok(failure !== null);
      for (const [name, value] of Object.entries(way.failure)) {
        assert.deepEqual(failure[name as keyof Failure], value, name);
      }
      assert.equal(new Date(failure.at).toISOString(), failure.at);
    });
  }

  test('a long message is cut', async () => {
    const way = {
      ...FAILS,
      blocks: () => [step('a', 'fail', { params: { message: 'x'.repeat(9_000) } })],
    };
    const { failure } = await failed(api.tenant(), way);
    assert.equal(failure?.message.length, FAILURE_MESSAGE_MAX);
  });
});

describe('Failure: reads, lists, the dead letter queue, the audit, the feed and the stream show it alike, until a retry', () => {
  test('everywhere the same', async () => {
    const tenant = api.tenant();
    const { id, failure } = await failed(tenant, FAILS);
    const list = expectStatus(await tenant.get<TaskInstance[]>('/instances'), 200);
    const dead = expectStatus(await tenant.get<TaskInstance[]>('/instances/dlq'), 200);
    assert.deepEqual([list[0]?.failure, dead[0]?.failure], [failure, failure]);
    const audit = expectStatus(await tenant.get<AuditEntry[]>(`/instances/${id}/audit`), 200);
    const { changes } = expectStatus(await tenant.get<{ changes: AuditEntry[] }>('/changes'), 200);
    for (const entries of [audit, changes]) {
      const moves = entries.filter((entry) => entry.failure !== undefined);
      assert.deepEqual(columns(moves, 'to_state', 'failure'), [['failed', failure]]);
    }
    const { text } = await tenant.get(`/instances/${id}/stream`);
    const events = text.split('\n\n').map((frame) => frame.split('\ndata: '));
    for (const name of ['state', 'done']) {
      const data = events.find(([event]) => event === `event: ${name}`)?.[1];
      assert.deepEqual(JSON.parse(data ?? '{}').failure, failure, name);
    }
  });

  test('a retry clears it, a pause does not, and the next failure is another one', async () => {
    const [tenant, handler] = [api.tenant(), newHandler()];
    const id = await tenant.run([step('a', handler)]);
    const failWith = async (message: string) => {
      await tenant.fail(await tenant.task(handler), message);
      return (await tenant.until(id, 'failed')).failure?.message;
    };
    const listed = async () =>
      expectStatus(await tenant.get<TaskInstance[]>('/instances'), 200).map(
        (instance) => instance.failure?.message,
      );
    assert.equal(await failWith('first'), 'first');
    await tenant.signal(id, 'pause');
    assert.deepEqual(await listed(), ['first']);
    await tenant.signal(id, 'resume');
    assert.equal((await tenant.until(id, 'waiting')).failure, null);
    assert.deepEqual(await listed(), [undefined]);
    assert.equal(await failWith('second'), 'second');
    expectStatus(await tenant.post(`/instances/${id}/retry`), 200);
    assert.equal((await tenant.until(id, 'waiting')).failure, null);
    assert.equal(await failWith('third'), 'third');
    await tenant.signal(id, 'cancel');
    assert.equal((await tenant.instance(id)).failure, null);
    assert.deepEqual(await listed(), [undefined]);
  });
});

describe('Failure: a catch list reads it as context.data._error', () => {
  test('of the block that failed deep inside, with its pass', async () => {
    const tenant = api.tenant();
    const tried = forEach('f', 'items', [
      step('x', 'fail', { params: { message: '{{ data.item }}' } }),
    ]);
    const seen = transform('seen', { code: '{{ data._error.code }}', error: '{{ data._error }}' });
    const data = { items: ['red', 'blue'] };
    const id = await tenant.runUntil('completed', [tryCatch('t', [tried], [seen])], data);
    const output = (await tenant.outputsOf(id)).seen ?? {};
    assert.equal(output.code, 'handler_failed');
    const { at: when, ...error } = output.error as Json;
    assert.deepEqual(error, {
      failed_blocks: ['f'],
      source: 'try_catch',
      block_id: 't',
      failed_block_id: 'x',
      path: 't/f[0]/x',
      handler: 'fail',
      attempt: 0,
      code: 'handler_failed',
      message: 'red',
    });
    assert.equal(typeof when, 'string');
    assert.equal((await tenant.instance(id)).failure, null);
  });
});

test('All attempts and retries of a step have one idempotency key; items and second runs have others', async () => {
  const handler = newHandler();
  const id = await tenant.run([forEach('each', 'items', [step('a', handler, { retry: QUICK })])], {
    context: { data: { items: [1, 2] } },
  });
  const keys: string[] = [];
  const next = async (end: (task: WorkerTask) => Promise<unknown>) => {
    const task = await tenant.task(handler);
    keys.push(task.idempotency_key);
    await end(task);
  };
  await next((task) => tenant.fail(task, 'later', true));
  await next((task) => tenant.fail(task, 'no'));
  await tenant.until(id, 'failed');
  expectStatus(await tenant.post(`/instances/${id}/retry`), 200);
  await next((task) => tenant.complete(task));
  await next((task) => tenant.complete(task));
  await tenant.until(id, 'completed');
  expectStatus(await tenant.post(`/instances/${id}/resume-from/each`), 200);
  await next((task) => tenant.complete(task));
  await next((task) => tenant.complete(task));
  const [key, , , ...others] = keys;
  assert.deepEqual(keys, [key, key, key, ...others]);
  assert.equal(new Set(keys).size, 4);
  const listed = (await tenant.tasks(handler)).map((task) => task.idempotency_key);
  assert.deepEqual(new Set(listed), new Set(keys));
});
