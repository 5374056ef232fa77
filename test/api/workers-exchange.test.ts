/** The exchange of a worker, and workers that fall silent. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import type { EffectReceipt } from '../../schema/continuity.js';
import type { InstanceExplanation } from '../../schema/explanation.js';
import type { TaskOutcome, TasksExchanged, WorkerTask } from '../../schema/worker.js';
import type { Json } from '../helpers/api.js';
import { eventually, newHandler, PREPARED, step, useSharedApi, WORKER } from '../helpers/api.js';
import { expectStatus } from '../helpers/client.js';
import { column, columns } from '../helpers/columns.js';

const api = useSharedApi();
const tenant = api.tenant();
const PATH = '/workers/tasks/exchange';

const ask = (body: Json) =>
  tenant.post<TasksExchanged & { error: string }>(PATH, { worker_id: WORKER, ...body });
const exchange = async (body: Json) => expectStatus(await ask(body), 200) as TasksExchanged;
const report = async (results: readonly unknown[]) => (await exchange({ results })).outcomes;

const of = (task: WorkerTask, kind: string, more: Json = {}): Json => ({
  kind,
  task_id: task.id,
  claim_epoch: task.claim_epoch,
  ...more,
});
const done = (task: WorkerTask, output: Json = { ok: true }) => of(task, 'complete', { output });

/** Instances of one sequence, and what becomes of their first tasks when all are there. */
async function claimed(count: number, more: Json = {}, next: readonly Json[] = []) {
  const handler = newHandler();
  const sequence = await tenant.sequence([step('a', handler, more), ...next]);
  const instances = Array.from({ length: count }, () => tenant.creation(sequence));
  expectStatus(await tenant.post('/instances/batch', { instances }), 201);
  const tasks: WorkerTask[] = [];
  await eventually(async () => {
    tasks.push(...(await tenant.poll(handler, { limit: 1_000 })));
    assert.equal(tasks.length, count);
  });
  return { handler, sequence, tasks };
}

describe('results', () => {
  test('complete, fail and heartbeat do what the requests for one task do', async () => {
    const { tasks } = await claimed(4, { retry: { max_attempts: 2, initial_backoff: 0 } });
    const [a, b, c, d] = tasks as [WorkerTask, WorkerTask, WorkerTask, WorkerTask];
    const logs = [{ message: 'resized' }];
    const outcomes = await report([
      done(a, { size: 1 }),
      of(b, 'fail', { message: 'no', retryable: true, logs }),
      of(c, 'fail', { message: 'never' }),
      of(d, 'heartbeat', { checkpoint_seq: 0, checkpoint: { at: 3 } }),
      of(d, 'heartbeat'),
      of(d, 'heartbeat', { checkpoint_seq: 1, checkpoint: { at: 4 } }),
    ]);
    assert.deepEqual(outcomes, [
      { task_id: a.id, status: 200 },
      { task_id: b.id, status: 200 },
      { task_id: c.id, status: 200 },
      { task_id: d.id, status: 200, checkpoint_seq: 1 },
      { task_id: d.id, status: 200, checkpoint_seq: 1 },
      { task_id: d.id, status: 200, checkpoint_seq: 2 },
    ]);
    assert.equal((await tenant.until(a.instance_id, 'completed')).context.data.size, 1);
    assert.match((await tenant.until(c.instance_id, 'failed')).failure?.message ?? '', /never/);
    const lines = await tenant.get<Json[]>(`/instances/${b.instance_id}/logs`);
    assert.match(lines.text, /resized/);
    const again = await tenant.task(b.handler_name);
    assert.deepEqual([again.instance_id, again.attempt], [b.instance_id, 1]);
  });

  test('each result of an exchange is accepted or refused on its own', async () => {
    const { tasks } = await claimed(6);
    const [a, b, c, d, e, f] = tasks as WorkerTask[] & Record<0 | 1 | 2 | 3 | 4 | 5, WorkerTask>;
    const other = api.tenant();
    const foreignHandler = newHandler();
    await other.run([step('a', foreignHandler)]);
    const foreign = await other.task(foreignHandler);
    const unknown = '01900000-0000-7000-8000-000000000000';
    const outcomes = await report([
      done(a),
      { ...of(b, 'complete') },
      { kind: 'finish', task_id: b.id },
      { kind: 'complete', task_id: 'b', output: {} },
      'nothing',
      { kind: 'complete', task_id: unknown, claim_epoch: 1, output: {} },
      done(foreign),
      { ...done(c), claim_epoch: 7 },
      { ...of(d, 'fail', { message: 'm' }), claim_epoch: null },
      of(e, 'heartbeat', { checkpoint: {} }),
      of(e, 'heartbeat', { checkpoint: {}, checkpoint_seq: 5 }),
      of(e, 'heartbeat', { checkpoint: { big: 'x'.repeat(262_144) }, checkpoint_seq: 0 }),
      done(e, { big: 'x'.repeat(1024 * 1024) }),
      done(a),
      done(f),
    ]);
    assert.deepEqual(columns(outcomes, 'status', 'code'), [
      [200, undefined],
      [400, 'ENG_VALIDATION'],
      [400, 'ENG_VALIDATION'],
      [400, 'ENG_VALIDATION'],
      [400, 'ENG_VALIDATION'],
      [404, 'ENG_NOT_FOUND'],
      [404, 'ENG_NOT_FOUND'],
      [409, 'ENG_STALE_EPOCH'],
      [200, undefined],
      [400, 'ENG_VALIDATION'],
      [409, 'ENG_STALE_EPOCH'],
      [413, 'ENG_TOO_LARGE'],
      [413, 'ENG_TOO_LARGE'],
      [409, 'ENG_RESULT_REPEATED'],
      [200, undefined],
    ]);
    const messages = column(outcomes, 'error');
    assert.match(messages[1] ?? '', /results\[1\]\.output is required/);
    assert.match(messages[2] ?? '', /results\[2\]\.kind must be one of complete, fail, heartbeat/);
    assert.match(messages[3] ?? '', /results\[3\]\.task_id must be a UUID/);
    assert.deepEqual(column(outcomes.slice(3, 5), 'task_id'), ['b', null]);
    await Promise.all([a, f].map(({ instance_id: id }) => tenant.until(id, 'completed')));
    for (const { instance_id } of [b, c, e]) await tenant.until(instance_id, 'waiting');
    assert.equal((await other.poll(foreignHandler)).length, 0, 'it is still claimed');
    await other.complete(foreign);
  });

  test('one that cannot be kept is refused by itself', async () => {
    const { tasks } = await claimed(4);
    const texts = tasks.map((task, n) => done(task, { n })).map((result) => JSON.stringify(result));
    texts[1] = texts[1]!.replace('"n":1', '"n":"\\u0000"');
    texts[2] = texts[2]!.replace('"n":2', '"n":12345678901234567890');
    const text = `{"worker_id": "${WORKER}", "results" : [ ${texts.join(' , ')} ]}`;
    const reply = await tenant.request<TasksExchanged>('POST', PATH, { raw: text });
    const { outcomes } = expectStatus(reply, 200);
    assert.deepEqual(column(outcomes, 'status'), [200, 400, 400, 200]);
    assert.match(outcomes[1]?.error ?? '', /results\[1\]: .*U\+0000.* at .*output\.n/);
    assert.deepEqual(column(outcomes, 'task_id'), column(tasks, 'id'));
  });

  test('hundreds are taken at once, and each instance goes on', async () => {
    const { tasks, sequence } = await claimed(300);
    const outcomes = await report(tasks.map((task, n) => done(task, { n })));
    assert.deepEqual(
      outcomes,
      tasks.map(({ id }): TaskOutcome => ({ task_id: id, status: 200 })),
    );
    const again = await report(tasks.slice(0, 3).map((task) => done(task)));
    assert.deepEqual(column(again, 'status'), [409, 409, 409]);
    const query = `/instances?sequence_id=${sequence}&state=completed&limit=1000`;
    assert.equal(expectStatus(await tenant.get<Json[]>(query), 200).length, 300);
  });
});

describe('the request', () => {
  const refused: Readonly<Record<string, readonly [Json, RegExp]>> = {
    'without a worker': [{ worker_id: null }, /worker_id/],
    'with more than a thousand results': [
      { results: Array.from({ length: 1_001 }, () => ({})) },
      /results must have at most 1000 items/,
    ],
    'without handlers in its poll': [{ poll: {} }, /poll\.handlers is required/],
    'with a member that is misspelt': [
      { poll: { handlers: ['h'], queue: ['q'] } },
      /poll\.queue is unknown; did you mean queues\?/,
    ],
    'with too many pairs of names': [
      {
        poll: {
          handlers: Array.from({ length: 11 }, (_, n) => `h${n}`),
          queues: Array.from({ length: 10 }, (_, n) => `q${n}`),
        },
      },
      /poll must name at most 100 pairs/,
    ],
  };
  test('that is wrong is refused as a whole, and nothing of it happens', async () => {
    const { tasks } = await claimed(1);
    const [task] = tasks as [WorkerTask];
    for (const [what, [body, message]] of Object.entries(refused)) {
      const reply = await ask({ results: [done(task)], ...body });
      assert.equal(reply.status, 400, what);
      assert.match(reply.body.error, message);
    }
    assert.deepEqual(column(await report([done(task)]), 'status'), [200]);
  });
});

describe('the poll', () => {
  const three = () => [newHandler(), newHandler(), newHandler(), newHandler()];

  test('the poll of an exchange takes tasks of all its handlers and queues, up to its limit', async () => {
    const handlers = three();
    for (const handler of handlers) {
      const sequence = await tenant.sequence([step('a', handler)]);
      const instances = Array.from({ length: 5 }, () => tenant.creation(sequence));
      expectStatus(await tenant.post('/instances/batch', { instances }), 201);
    }
    const stats = async () => {
      const reply = await tenant.get<Json>('/workers/tasks/stats');
      const { by_handler } = reply.body as { by_handler: Record<string, Json> };
      return handlers.reduce((sum, handler) => sum + Number(by_handler[handler]?.pending ?? 0), 0);
    };
    await eventually(async () => assert.equal(await stats(), 20));
    const ids = new Set<string>();
    for (const [limit, expected] of [
      [7, 7],
      [7, 7],
      [7, 6],
      [7, 0],
    ]) {
      const { tasks } = await exchange({ poll: { handlers, limit } });
      assert.equal(tasks.length, expected);
      for (const { id, state, worker_id, claim_epoch } of tasks) {
        assert.deepEqual([state, worker_id, claim_epoch], ['claimed', WORKER, 1]);
        ids.add(id);
      }
    }
    assert.equal(ids.size, 20, 'no task is claimed twice');
  });

  test('takes those of its queue names only', async () => {
    const handler = newHandler();
    const names = ['one', 'two', 'three', undefined];
    for (const queue_name of names) {
      const id = await tenant.run([step('a', handler, queue_name ? { queue_name } : {})]);
      await tenant.until(id, 'waiting');
    }
    const take = async (queues?: readonly string[]) => {
      const { tasks } = await exchange({ poll: { handlers: [handler], queues, limit: 10 } });
      return column(tasks, 'queue_name').map(String).sort();
    };
    assert.deepEqual(await take(['two', 'three', 'three']), ['three', 'two']);
    assert.deepEqual(await take(), ['one', 'undefined']);
  });

  test('without results waits for the first task of any of its handlers', async () => {
    const handlers = three();
    const sequences = await Promise.all(handlers.map((name) => tenant.sequence([step('a', name)])));
    for (const [index, sequence] of sequences.entries()) {
      const began = Date.now();
      const parked = exchange({ poll: { handlers, limit: 5, wait_ms: 30_000 } });
      const id = await tenant.create(sequence);
      const { tasks } = await parked;
      assert.deepEqual(columns(tasks, 'instance_id', 'handler_name'), [[id, handlers[index]]]);
      assert.ok(Date.now() - began < 15_000);
    }
  });

  test('an exchange waits for tasks as long as it asks if its results were accepted, and not if one was refused', async () => {
    const { tasks } = await claimed(3);
    const [first, second, third] = tasks.map((task) => done(task)) as [Json, Json, Json];
    const handlers = three();
    const parked = exchange({ results: [first], poll: { handlers, wait_ms: 60_000 } });
    await tenant.until(String(tasks[0]?.instance_id), 'completed');
    const id = await tenant.run([step('a', handlers[1] as string)]);
    const answer = await parked;
    assert.deepEqual(column(answer.outcomes, 'status'), [200]);
    assert.deepEqual(column(answer.tasks, 'instance_id'), [id]);

    const began = Date.now();
    const poll = { handlers: three(), wait_ms: 60_000 };
    const refused = await exchange({ results: [second, first], poll });
    assert.deepEqual([column(refused.outcomes, 'status'), refused.tasks], [[200, 409], []]);
    assert.deepEqual(column((await exchange({ results: [third] })).outcomes, 'status'), [200]);
    assert.ok(Date.now() - began < 30_000);
  });

  test('polls of a worker that stops are answered at once, those of others wait on', async () => {
    const handlers = three();
    const began = Date.now();
    const waiting = { poll: { handlers, wait_ms: 60_000 } };
    const single = { handler_name: handlers[0], worker_id: 'stops', wait_ms: 60_000 };
    const stopping = [
      exchange({ worker_id: 'stops', ...waiting }).then(({ tasks }) => tasks),
      tenant.post<WorkerTask[]>('/workers/tasks/poll', single).then(({ body }) => body),
    ];
    const other = exchange({ worker_id: 'goes on', ...waiting });
    await eventually(async () => {
      await exchange({ worker_id: 'stops', end_polls: true });
      assert.deepEqual(await Promise.race([Promise.all(stopping), wait(50, 'late')]), [[], []]);
    });
    assert.ok(Date.now() - began < 30_000);
    await tenant.run([step('a', handlers[2] as string)]);
    assert.equal((await other).tasks.length, 1);
  });

  test('finds what its own results have given rise to', async () => {
    const next = newHandler();
    const { tasks, handler } = await claimed(5, {}, [step('b', next)]);
    const results = tasks.map((task) => done(task));
    const { outcomes, tasks: found } = await exchange({
      results,
      poll: { handlers: [handler, next, ...three()], limit: 10 },
    });
    assert.deepEqual(column(outcomes, 'status'), [200, 200, 200, 200, 200]);
    assert.ok(found.length > 0, 'it answers as soon as it has some of them');
    assert.ok(found.every(({ block_id }) => block_id === 'b'));
  });

  test('makes the worker known with its handlers, queues and version', async () => {
    const handlers = three();
    const worker_id = `worker-${newHandler()}`;
    await exchange({ worker_id, version: '2.1', poll: { handlers, queues: ['q', 'r'] } });
    await eventually(async () => {
      const { body } = await tenant.get<Json[]>('/workers');
      const worker = body.find((known) => known.worker_id === worker_id);
      assert.deepEqual(
        [worker?.handlers, worker?.queues, worker?.version],
        [[...handlers].sort(), ['q', 'r'], '2.1'],
      );
    });
  });
});

// ---------------------------------------------------------------- silence

const quick = useSharedApi('quick');

const STALE_MS = 1_000 * Number(PREPARED.quick.env.ENGINE_WORKER_REAPER_STALE_SECS);

/** An instance of one external step, whose task is claimed. */
async function claimedAlone(worker_id = 'w1') {
  const tenant = quick.tenant();
  const handler = newHandler();
  const id = await tenant.run([step('a', handler)]);
  return { tenant, handler, id, task: await tenant.task(handler, { worker_id }) };
}

describe('silence', { concurrency: true }, () => {
  test('A claimed task without heartbeat is offered again with the same id, and the new worker can complete it', async () => {
    const { tenant, handler, id, task: silent } = await claimedAlone('silent');
    const again = await tenant.task(handler, { worker_id: 'lively' });
    assert.deepEqual(
      [again.id, again.worker_id, again.state, again.attempt],
      [silent.id, 'lively', 'claimed', 0],
    );
    const silence = Date.parse(again.claimed_at ?? '') - Date.parse(silent.heartbeat_at ?? '');
    assert.ok(silence >= STALE_MS, `${silence} ms`);
    await tenant.complete(again);
    await tenant.until(id, 'completed');
  });

  test('The claim epoch is 1, and 2 after a reclaim; the old epoch is 409 even for the same worker_id; the attempts list claims, reclaims, rejected calls and the completion', async () => {
    const { tenant, handler, id, task: first } = await claimedAlone();
    assert.equal(first.claim_epoch, 1);
    const second = await tenant.task(handler);
    assert.deepEqual([second.claim_epoch, second.worker_id], [2, first.worker_id]);
    const late = (['complete', 'fail', 'heartbeat'] as const).map((call) =>
      tenant.call(call, first, { claim_epoch: 1 }),
    );
    assert.deepEqual(await Promise.all(late), [409, 409, 409]);
    await tenant.complete(second, { by: 'epoch 2' });
    await tenant.until(id, 'completed');
    assert.deepEqual(await tenant.outputsOf(id), { a: { by: 'epoch 2' } });
    assert.deepEqual(await tenant.attempts(first.id), [
      ['claimed', 1],
      ['reclaimed', 1],
      ['claimed', 2],
      ...Array(3).fill(['stale_mutation_rejected', 1]),
      ['completed', 2],
    ]);
  });

  test('Attempts: a reclaim keeps the task and its id, a retry creates a new task; the attempts of both are readable until retention', async () => {
    const { tenant, handler, task: first } = await claimedAlone();
    const reclaimed = await tenant.task(handler);
    assert.deepEqual([reclaimed.id, reclaimed.attempt], [first.id, 0]);
    await tenant.fail(reclaimed, 'busy', true);
    const next = await tenant.task(handler);
    assert.notEqual(next.id, first.id);
    assert.deepEqual([next.attempt, next.claim_epoch], [1, 1]);
    await tenant.complete(next);
    assert.deepEqual(
      (await tenant.tasks(handler)).map((task) => task.id),
      [next.id],
    );
    for (const call of ['complete', 'fail', 'heartbeat'] as const) {
      assert.equal(await tenant.call(call, reclaimed), 404, call);
      assert.equal(await tenant.call(call, reclaimed, { claim_epoch: 2 }), 409, call);
    }
    assert.deepEqual(await tenant.attempts(first.id), [
      ['claimed', 1],
      ['reclaimed', 1],
      ['claimed', 2],
      ['failed', 2],
      ...Array(3).fill(['stale_mutation_rejected', 2]),
    ]);
    assert.deepEqual(await tenant.attempts(next.id), [
      ['claimed', 1],
      ['completed', 1],
    ]);
  });

  test('After ENGINE_WORKER_LOST_CLAIMS_MAX lost claims of one attempt the step fails permanently with claims_lost', async () => {
    const { tenant, handler, id, task } = await claimedAlone();
    for (const lost of [1, 2]) {
      const again = await tenant.task(handler);
      assert.deepEqual([again.id, again.lost_claims], [task.id, lost]);
    }
    const explained = await tenant.get<InstanceExplanation>(`/instances/${id}/explain`);
    assert.equal(explained.body.waiting_for[0]?.lost_claims, 2);
    assert.match(explained.body.summary, /2 workers have fallen silent over this try before/);
    const { failure } = await tenant.until(id, 'failed');
    assert.deepEqual([failure?.code, failure?.block_id], ['claims_lost', 'a']);
    assert.ok((await tenant.deadLetters()).includes(id));
    assert.deepEqual(await tenant.poll(handler), []);
    const [listed] = await tenant.tasks(handler);
    assert.deepEqual([listed?.state, listed?.lost_claims], ['failed', 3]);
    const receipts = await tenant.get<EffectReceipt[]>(`/instances/${id}/effects`);
    assert.deepEqual(column(receipts.body, 'state'), ['unknown']);
  });

  test('a heartbeat keeps the claim', async () => {
    const { tenant, handler, task } = await claimedAlone();
    const until = Date.now() + 1.8 * STALE_MS;
    await eventually(async () => {
      assert.equal(await tenant.call('heartbeat', task), 200);
      assert.ok(Date.now() > until);
    });
    assert.deepEqual(await tenant.poll(handler), []);
    await tenant.complete(task);
  });

  test('a checkpoint is handed to the next try, and to who claims it next', async () => {
    const { tenant, handler, task } = await claimedAlone();
    const checkpoint = { page: 1 };
    assert.equal(await tenant.call('heartbeat', task, { checkpoint, checkpoint_seq: 0 }), 200);
    await tenant.fail(task, 'later', true);
    const next = await tenant.task(handler);
    const again = await tenant.task(handler, { worker_id: 'w2' });
    assert.equal(again.id, next.id);
    for (const { checkpoint_seq, resume_checkpoint } of [next, again]) {
      assert.deepEqual([checkpoint_seq, resume_checkpoint], [1, checkpoint]);
    }
  });
});
