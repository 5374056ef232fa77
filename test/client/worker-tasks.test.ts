/** A worker of the library against a real server: what handlers are given, and what becomes of what they give back. */

import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { Named, Task, WorkerOptions } from '../../client/src/index.js';
import { FatalError, RetryableError } from '../../client/src/index.js';
import type { WorkerAttempt } from '../../schema/worker.js';
import { eventually, newHandler, step, useSharedApi } from '../helpers/api.js';
import { expectStatus } from '../helpers/client.js';
import { column } from '../helpers/columns.js';
import { type Between, reportsOf, runWorker, signalled } from '../helpers/workers.js';

const api = useSharedApi();

const handler = 'work';

function world() {
  const tenant = api.tenant();
  return { tenant, place: { url: api.url, tenant: tenant.name } };
}

/** A worker of a new tenant, which runs until the test ends. */
async function working<P extends Named, O = object>(t: TestContext, options: WorkerOptions<P, O>) {
  const { tenant, place } = world();
  return { tenant, ...(await runWorker(t, place, options)) };
}

test('one worker serves several handlers, and what they return are the outputs', async (t) => {
  const [charge, ship] = ['charge', 'ship'];
  const { tenant } = await working(t, {
    handlers: { [charge]: async (task) => ({ paid: task.params.amount }), [ship]: () => undefined },
  });
  const id = await tenant.run(
    [step('pay', charge, { params: { amount: '{{ data.amount }}' } }), step('send', ship)],
    { context: { data: { amount: 12 } } },
  );
  await tenant.until(id, 'completed');
  assert.deepEqual(await tenant.outputsOf(id), { pay: { paid: 12 }, send: {} });
});

test('a worker of queues takes tasks of these and no others', async (t) => {
  const { tenant } = await working(t, {
    handlers: { [handler]: () => ({}) },
    queues: ['north', 'south'],
  });
  const east = await tenant.run([step('a', handler, { queue_name: 'east' })]);
  for (const queue_name of ['north', 'south']) {
    await tenant.until(await tenant.run([step('a', handler, { queue_name })]), 'completed');
  }
  assert.equal((await tenant.instance(east)).state, 'waiting');
});

test('an error is tried again, a FatalError is not, and both say why', async (t) => {
  const [flaky, broken] = ['flaky', 'broken'];
  const { tenant } = await working(t, {
    handlers: {
      [flaky]: (task) => {
        if (task.attempt === 0) throw new Error('no connection');
        return { tries: task.attempt + 1 };
      },
      [broken]: () => {
        throw new FatalError('the card is blocked', { details: { code: 51 } });
      },
    },
  });
  const retry = { retry: { max_attempts: 3, initial_backoff: 1 } };
  const id = await tenant.run([step('a', flaky, retry), step('b', broken, retry)]);
  await tenant.until(id, 'failed');
  assert.deepEqual(await tenant.outputsOf(id), { a: { tries: 2 } });
  const [task] = await tenant.tasks(broken);
  const seen = [task?.attempt, task?.error_message, task?.error_retryable];
  assert.deepEqual(seen, [0, 'the card is blocked', false]);
  const logs = expectStatus(await tenant.get<{ message: string }[]>(`/instances/${id}/logs`), 200);
  assert.deepEqual(column(logs, 'message'), ['{"code":51}']);
});

test('what is thrown need not be an error', async (t) => {
  const circle: Record<string, unknown> = {};
  circle.self = circle;
  const thrown: unknown[] = ['out of stock', undefined, { code: 7 }, null, circle];
  const { tenant } = await working(t, {
    handlers: {
      [handler]: ({ params }) => {
        throw thrown[Number(params.which)];
      },
    },
  });
  const told = await Promise.all(
    thrown.map(async (_, which) => {
      const retry = { max_attempts: 1 };
      const id = await tenant.run([step('a', handler, { params: { which }, retry })]);
      await tenant.until(id, 'failed');
      const tasks = await tenant.tasks(handler);
      return tasks.find(({ instance_id }) => instance_id === id)?.error_message;
    }),
  );
  assert.deepEqual(told, [
    'out of stock',
    'the handler threw undefined',
    'the handler threw {"code":7}',
    'the handler threw null',
    'the handler threw [object Object]',
  ]);
});

test('retryAfterMs holds the failure back, with its claim, and without its place', async (t) => {
  const { tenant, place } = world();
  const retryAfterMs = 700;
  const tries: number[] = [];
  const { exchanges } = await runWorker(t, place, {
    concurrency: 1,
    heartbeatMs: 100,
    handlers: {
      [handler]: ({ attempt, params }) => {
        if (params.slow !== true) return {};
        tries.push(performance.now());
        if (attempt === 0) throw new RetryableError('too many requests', { retryAfterMs });
        return {};
      },
    },
  });
  const slow = await tenant.run([step('a', handler, { params: { slow: true } })]);
  await eventually(() => assert.equal(tries.length, 1));
  await tenant.until(await tenant.run([step('a', handler)]), 'completed');
  assert.equal(tries.length, 1, 'the place was free meanwhile');
  await tenant.until(slow, 'completed');
  const [first = 0, second = 0] = tries;
  assert.ok(second - first >= retryAfterMs, `${second - first} ms`);
  const beats = exchanges.flatMap(({ sent }) => sent.results ?? []);
  assert.ok(beats.some(({ kind }) => kind === 'heartbeat'));
});

test('lines that a handler logs are kept with the instance, cut to what the server takes', async (t) => {
  const [chatty, brief] = ['chatty', 'brief'];
  const { tenant } = await working(t, {
    handlers: {
      [chatty]: (_, { log }) => {
        for (let n = 0; n < 1_500; n += 1) log.debug(`line ${n}`);
      },
      [brief]: (_, { log }) => {
        log.info('began');
        log.error('x'.repeat(20_000));
        throw new FatalError('no');
      },
    },
  });
  type Line = { readonly level: string; readonly message: string };
  const logsOf = async (handler: string, state: string) => {
    const id = await tenant.runUntil(state, [step('a', handler)]);
    return expectStatus(await tenant.get<Line[]>(`/instances/${id}/logs?limit=1000`), 200);
  };
  const many = await logsOf(chatty, 'completed');
  assert.deepEqual([many.length, many[0]?.message], [1_000, '501 earlier lines were dropped']);
  assert.equal(many.at(-1)?.message, 'line 1499');
  const few = await logsOf(brief, 'failed');
  assert.deepEqual(
    few.map(({ level, message }) => [level, message.length]),
    [
      ['info', 5],
      ['error', 8_192],
    ],
  );
});

test('a checkpoint is there for the next try', async (t) => {
  const found: unknown[] = [];
  const { tenant } = await working(t, {
    handlers: {
      [handler]: async (task, ctx) => {
        found.push(task.checkpoint);
        if (task.attempt > 0) return {};
        // Not waited for: they are stored one behind the other all the same.
        void ctx.checkpoint({ page: 1 });
        void ctx.checkpoint({ page: 2 });
        await ctx.checkpoint({ page: 3 });
        throw new Error('fell over');
      },
    },
  });
  await tenant.runUntil('completed', [step('a', handler)]);
  assert.deepEqual(found, [undefined, { page: 3 }]);
});

test('a checkpoint whose answer was lost is stored once, and the next one follows it', async (t) => {
  const { tenant, place } = world();
  let lost = 0;
  const between: Between = async ({ sent }, forward) => {
    const response = await forward();
    const hasCheckpoint = sent.results?.some((result) => 'checkpoint' in result);
    if (!hasCheckpoint || lost > 0) return response;
    lost += 1;
    await response.arrayBuffer();
    throw new TypeError('the connection broke');
  };
  const { warnings } = await runWorker(
    t,
    { ...place, between },
    {
      handlers: {
        [handler]: async (_, ctx) => {
          await ctx.checkpoint({ page: 1 });
          await ctx.checkpoint({ page: 2 });
        },
      },
    },
  );
  const id = await tenant.runUntil('completed', [step('a', handler)]);
  assert.equal(lost, 1);
  const [task] = await tenant.tasks(handler);
  assert.deepEqual([task?.instance_id, task?.checkpoint_seq], [id, 2]);
  assert.ok(!warnings.some((line) => /claim (is|was) lost/.test(line)), warnings.join('\n'));
});

test('a refused checkpoint is the handler to deal with', async (t) => {
  const { tenant } = await working(t, {
    handlers: {
      [handler]: async (_, ctx) => {
        await assert.rejects(
          ctx.checkpoint({ text: 'x'.repeat(300_000) }),
          /rejected: .*checkpoint/,
        );
        await ctx.checkpoint({ text: 'short' });
        return { isStored: true };
      },
    },
  });
  const id = await tenant.runUntil('completed', [step('a', handler)]);
  assert.deepEqual(await tenant.outputsOf(id), { a: { isStored: true } });
});

test('an output that cannot be taken fails the step for good, and no other result of its batch', async (t) => {
  const [fine, ...bad] = [newHandler(), newHandler(), newHandler(), newHandler(), newHandler()];
  const [large = '', bigint = '', list = '', late = ''] = bad;
  const ready = signalled();
  let begun = 0;
  const together = async <T>(output: T): Promise<T> => {
    begun += 1;
    if (begun === 5) ready.resolve();
    await ready.promise;
    return output;
  };
  const { tenant } = await working(t, {
    handlers: {
      [fine ?? '']: () => together({ ok: true }),
      [large]: () => together({ text: 'x'.repeat(1_100_000) }),
      [bigint]: () => together({ id: 1n }),
      [list]: () => together([1, 2]),
      [late]: () => together({ '\u0000': 1, text: 'a\u0000b' }),
    },
  });
  const ids = await Promise.all([fine, ...bad].map((name) => tenant.run([step('a', name ?? '')])));
  const [first = '', ...others] = ids;
  await tenant.until(first, 'completed');
  for (const id of others) await tenant.until(id, 'failed');
  const messages = await Promise.all(
    bad.map(async (name) => (await tenant.tasks(name))[0]?.error_message ?? ''),
  );
  assert.match(messages[0] ?? '', /output was rejected: .*1048576/);
  assert.match(messages[1] ?? '', /output was rejected: .*BigInt/);
  assert.match(messages[2] ?? '', /output must be an object, not \[1,2\]/);
  assert.match(messages[3] ?? '', /output was rejected/);
});

test('the trace of the instance is given to the handler', async (t) => {
  const given = signalled<string | undefined>();
  const { tenant } = await working(t, {
    handlers: { [handler]: (_, { traceparent }) => given.resolve(traceparent) },
  });
  const trace = '0af7651916cd43dd8448eb211c80319c';
  const sequence = await tenant.sequence([step('a', handler)]);
  await tenant.request('POST', '/instances', {
    body: tenant.creation(sequence),
    headers: { traceparent: `00-${trace}-b7ad6b7169203331-01` },
  });
  assert.match((await given.promise) ?? '', new RegExp(`^00-${trace}-`));
});

test('hooks are told of tasks, polls, reports and errors, and one that throws harms nothing', async (t) => {
  const told: string[] = [];
  const { tenant, warnings } = await working(t, {
    handlers: {
      [handler]: ({ attempt }: Task) => {
        if (attempt === 0) throw new Error('no');
      },
    },
    hooks: {
      onTaskStart: ({ task }) => told.push(`start ${task.attempt}`),
      onTaskEnd: ({ task, ending, retryable, durationMs }) => {
        assert.ok(durationMs >= 0);
        told.push(`end ${task.attempt} ${ending} ${retryable}`);
      },
      onPoll: ({ limit, tasks }) => {
        assert.ok(limit >= tasks);
        if (tasks > 0) told.push(`poll ${tasks}`);
        throw new Error('a bad hook');
      },
      onReport: async ({ results, refused }) => {
        told.push(`report ${results} ${refused}`);
        throw new Error('a late hook');
      },
    },
  });
  const retry = { max_attempts: 2, initial_backoff: 1 };
  await tenant.runUntil('completed', [step('a', handler, { retry })]);
  await eventually(() => assert.equal(told.filter((line) => line.startsWith('report')).length, 2));
  for (const line of ['start 0', 'end 0 failed true', 'start 1', 'end 1 completed undefined']) {
    assert.ok(told.includes(line), told.join('\n'));
  }
  assert.equal(told.filter((line) => line === 'poll 1').length, 2);
  for (const line of ['onPoll threw: a bad hook', 'onReport threw: a late hook']) {
    assert.ok(warnings.join().includes(line));
  }
});

test('a worker is listed with its id, version, handlers and queues, and sends its epochs', async (t) => {
  const { tenant, worker, exchanges } = await working(t, {
    handlers: { [handler]: () => ({}) },
    queues: ['north'],
    version: '4.2.0',
  });
  const id = await tenant.run([step('a', handler, { queue_name: 'north' })]);
  await tenant.until(id, 'completed');
  const [task] = await tenant.tasks(handler);
  const [report] = reportsOf(exchanges);
  const seen = report?.sent.results?.map(({ task_id, claim_epoch }) => [task_id, claim_epoch]);
  assert.deepEqual(seen, [[task?.id, 1]]);
  const attempts = await tenant.get<WorkerAttempt[]>(`/workers/tasks/${task?.id}/attempts`);
  assert.deepEqual(column(expectStatus(attempts, 200), 'worker_id'), [worker.id, worker.id]);
  await eventually(async () => {
    const listed = await tenant.get<{ worker_id: string; [field: string]: unknown }[]>('/workers');
    const [found] = expectStatus(listed, 200).filter(({ worker_id }) => worker_id === worker.id);
    const told = [found?.version, found?.handlers, found?.queues];
    assert.deepEqual(told, ['4.2.0', [handler], ['north']]);
  });
});
