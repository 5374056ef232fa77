/** Workers: what a poll gets, what they do with a claimed task, and how tasks are shown. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type {
  HandlerNames,
  TaskStats,
  WorkerAttempt,
  WorkerInfo,
  WorkerTask,
} from '../../schema/worker.js';
import type { Json, TaskCall } from '../helpers/api.js';
import { eventually, newHandler, router, step, tryCatch, useSharedApi } from '../helpers/api.js';
import { expectStatus, NoReplyError } from '../helpers/client.js';
import { column, columns } from '../helpers/columns.js';

const api = useSharedApi();
const tenant = api.tenant();

test('An unknown handler makes the instance wait; a poll returns its task as claimed by the poller; completing it finishes the instance', async () => {
  const handler = newHandler();
  const id = await tenant.run(
    [step('a', handler, { params: { n: 1, s: '{{ data.x }}' }, timeout: 60_000 })],
    { context: { data: { x: 'y' }, config: { c: 1 } } },
  );
  assert.equal((await tenant.instance(id)).state, 'waiting');
  const [task, ...others] = await tenant.poll(handler, { worker_id: 'me' });
  assert.ok(task && others.length === 0);
  const { id: _, created_at, claimed_at, heartbeat_at, idempotency_key, ...rest } = task;
  assert.match(idempotency_key, /^[0-9a-f-]{36}$/);
  assert.deepEqual(rest, {
    instance_id: id,
    block_id: 'a',
    handler_name: handler,
    params: { n: 1, s: 'y' },
    context: { data: { x: 'y' }, config: { c: 1 } },
    attempt: 0,
    timeout_ms: 60_000,
    state: 'claimed',
    worker_id: 'me',
    claim_epoch: 1,
    lost_claims: 0,
    completed_at: null,
    output: null,
    error_message: null,
    error_retryable: null,
    checkpoint_seq: 0,
  });
  assert.ok(claimed_at && claimed_at >= created_at && heartbeat_at === claimed_at);
  assert.deepEqual(await tenant.poll(handler), []);
  assert.deepEqual(await tenant.tasks(handler), [task]);
  await tenant.complete(task);
  await tenant.until(id, 'completed');
});

test('limit: 1 by default, 0 gives none, large ones are lowered', async () => {
  const handler = newHandler();
  const sequence = await tenant.sequence([step('a', handler)]);
  for (let index = 0; index < 3; index++) await tenant.create(sequence);
  assert.equal((await tenant.poll(handler, { limit: 0 })).length, 0);
  assert.equal((await tenant.poll(handler)).length, 1);
  assert.equal((await tenant.poll(handler, { limit: 100_000 })).length, 2);
});

test('what is wrong in a poll is 400 and claims nothing', async () => {
  const handler = newHandler();
  await tenant.run([step('a', handler)]);
  const good = { handler_name: handler, worker_id: 'w' };
  for (const [body, says] of [
    [{ worker_id: 'w' }, /handler_name is required/],
    [{ ...good, worker_id: ' ' }, /worker_id must not be blank/],
    [{ ...good, limit: '1' }, /limit must be an integer/],
    [{ ...good, wait_ms: -1 }, /wait_ms must be >= 0/],
    [{ ...good, version: 5 }, /version must be a string/],
  ] as const) {
    const reply = await tenant.post<{ error: string }>('/workers/tasks/poll', body);
    assert.equal(reply.status, 400, reply.text);
    assert.match(reply.body.error, says);
  }
  const queue = await tenant.post<{ error: string }>('/workers/tasks/poll/queue', good);
  assert.equal(queue.status, 400);
  assert.match(queue.body.error, /queue_name is required/);
  assert.equal((await tenant.poll(handler)).length, 1);
});

// ---------------------------------------------------------------- long polls

test('a parked poll is woken by a new task, long before its time is up', async () => {
  const handler = newHandler();
  const sequence = await tenant.sequence([step('a', handler)]);
  await tenant.poll(handler);
  const began = Date.now();
  const parked = tenant.poll(handler, { wait_ms: 10_000 });
  const id = await tenant.create(sequence);
  const [task] = await parked;
  assert.equal(task?.instance_id, id);
  assert.ok(Date.now() - began < 5_000);
});

test('a parked poll of one tenant is not woken by another tenant’s task', async () => {
  const handler = newHandler();
  const other = api.tenant();
  const sequence = await other.sequence([step('a', handler)]);
  const parked = tenant.poll(handler, { wait_ms: 100 });
  await other.create(sequence);
  assert.deepEqual(await parked, []);
  assert.equal((await other.poll(handler, { wait_ms: 30_000 })).length, 1);
});

test('a poll that is abandoned around its claim is un-claimed at once, not after 60 s', async () => {
  const handler = newHandler();
  const sequence = await tenant.sequence([step('a', handler)]);
  const rounds = 20;
  let crossed = 0;
  for (let round = 0; round < rounds; round++) {
    const gone = new AbortController();
    const parked = tenant
      .post<WorkerTask[]>(
        '/workers/tasks/poll',
        { handler_name: handler, worker_id: 'gone', wait_ms: 30_000 },
        gone.signal,
      )
      .catch((error: unknown) => {
        assert.ok(error instanceof NoReplyError);
        return undefined;
      });
    const created = tenant.create(sequence);
    // The abort comes at another moment of the claim in each round.
    for (let turn = 0; turn < round; turn++) await new Promise(setImmediate);
    gone.abort();
    const [reply] = [await parked, await created];
    const answered = reply?.body[0];
    // Whoever went away may keep the claim for a moment more, and lose it then.
    await eventually(async () => {
      const delivered = answered ?? (await offeredAgain(handler));
      await tenant.complete(delivered ?? (await claimedByGone(handler)));
      if (delivered === undefined) crossed += 1;
    });
  }
  // An answer that had reached the client's machine when it turned away cannot be taken back.
  assert.ok(crossed <= rounds / 4, `${crossed} of ${rounds} answers crossed the abort on the wire`);
  await eventually(async () => {
    const states = (await tenant.tasks(handler)).map(({ state }) => state);
    assert.deepEqual(new Set(states), new Set(['completed']));
  });
});

/** The task that was given back, within the time of a long poll; else undefined. */
async function offeredAgain(handler: string): Promise<WorkerTask | undefined> {
  const [task] = await tenant.poll(handler, { wait_ms: 1_000 });
  return task;
}

async function claimedByGone(handler: string): Promise<WorkerTask> {
  const claimed = (await tenant.tasks(handler)).find(({ state }) => state === 'claimed');
  assert.equal(claimed?.worker_id, 'gone');
  return claimed;
}

// ---------------------------------------------------------------- lists

test('workers are known by their polls', async () => {
  const tenant = api.tenant();
  const handlers = [newHandler(), newHandler()].sort();
  await tenant.run([step('a', handlers[0] ?? '')]);
  await tenant.task(handlers[0] ?? '', { worker_id: 'w', version: '1.2.3' });
  await tenant.poll(handlers[1] ?? '', { worker_id: 'w', version: '1.2.3' });
  await tenant.post('/workers/tasks/poll/queue', {
    handler_name: handlers[0],
    worker_id: 'w',
    queue_name: 'q',
  });
  await eventually(async () => {
    const { body } = await tenant.get<WorkerInfo[]>('/workers');
    assert.equal(body.length, 1);
    const { last_seen_at, ...worker } = body[0] as WorkerInfo;
    assert.deepEqual(worker, {
      worker_id: 'w',
      handlers,
      queues: ['q'],
      version: worker.version,
      alive: true,
      in_flight: 1,
    });
    assert.ok(Math.abs(Date.parse(last_seen_at) - Date.now()) < 10_000);
  });
  assert.deepEqual((await api.tenant().get('/workers')).body, []);
  assert.equal((await tenant.get('/workers?alive_within_secs=x')).status, 400);
});

test('handlers lists the built-in names and those that workers serve or sequences need', async () => {
  const [tenant, handler] = [api.tenant(), newHandler()];
  await tenant.poll(handler);
  await eventually(async () => {
    const { body } = await tenant.get<HandlerNames>('/handlers');
    assert.deepEqual([...body.builtin].sort(), [
      'assert',
      'fail',
      'http_request',
      'log',
      'noop',
      'sleep',
      'transform',
      'wait_for_event',
    ]);
    assert.ok(body.external.includes(handler), JSON.stringify(body));
  });
});

// ---------------------------------------------------------------- claims

type Call = 'complete' | 'fail' | 'heartbeat';
const NEEDED: Readonly<Record<Call, Json>> = {
  complete: { output: { ok: true } },
  fail: { message: 'no' },
  heartbeat: {},
};

const call = (task: { id: string }, name: Call, body: Json) =>
  tenant.post<Json & { error: string }>(`/workers/tasks/${task.id}/${name}`, {
    ...NEEDED[name],
    ...body,
  });
const attempts = async (task: { id: string }, query = '') =>
  expectStatus(
    await tenant.get<WorkerAttempt[]>(`/workers/tasks/${task.id}/attempts${query}`),
    200,
  );

async function claimed(more: Json = {}, worker = 'w1'): Promise<WorkerTask> {
  const handler = newHandler();
  await tenant.run([step('a', handler, more)]);
  return tenant.task(handler, { worker_id: worker });
}

describe('heartbeats and checkpoints', () => {
  test('a heartbeat moves heartbeat_at and answers the checkpoint number', async () => {
    const task = await claimed();
    const reply = await eventually(async () => {
      const beat = await call(task, 'heartbeat', { worker_id: 'w1', claim_epoch: 1 });
      const [listed] = await tenant.tasks(task.handler_name);
      assert.ok((listed?.heartbeat_at ?? '') > (task.heartbeat_at ?? ''));
      return beat;
    });
    assert.deepEqual([reply.status, reply.body], [200, { checkpoint_seq: 0 }]);
  });

  test('checkpoints count up, a wrong number is 409, none is 400', async () => {
    const task = await claimed();
    const beat = (more: Json) => call(task, 'heartbeat', { worker_id: 'w1', ...more });
    const first = await beat({ checkpoint: { page: 1 }, checkpoint_seq: 0 });
    assert.deepEqual([first.status, first.body], [200, { checkpoint_seq: 1 }]);
    const second = await beat({ checkpoint: { page: 2 }, checkpoint_seq: 1 });
    assert.deepEqual(second.body, { checkpoint_seq: 2 });
    assert.equal((await beat({ checkpoint: { page: 9 }, checkpoint_seq: 1 })).status, 409);
    const missing = await beat({ checkpoint: { page: 9 } });
    assert.equal(missing.status, 400);
    assert.match(missing.body.error, /checkpoint_seq/);
    assert.deepEqual((await beat({ checkpoint: null })).body, { checkpoint_seq: 2 });
    const [listed] = await tenant.tasks(task.handler_name);
    assert.deepEqual([listed?.checkpoint_seq, listed?.resume_checkpoint], [2, { page: 2 }]);
  });
});

describe('whose call counts', () => {
  test('what is wrong in a body is 400, and the claim stays', async () => {
    const task = await claimed();
    // `schema.test.ts` has the others.
    const bodies: [Call, Json, RegExp][] = [
      ['complete', { output: {} }, /worker_id is required/],
      ['complete', { worker_id: 'w1', output: [] }, /output must be an object/],
      ['fail', { worker_id: 'w1', retryable: 'yes' }, /retryable must be a boolean/],
      ['heartbeat', { worker_id: 'w1', checkpoint_seq: 0.5 }, /checkpoint_seq must be an integer/],
    ];
    const large = { worker_id: 'w1', output: { x: 'x'.repeat(1024 * 1024) } };
    assert.equal((await call(task, 'complete', large)).status, 413);
    for (const [name, body, says] of bodies) {
      const reply = await call(task, name, body);
      assert.equal(reply.status, 400, `${name} ${JSON.stringify(body)}`);
      assert.match(reply.body.error, says);
    }
    await tenant.complete(task);
  });
});

describe('the preference for a minimal answer', () => {
  const report = (task: WorkerTask, name: Call, body: Json, prefer: string) =>
    tenant.request<{ error: string }>('POST', `/workers/tasks/${task.id}/${name}`, {
      body: { worker_id: 'w1', claim_epoch: task.claim_epoch, ...body },
      headers: { prefer },
    });

  test('a result is answered 204 without the task, and counts the same', async () => {
    const [done, failed] = [await claimed(), await claimed()];
    for (const reply of [
      await report(done, 'complete', { output: { n: 1 } }, 'return=minimal'),
      await report(failed, 'fail', { message: 'no' }, 'handling=strict; x, Return="Minimal"'),
    ]) {
      assert.deepEqual([reply.status, reply.text], [204, '']);
      assert.equal(reply.headers['preference-applied'], 'return=minimal');
    }
    assert.equal((await tenant.until(done.instance_id, 'completed')).context.data.n, 1);
    await tenant.until(failed.instance_id, 'failed');
  });

  test('refusals, and answers to other preferences, are whole', async () => {
    const task = await claimed();
    const refused = await report(task, 'complete', { output: [] }, 'return=minimal');
    assert.deepEqual([refused.status, refused.headers['preference-applied']], [400, undefined]);
    assert.match(refused.body.error, /output must be an object/);
    for (const other of [
      'return=minimalist',
      'return=representation, return=minimal',
      'handling=lenient; return=minimal',
    ]) {
      const whole = await report(await claimed(), 'complete', { output: {} }, other);
      assert.deepEqual([whole.status, whole.headers['preference-applied']], [200, undefined]);
      assert.match(whole.text, /"context":\{/);
    }
    await report(task, 'complete', { output: {} }, 'return=minimal');
    const repeated = await report(task, 'complete', { output: {} }, 'return=minimal');
    assert.deepEqual(
      [repeated.status, repeated.headers['x-error-code']],
      [409, 'ENG_RESULT_REPEATED'],
    );
  });
});

describe('the history', () => {
  test('rejected calls are kept with the caller’s epoch and worker', async () => {
    const task = await claimed();
    await call(task, 'fail', { worker_id: 'thief', claim_epoch: 1 });
    await call(task, 'heartbeat', { worker_id: 'w1', claim_epoch: 7 });
    await tenant.complete(task);
    const entries = await attempts(task);
    assert.deepEqual(columns(entries, 'event', 'claim_epoch', 'worker_id'), [
      ['claimed', 1, 'w1'],
      ['stale_mutation_rejected', 1, 'thief'],
      ['stale_mutation_rejected', 7, 'w1'],
      ['completed', 1, 'w1'],
    ]);
    assert.ok(entries.every((entry) => entry.task_id === task.id));
    assert.equal(new Set(entries.map((entry) => entry.id)).size, 4);
    const times = entries.map((entry) => entry.created_at);
    assert.deepEqual(times, [...times].sort());
    assert.deepEqual(
      column(await attempts(task, '?offset=1&limit=2'), 'id'),
      column(entries.slice(1, 3), 'id'),
    );
  });
});

// ---------------------------------------------------------------- tasks

const CALLS: readonly TaskCall[] = ['complete', 'fail', 'heartbeat'];
const NOBODY = '00000000-0000-7000-8000-000000000000';

test('A poll without tasks returns `[]`, also for unknown handlers', async () => {
  const handler = newHandler();
  await tenant.run([step('a', handler)]);
  await tenant.complete(await tenant.task(handler));
  assert.deepEqual(await tenant.poll(handler), []);
  assert.deepEqual(await tenant.poll(newHandler()), []);
});

test('Built-in and external steps run in the order of the sequence', async () => {
  const [one, two] = [newHandler(), newHandler()];
  const id = await tenant.run([
    step('a', 'noop'),
    step('b', one),
    step('c', 'noop'),
    step('d', two),
    step('e', 'noop'),
  ]);
  const first = await tenant.task(one);
  assert.deepEqual(await tenant.poll(two), []);
  await tenant.complete(first);
  await tenant.complete(await tenant.task(two));
  await tenant.until(id, 'completed');
  assert.deepEqual(await tenant.rowsOf(id), ['a', 'b', 'c', 'd', 'e']);
});

describe('A heartbeat of a claimed task is accepted; of an unclaimed one it is 404 without an epoch and 409 with one', () => {
  test('not claimed yet, or no more: 404 without an epoch, 409 with one', async () => {
    const handler = newHandler();
    await tenant.run([step('a', handler)]);
    const [pending] = await tenant.tasks(handler);
    assert.equal(pending?.state, 'pending');
    for (const name of CALLS) {
      const by = { worker_id: 'w1' };
      assert.equal(await tenant.call(name, pending, by), 404, name);
      assert.equal(await tenant.call(name, pending, { ...by, claim_epoch: 0 }), 409, name);
    }
    const claimed = await tenant.task(handler);
    await tenant.complete(claimed);
    assert.equal(await tenant.call('heartbeat', claimed), 404);
    assert.equal(await tenant.call('heartbeat', claimed, { claim_epoch: 1 }), 409);
  });
});

describe('Complete or fail by another worker is 404 without an epoch and 409 with one; an unknown task is 404', () => {
  describe('A wrong worker without an epoch is 404, with an epoch 409', () => {
    for (const name of CALLS) {
      test(name, async () => {
        const handler = newHandler();
        await tenant.run([step('a', handler)]);
        const task = await tenant.task(handler);
        const other = { worker_id: 'someone-else' };
        assert.equal(await tenant.call(name, task, other), 404);
        assert.equal(await tenant.call(name, task, { ...other, claim_epoch: 1 }), 409);
        for (const claim_epoch of [0, 2]) {
          assert.equal(await tenant.call(name, task, { claim_epoch }), 409);
        }
        assert.equal((await tenant.instance(task.instance_id)).state, 'waiting');
        if (name === 'heartbeat') assert.equal(await tenant.call(name, task), 200);
        assert.equal(await tenant.call(name, task, { claim_epoch: 1 }), 200);
      });
    }
  });

  test('an unknown task id', async () => {
    const unknown = { id: NOBODY, worker_id: 'w1' } as WorkerTask;
    for (const name of CALLS) {
      assert.equal(await tenant.call(name, unknown), 404, name);
      assert.equal(await tenant.call(name, unknown, { claim_epoch: 1 }), 404, name);
    }
  });
});

describe('A permanent failure fails the instance into the DLQ, unless a try_catch catches it', () => {
  test('it fails the instance', async () => {
    const [tenant, handler] = [api.tenant(), newHandler()];
    const id = await tenant.run([step('a', handler), step('b', 'noop')]);
    await tenant.fail(await tenant.task(handler), 'no', false);
    await tenant.until(id, 'failed');
    assert.deepEqual(await tenant.deadLetters(), [id]);
  });

  test('inside try_catch the catch runs', async () => {
    const [tenant, handler] = [api.tenant(), newHandler()];
    const id = await tenant.run([tryCatch('t', [step('a', handler)], [step('caught', 'noop')])]);
    await tenant.fail(await tenant.task(handler), 'no', false);
    await tenant.until(id, 'completed');
    assert.deepEqual(await tenant.rowsOf(id), ['caught']);
    assert.deepEqual(await tenant.deadLetters(), []);
  });
});

test('After a fail the task is listed with state failed', async () => {
  const [tenant, handler] = [api.tenant(), newHandler()];
  await tenant.run([step('a', handler)]);
  const task = await tenant.task(handler);
  await tenant.fail(task, 'out of paper');
  const listed = await tenant.get<WorkerTask[]>('/workers/tasks?state=failed');
  assert.deepEqual(columns(listed.body, 'id', 'state', 'error_message', 'error_retryable'), [
    [task.id, 'failed', 'out of paper', false],
  ]);
});

test('A task with queue_name is returned only by polls of that queue', async () => {
  const [tenant, handler] = [api.tenant(), newHandler()];
  const id = await tenant.run([step('a', handler, { queue_name: 'gpu' })]);
  const pollQueue = async (queue_name: string) => {
    const body = { handler_name: handler, worker_id: 'w1', queue_name };
    const reply = await tenant.post<WorkerTask[]>('/workers/tasks/poll/queue', body);
    return expectStatus(reply, 200).map((task) => [task.instance_id, task.queue_name]);
  };
  assert.deepEqual(await pollQueue('cpu'), []);
  assert.deepEqual(await pollQueue('gpu'), [[id, 'gpu']]);
});

describe('The task list filters by state; stats count pending and claimed by state and handler, and active_workers', () => {
  test('the list, newest first, filters by state, handler, worker and queue', async () => {
    const tenant = api.tenant();
    const [one, two] = [newHandler(), newHandler()];
    const sequence = await tenant.sequence([step('a', one, { queue_name: 'q' })]);
    const ids: string[] = [];
    for (let index = 0; index < 3; index++) ids.push(await tenant.create(sequence));
    const other = await tenant.run([step('a', two)]);
    const task = await tenant.task(one, { worker_id: 'me' });
    const list = async (query: string) => {
      const reply = await tenant.get<WorkerTask[]>(`/workers/tasks${query}`);
      assert.equal(reply.status, 200, reply.text);
      return reply.body;
    };
    const all = await list('');
    assert.equal(all.length, 4);
    const times = all.map((item) => item.created_at);
    assert.deepEqual(times, [...times].sort().reverse());
    assert.equal((await list('?state=pending')).length, 3);
    assert.deepEqual(column(await list('?state=claimed'), 'id'), [task.id]);
    assert.equal((await list('?state=pending,claimed')).length, 4);
    assert.equal((await list(`?handler_name=${one}`)).length, 3);
    assert.deepEqual(column(await list(`?handler_name=${two}`), 'instance_id'), [other]);
    assert.equal((await list('?worker_id=me')).length, 1);
    assert.equal((await list('?queue_name=q')).length, 3);
    assert.equal((await list('?queue_name=q&state=claimed')).length, 1);
    assert.deepEqual([...(await list('?limit=2')), ...(await list('?limit=2&offset=2'))], all);
    for (const query of ['?state=done', '?limit=x', '?offset=-1']) {
      assert.equal((await tenant.get(`/workers/tasks${query}`)).status, 400, query);
    }
  });

  test('the stats count by state and handler, and name the workers that hold tasks', async () => {
    const [tenant, handler] = [api.tenant(), newHandler()];
    const sequence = await tenant.sequence([step('a', handler)]);
    for (let index = 0; index < 4; index++) await tenant.create(sequence);
    await tenant.complete(await tenant.task(handler));
    await tenant.fail(await tenant.task(handler), 'no');
    await tenant.task(handler, { worker_id: 'busy' });
    const { body } = await tenant.get<TaskStats>('/workers/tasks/stats');
    const counts = { pending: 1, claimed: 1, completed: 1, failed: 1 };
    assert.deepEqual(body, {
      by_state: counts,
      by_handler: { [handler]: counts },
      active_workers: ['busy'],
    });
    const other = await api.tenant().get<TaskStats>('/workers/tasks/stats');
    assert.deepEqual(other.body.by_handler, {});
  });
});

test('Concurrent polls never return the same task twice', async () => {
  const [tenant, handler] = [api.tenant(), newHandler()];
  const sequence = await tenant.sequence([step('a', handler)]);
  const count = 60;
  const items = Array(count).fill(tenant.creation(sequence));
  expectStatus(await tenant.post('/instances/batch', { instances: items }), 201);
  const seen: string[] = [];
  const work = async (worker_id: string) => {
    while (seen.length < count) {
      const tasks = await tenant.poll(handler, { worker_id, limit: 3 });
      assert.ok(tasks.every((task) => task.worker_id === worker_id));
      seen.push(...tasks.map((task) => task.id));
    }
  };
  await Promise.all(Array.from({ length: 16 }, (_, index) => work(`worker-${index}`)));
  assert.deepEqual([seen.length, new Set(seen).size], [count, count]);
});

test('The output of an external step is stored as the output of its block', async () => {
  const handler = newHandler();
  const id = await tenant.run([step('a', handler)]);
  const output = { text: 'é', deep: { list: [1, null] } };
  await tenant.complete(await tenant.task(handler), output);
  const [row] = await tenant.outputs(id);
  assert.ok(row);
  assert.deepEqual(
    [row.instance_id, row.block_id, row.output, row.output_ref, row.attempt],
    [id, 'a', output, null, 0],
  );
  assert.equal(row.output_size, Buffer.byteLength(JSON.stringify(output)));
});

test('Keys of an external object output are merged into context.data, where conditions such as `category == "A"` read them', async () => {
  const [tenant, handler] = [api.tenant(), newHandler()];
  const routes = { 'category == "A"': [step('routeA', 'noop')], category: [step('other', 'noop')] };
  const id = await tenant.run([step('classify', handler), router('r', routes)]);
  await tenant.complete(await tenant.task(handler), { category: 'A' });
  const { context } = await tenant.until(id, 'completed');
  assert.deepEqual(context.data, { category: 'A' });
  assert.deepEqual(await tenant.rowsOf(id), ['classify', 'routeA']);
});
