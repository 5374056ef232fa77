/** The work of workers, over HTTP. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { TaskStats, WorkerTask } from '../../schema/worker.js';
import {
  newHandler,
  router,
  step,
  type TaskCall,
  tryCatch,
  useSharedApi,
} from '../helpers/api.js';
import { expectStatus } from '../helpers/client.js';
import { column } from '../helpers/columns.js';

const CALLS: readonly TaskCall[] = ['complete', 'fail', 'heartbeat'];
const NOBODY = '00000000-0000-7000-8000-000000000000';

const api = useSharedApi();

test("Unknown handler puts the instance in waiting; poll returns one task with state claimed and the poller's worker_id; complete finishes the instance", async () => {
  const tenant = api.tenant();
  const handler = newHandler();
  const id = await tenant.run([step('a', handler, { params: { n: 1 } })]);
  assert.equal((await tenant.instance(id)).state, 'waiting');
  const tasks = await tenant.poll(handler, { worker_id: 'poller-7' });
  const [task] = tasks;
  assert.ok(task);
  assert.equal(tasks.length, 1);
  assert.deepEqual(
    [task.instance_id, task.block_id, task.state, task.worker_id, task.params],
    [id, 'a', 'claimed', 'poller-7', { n: 1 }],
  );
  await tenant.complete(task);
  await tenant.until(id, 'completed');
});

test('Poll with nothing to do returns `[]`, also for unknown handlers', async () => {
  const tenant = api.tenant();
  const handler = newHandler();
  await tenant.run([step('a', handler)]);
  await tenant.complete(await tenant.task(handler));
  assert.deepEqual(await tenant.poll(handler), []);
  assert.deepEqual(await tenant.poll(newHandler()), []);
});

test('Mixed built-in and external steps run in order', async () => {
  const tenant = api.tenant();
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

describe('Heartbeat on a claimed task is accepted; on a task that is not claimed it is 404 without an epoch and 409 with one', () => {
  test('claimed', async () => {
    const tenant = api.tenant();
    const handler = newHandler();
    await tenant.run([step('a', handler)]);
    const task = await tenant.task(handler);
    assert.equal(await tenant.call('heartbeat', task), 200);
    assert.equal(await tenant.call('heartbeat', task, { claim_epoch: 1 }), 200);
  });

  test('not claimed yet, or no more: 404 without an epoch, 409 with one', async () => {
    const tenant = api.tenant();
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

describe('Complete or fail with another worker_id is 404 without an epoch and 409 with one; unknown task id 404 on complete, fail, heartbeat', () => {
  for (const name of ['complete', 'fail'] as const) {
    test(`${name} with another worker_id`, async () => {
      const tenant = api.tenant();
      const handler = newHandler();
      await tenant.run([step('a', handler)]);
      const task = await tenant.task(handler);
      const other = { worker_id: 'someone-else' };
      assert.equal(await tenant.call(name, task, other), 404);
      assert.equal(await tenant.call(name, task, { ...other, claim_epoch: 1 }), 409);
      assert.equal(await tenant.call(name, task), 200);
    });
  }

  test('an unknown task id', async () => {
    const tenant = api.tenant();
    const unknown = { id: NOBODY, worker_id: 'w1' } as WorkerTask;
    for (const name of CALLS) {
      assert.equal(await tenant.call(name, unknown), 404, name);
      assert.equal(await tenant.call(name, unknown, { claim_epoch: 1 }), 404, name);
    }
  });
});

describe('retryable false fails the instance (DLQ); inside try_catch the catch runs', () => {
  test('it fails the instance', async () => {
    const tenant = api.tenant();
    const handler = newHandler();
    const id = await tenant.run([step('a', handler), step('b', 'noop')]);
    await tenant.fail(await tenant.task(handler), 'no', false);
    await tenant.until(id, 'failed');
    assert.deepEqual(await tenant.deadLetters(), [id]);
  });

  test('inside try_catch the catch runs', async () => {
    const tenant = api.tenant();
    const handler = newHandler();
    const id = await tenant.run([tryCatch('t', [step('a', handler)], [step('caught', 'noop')])]);
    await tenant.fail(await tenant.task(handler), 'no', false);
    await tenant.until(id, 'completed');
    assert.deepEqual(await tenant.rowsOf(id), ['caught']);
    assert.deepEqual(await tenant.deadLetters(), []);
  });
});

test('After a fail the task is listed with state failed', async () => {
  const tenant = api.tenant();
  const handler = newHandler();
  await tenant.run([step('a', handler)]);
  const task = await tenant.task(handler);
  await tenant.fail(task, 'out of paper');
  const listed = await tenant.get<WorkerTask[]>('/workers/tasks?state=failed');
  assert.deepEqual(
    listed.body.map((item) => [item.id, item.state, item.error_message, item.error_retryable]),
    [[task.id, 'failed', 'out of paper', false]],
  );
});

test('Task with queue_name is returned by the queue poll of that queue only', async () => {
  const tenant = api.tenant();
  const handler = newHandler();
  const id = await tenant.run([step('a', handler, { queue_name: 'gpu' })]);
  const pollQueue = async (queue_name: string) => {
    const body = { handler_name: handler, worker_id: 'w1', queue_name };
    const reply = await tenant.post<WorkerTask[]>('/workers/tasks/poll/queue', body);
    return expectStatus(reply, 200).map((task) => [task.instance_id, task.queue_name]);
  };
  assert.deepEqual(await pollQueue('cpu'), []);
  assert.deepEqual(await pollQueue('gpu'), [[id, 'gpu']]);
});

describe('Task list filters by state; stats count pending and claimed and have by_state, by_handler, active_workers', () => {
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
    const pages = [...(await list('?limit=2')), ...(await list('?limit=2&offset=2'))];
    assert.deepEqual(pages, all);
    for (const query of ['?state=done', '?limit=x', '?offset=-1']) {
      assert.equal((await tenant.get(`/workers/tasks${query}`)).status, 400, query);
    }
  });

  test('the stats count by state and handler, and name the workers that hold tasks', async () => {
    const tenant = api.tenant();
    const handler = newHandler();
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

test('Many workers polling together never share a task', async () => {
  const tenant = api.tenant();
  const handler = newHandler();
  const sequence = await tenant.sequence([step('a', handler)]);
  const count = 120;
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

test("External output is stored as the step's BlockOutput", async () => {
  const tenant = api.tenant();
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

test('Keys of an external object output become visible in context.data: after a worker returns `{category: "A"}` a router condition `category == "A"` picks that route', async () => {
  const tenant = api.tenant();
  const handler = newHandler();
  const routes = { 'category == "A"': [step('routeA', 'noop')], category: [step('other', 'noop')] };
  const id = await tenant.run([step('classify', handler), router('r', routes)]);
  await tenant.complete(await tenant.task(handler), { category: 'A' });
  const { context } = await tenant.until(id, 'completed');
  assert.deepEqual(context.data, { category: 'A' });
  assert.deepEqual(await tenant.rowsOf(id), ['classify', 'routeA']);
});

test('/health/live and /health/ready return 200', async () => {
  for (const prefix of ['', '/api/v1']) {
    const anyone = api.root.with({ prefix, apiKey: null });
    for (const path of ['/health/live', '/health/ready']) {
      assert.equal((await anyone.get(path)).status, 200, prefix + path);
    }
  }
});
