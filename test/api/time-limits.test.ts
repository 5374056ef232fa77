/** Limits of time over HTTP: of tries, tasks, blocks, steps and instances, and what a pause does to them. */

import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, describe, test } from 'node:test';
import type { CronSchedule, ScheduleRun } from '../../schema/cron.js';
import type { InstanceExplanation } from '../../schema/explanation.js';
import type { AuditEntry, TaskInstance } from '../../schema/instance.js';
import type { WorkerAttempt, WorkerTask } from '../../schema/worker.js';
import {
  eventually,
  type Json,
  loop,
  newHandler,
  parallel,
  sleep,
  step,
  tryCatch,
  useTenant,
} from '../helpers/api.js';
import { expectStatus } from '../helpers/client.js';

const FAR = '2100-01-01T00:00:00.000Z';
/** Nothing that is to happen before it takes so long, however busy the machine is. */
const SOON_MS = 3_000;
const SHORT_MS = 150;
const LONG_MS = 600_000;

const tenant = useTenant();

/** What `on_deadline_breach` called. */
const calls: string[] = [];
const receiver = createServer((request, response) => {
  calls.push(request.url ?? '');
  response.writeHead(500).end();
});
before(() => new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve)));
after(() => receiver.close());
const receiverUrl = (path: string) =>
  `http://127.0.0.1:${(receiver.address() as AddressInfo).port}${path}`;

const codeOf = async (id: string) => (await tenant.instance(id)).failure?.code;
const audit = async (id: string) =>
  expectStatus(await tenant.get<AuditEntry[]>(`/instances/${id}/audit`), 200);
const explain = async (id: string) =>
  expectStatus(await tenant.get<InstanceExplanation>(`/instances/${id}/explain`), 200);

/** Resolves when time has passed by which a limit of so long, begun by now, is over. */
async function pass(ms: number): Promise<void> {
  await tenant.runUntil('completed', [sleep('clock', ms)]);
}

describe('Pause: While paused nothing starts: unclaimed tasks are not offered, timers do not fire, timeouts stand still and go on with what was left. Resume gives back what was there: a scheduled start in the future stays in the future', {
  concurrency: true,
}, () => {
  test('an unclaimed task is listed and not offered until the resume; a claimed one goes on', async () => {
    const handler = newHandler();
    const id = await tenant.run([parallel('p', [step('a', handler)], [step('b', handler)])]);
    const held = await tenant.task(handler);
    await tenant.signal(id, 'pause');
    assert.deepEqual(await tenant.poll(handler), []);
    const list = await tenant.get<WorkerTask[]>(
      `/workers/tasks?handler_name=${handler}&state=pending`,
    );
    assert.equal(list.body.length, 1);
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

  test('a retryable failure waits for the resume', async () => {
    const handler = newHandler();
    const id = await tenant.run([step('a', handler)]);
    const first = await tenant.task(handler);
    await tenant.signal(id, 'pause');
    await tenant.fail(first, 'busy', true);
    assert.deepEqual(await tenant.poll(handler), []);
    await tenant.signal(id, 'resume');
    assert.equal((await tenant.task(handler)).attempt, 1);
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
      const metadata = { resumed: how };
      const id = await tenant.run([step('a', 'noop')], { next_fire_at: FAR, metadata });
      await tenant.signal(id, 'pause');
      assert.equal((await tenant.instance(id)).next_fire_at, null);
      await resume(id, how);
      const { state, next_fire_at } = await tenant.instance(id);
      assert.deepEqual([state, next_fire_at], ['scheduled', FAR]);
    });
  }

  test('PATCH with next_fire_at says when it goes on', async () => {
    const id = await tenant.run([step('a', 'noop')], { next_fire_at: FAR });
    await tenant.signal(id, 'pause');
    await tenant.move(id, 'scheduled', { next_fire_at: new Date().toISOString() });
    await tenant.until(id, 'completed');
  });

  test('a delay that has not ended is shown at once, and one that has is over', async () => {
    const id = await tenant.run([step('a', 'noop', { delay: { duration: LONG_MS } })]);
    const { next_fire_at } = await tenant.until(id, 'scheduled');
    await tenant.signal(id, 'pause');
    const resumed = await tenant.move(id, 'scheduled');
    assert.deepEqual([resumed.state, resumed.next_fire_at], ['scheduled', next_fire_at]);
    const short = await tenant.run([step('a', 'noop', { delay: { duration: SOON_MS } })]);
    await tenant.signal(short, 'pause');
    await pass(SOON_MS);
    assert.equal((await tenant.instance(short)).state, 'paused');
    await tenant.signal(short, 'resume');
    await tenant.until(short, 'completed');
  });

  test('what was set to waiting by request waits again, until a signal wakes it', async () => {
    const handler = newHandler();
    const id = await tenant.run([sleep('a', SOON_MS), step('b', handler)]);
    await tenant.until(id, 'running');
    await tenant.move(id, 'waiting');
    await tenant.signal(id, 'pause');
    await tenant.signal(id, 'resume');
    await tenant.until(id, 'waiting');
    await pass(SOON_MS);
    assert.deepEqual(await tenant.poll(handler), []);
    await tenant.signal(id, 'custom:on');
    await tenant.task(handler);
  });

  test('limits of time go on with what was left', async () => {
    const handler = newHandler();
    const ids = await Promise.all([
      tenant.run([{ ...parallel('p', [step('a', handler)]), timeout: SOON_MS }]),
      tenant.run([step('a', handler, { queue_timeout: SOON_MS })]),
      tenant.run([step('a', handler, { deadline: SOON_MS })]),
      tenant.run([step('a', handler)], { timeout: SOON_MS }),
      tenant.run([sleep('a', LONG_MS, { timeout: SOON_MS })]),
    ]);
    for (const id of ids) await tenant.signal(id, 'pause');
    await pass(SOON_MS);
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

describe('`timeout` of an external step: Counts from the claim (start to close). `queue_timeout` counts from the dispatch to the claim', {
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

  test('a worker that is in time has nothing to do with queue_timeout any more', async () => {
    const handler = newHandler();
    const id = await tenant.run([step('a', handler, { queue_timeout: SOON_MS })]);
    const { waiting_for: before } = await explain(id);
    assert.notEqual(before[0]?.until, null);
    const task = await tenant.task(handler);
    assert.equal((await explain(id)).waiting_for[0]?.until, null);
    await pass(SOON_MS);
    await tenant.complete(task);
    await tenant.until(id, 'completed');
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
    assert.deepEqual(
      reply.body.map(({ event, reason }) => [event, /claimed/.test(reason ?? '')]),
      [['timed_out', true]],
    );
  });

  test('under `retry` another task follows', async () => {
    const handler = newHandler();
    const retry = { max_attempts: 50, initial_backoff: 1, max_backoff: 1 };
    const id = await tenant.run([step('a', handler, { queue_timeout: SHORT_MS, retry })]);
    await pass(2 * SHORT_MS);
    const task = await tenant.task(handler);
    assert.ok(task.attempt > 0);
    await tenant.complete(task);
    await tenant.until(id, 'completed');
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
      const block = { ...make(inside), timeout: SHORT_MS };
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

  test('one that ends in time is none the wiser, and what waits says until when', async () => {
    const handler = newHandler();
    const id = await tenant.run([{ ...parallel('p', [step('a', handler)]), timeout: LONG_MS }]);
    const [wait] = (await explain(id)).waiting_for;
    const { created_at } = await tenant.instance(id);
    assert.ok(Date.parse(wait?.until ?? '') >= Date.parse(created_at) + LONG_MS);
    await tenant.complete(await tenant.task(handler));
    await tenant.until(id, 'completed');
  });
});

describe('An instance may carry `timeout` (ms from its start)', { concurrency: true }, () => {
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

  test('it counts from the first step, not from the creation', async () => {
    const id = await tenant.run([step('a', newHandler())], {
      timeout: SHORT_MS,
      next_fire_at: FAR,
    });
    await pass(2 * SHORT_MS);
    assert.equal((await tenant.instance(id)).state, 'scheduled');
    await tenant.move(id, 'running');
    await tenant.until(id, 'failed');
  });

  test('a retry has all of it again', async () => {
    const handler = newHandler();
    const id = await tenant.run([step('a', handler)], { timeout: SOON_MS });
    await tenant.until(id, 'failed');
    await tenant.post(`/instances/${id}/retry`);
    await tenant.complete(await tenant.task(handler));
    await tenant.until(id, 'completed');
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
    const shown = await tenant.get<CronSchedule>(`/cron/${id}`);
    assert.equal(shown.body.timeout, SHORT_MS);
    const run = expectStatus(await tenant.post<ScheduleRun>(`/cron/${id}/run`, {}), 201);
    await tenant.until(run.id, 'failed');
    assert.equal('timeout' in (await tenant.instance(await tenant.create(sequence))), false);
  });
});

describe('`deadline` of a step', { concurrency: true }, () => {
  test('fails it for good whatever its tries do, leaves its row and ends its task', async () => {
    const handler = newHandler();
    const retry = { max_attempts: 50, initial_backoff: 1, max_backoff: 1 };
    const id = await tenant.run([
      step('a', handler, { deadline: SOON_MS, retry }),
      step('b', 'noop'),
    ]);
    await tenant.fail(await tenant.task(handler), 'busy', true);
    const task = await tenant.task(handler);
    const { failure } = await tenant.until(id, 'failed');
    assert.deepEqual([failure?.code, failure?.block_id], ['deadline', 'a']);
    const { _error, _deadline_ms, _elapsed_ms, ...rest } = (await tenant.outputsOf(id)).a ?? {};
    assert.deepEqual([_error, _deadline_ms, rest], ['sla_deadline_breached', SOON_MS, {}]);
    assert.ok((_elapsed_ms as number) >= SOON_MS);
    assert.equal(await tenant.call('complete', task), 404);
    const types = (await audit(id)).map(({ event_type }) => event_type);
    assert.ok(types.includes('deadline_breached') && types.includes('step_failed'));
    await tenant.post(`/instances/${id}/retry`);
    await tenant.complete(await tenant.task(handler));
    await tenant.until(id, 'completed');
  });

  test('counts through a delay, and is caught by a try_catch', async () => {
    const late = step('a', 'noop', { delay: { duration: LONG_MS }, deadline: SHORT_MS });
    const id = await tenant.runUntil('completed', [tryCatch('t', [late], [step('c', 'noop')])]);
    assert.deepEqual((await tenant.outputsOf(id)).c, {});
  });

  test('on_deadline_breach is called once, with what happened, and its failure is only audited', async () => {
    const handler = newHandler();
    const id = await tenant.run([
      step('a', handler, {
        deadline: SHORT_MS,
        on_deadline_breach: {
          handler: 'http_request',
          params: { url: `${receiverUrl('/late')}/{{ instance_id }}` },
        },
      }),
    ]);
    await tenant.until(id, 'failed');
    await eventually(async () => {
      const failed = (await audit(id)).filter(
        (one) => one.event_type === 'deadline_handler_failed',
      );
      const handlers = failed.map(({ details }) => (details as Json).handler);
      assert.deepEqual(handlers, ['http_request']);
    });
    assert.deepEqual(
      calls.filter((url) => url.includes(id)),
      [`/late/${id}`],
    );
    assert.equal((await tenant.instance(id)).state, 'failed');
  });

  test('a pure handler is called in place, with _breach members beside its own', async () => {
    const id = await tenant.runUntil(
      'failed',
      [
        step('a', newHandler(), {
          deadline: SHORT_MS,
          on_deadline_breach: { handler: 'log', params: { message: 'late: {{ data.who }}' } },
        }),
      ],
      { who: 'me' },
    );
    const lines = await tenant.get<{ message: string }[]>(`/instances/${id}/logs`);
    assert.ok(JSON.stringify(lines.body).includes('late: me'));
  });
});

describe('limits that mean nothing are 400 and name the member', { concurrency: true }, () => {
  const refused: readonly [string, Json, RegExp][] = [
    [
      'a negative timeout of a block',
      { ...parallel('p', []), timeout: -1 },
      /timeout must be >= 0/,
    ],
    [
      'a queue_timeout that is no number',
      step('a', 'x', { queue_timeout: '1s' }),
      /queue_timeout must be an integer/,
    ],
    [
      'a deadline that is a fraction',
      step('a', 'x', { deadline: 0.5 }),
      /deadline must be an integer/,
    ],
    [
      'an external breach handler',
      step('a', 'x', { deadline: 5, on_deadline_breach: { handler: 'page' } }),
      /on_deadline_breach.handler must be a built-in handler/,
    ],
    [
      'a breach handler without a name',
      step('a', 'x', { deadline: 5, on_deadline_breach: {} }),
      /on_deadline_breach.*handler/,
    ],
    [
      'a breach handler that would always be refused',
      step('a', 'x', { deadline: 5, on_deadline_breach: { handler: 'http_request' } }),
      /on_deadline_breach.params.*url/,
    ],
  ];
  for (const [what, block, message] of refused) {
    test(what, async () => {
      const reply = await tenant.post<{ error: string }>('/sequences', tenant.definition([block]));
      assert.match(expectStatus(reply, 400).error, message);
    });
  }

  test('a timeout of an instance or a schedule that is none', async () => {
    const sequence = await tenant.sequence([step('a', 'noop')]);
    const body = tenant.creation(sequence, { timeout: -1 });
    const reply = await tenant.post<{ error: string }>('/instances', body);
    assert.match(expectStatus(reply, 400).error, /timeout must be >= 0/);
  });

  test('what has no effect is told', async () => {
    const warned: readonly [Json, RegExp][] = [
      [step('a', 'noop', { queue_timeout: 5 }), /queue_timeout has no effect/],
      [step('a', 'x', { on_deadline_breach: { handler: 'log' } }), /no effect without a deadline/],
    ];
    for (const [block, message] of warned) {
      const body = tenant.definition([block]);
      const reply = await tenant.post<{ warnings: unknown }>('/sequences/validate', body);
      assert.match(JSON.stringify(expectStatus(reply, 200).warnings), message);
    }
  });
});
