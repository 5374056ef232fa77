/** Polling: order, tenants, queues, limits, and that no two polls get the same task. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { TaskStats } from '../../schema/worker.js';
import { eventually, newHandler, step, useSharedApi } from '../helpers/api.js';
import { expectStatus } from '../helpers/client.js';
import { column, columns } from '../helpers/columns.js';

const api = useSharedApi();
const tenant = api.tenant();

test('a polled task is claimed and complete in every field', async () => {
  const handler = newHandler();
  const id = await tenant.run(
    [step('a', handler, { params: { n: 1, s: '{{ data.x }}' }, timeout: 60_000 })],
    { context: { data: { x: 'y' }, config: { c: 1 } } },
  );
  const [task] = await tenant.poll(handler, { worker_id: 'me' });
  assert.ok(task);
  const { id: taskId, created_at, claimed_at, heartbeat_at, ...rest } = task;
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
    completed_at: null,
    output: null,
    error_message: null,
    error_retryable: null,
    checkpoint_seq: 0,
  });
  assert.ok(claimed_at && claimed_at >= created_at && heartbeat_at === claimed_at);
  assert.deepEqual(await tenant.poll(handler), []);
  const [listed] = expectStatus(
    await tenant.get<{ id: string }[]>(`/workers/tasks?handler_name=${handler}`),
    200,
  );
  assert.deepEqual(listed, { ...task, id: taskId });
});

test('limit: 1 by default, 0 gives none, large ones are lowered', async () => {
  const handler = newHandler();
  const sequence = await tenant.sequence([step('a', handler)]);
  for (let index = 0; index < 3; index++) await tenant.create(sequence);
  assert.equal((await tenant.poll(handler, { limit: 0 })).length, 0);
  assert.equal((await tenant.poll(handler)).length, 1);
  assert.equal((await tenant.poll(handler, { limit: 100_000 })).length, 2);
});

test('a poll with a tenant gets only its tasks, in its own order', async () => {
  const handler = newHandler();
  const other = api.tenant();
  const theirs = await other.run([step('a', handler)], { priority: 'critical' });
  const mine = await tenant.run([step('a', handler)], { priority: 'low' });
  const tasks = await tenant.poll(handler, { limit: 10 });
  assert.deepEqual(column(tasks, 'instance_id'), [mine]);
  assert.equal((await other.task(handler)).instance_id, theirs);
});

test('a queue poll gets tasks with exactly that queue, a plain poll gets all', async () => {
  const handler = newHandler();
  const sequence = await tenant.sequence([
    {
      type: 'parallel',
      id: 'p',
      branches: [
        [step('one', handler, { queue_name: 'q1' })],
        [step('two', handler, { queue_name: 'q2' })],
        [step('none', handler)],
      ],
    },
  ]);
  await tenant.create(sequence);
  await tenant.create(sequence);
  const queue = async (queue_name: string) =>
    expectStatus(
      await tenant.post<{ block_id: string; queue_name?: string }[]>('/workers/tasks/poll/queue', {
        handler_name: handler,
        worker_id: 'w',
        queue_name,
        limit: 10,
      }),
      200,
    );
  const fromOne = await queue('q1');
  assert.deepEqual(columns(fromOne, 'block_id', 'queue_name'), [
    ['one', 'q1'],
    ['one', 'q1'],
  ]);
  assert.deepEqual(await queue('q3'), []);
  const rest = await tenant.poll(handler, { limit: 10 });
  assert.deepEqual(rest.map((task) => task.block_id).sort(), ['none', 'none', 'two', 'two']);
});

test('the same holds for every step after a completion, over many handlers', async () => {
  const handlers = Array.from({ length: 25 }, newHandler);
  const id = await tenant.run(handlers.map((handler, index) => step(`s${index}`, handler)));
  for (const handler of handlers) {
    assert.equal((await tenant.instance(id)).state, 'waiting');
    const [task] = await tenant.poll(handler);
    assert.ok(task, handler);
    await tenant.complete(task);
  }
  await tenant.until(id, 'completed');
});

test("thousands of older tasks hide neither another tenant's task nor that of another queue", async () => {
  const handler = newHandler();
  const flood = await tenant.sequence([step('a', handler, { queue_name: 'flooded' })]);
  const instances = Array(5_100).fill(tenant.creation(flood, { priority: 'critical' }));
  expectStatus(await tenant.post('/instances/batch', { instances }), 201);
  await eventually(async () => {
    const { body } = await tenant.get<TaskStats>('/workers/tasks/stats');
    assert.equal(body.by_handler[handler]?.pending, instances.length);
  }, 60_000);
  const other = api.tenant();
  const theirs = await other.run([step('a', handler)]);
  const quiet = await tenant.run([step('a', handler, { queue_name: 'quiet' })]);
  await other.until(theirs, 'waiting');
  await tenant.until(quiet, 'waiting');
  assert.equal((await other.poll(handler))[0]?.instance_id, theirs);
  const poll = { handler_name: handler, worker_id: 'w', queue_name: 'quiet' };
  const reply = await tenant.post<{ instance_id: string }[]>('/workers/tasks/poll/queue', poll);
  assert.equal(expectStatus(reply, 200)[0]?.instance_id, quiet);
  assert.equal((await tenant.poll(handler)).length, 1);
});

test('what is wrong in a poll is 400 and claims nothing', async () => {
  const handler = newHandler();
  await tenant.run([step('a', handler)]);
  const good = { handler_name: handler, worker_id: 'w' };
  for (const [body, says] of [
    [{ worker_id: 'w' }, /handler_name is required/],
    [{ handler_name: handler }, /worker_id is required/],
    [{ ...good, handler_name: '' }, /handler_name must not be blank/],
    [{ ...good, worker_id: ' ' }, /worker_id must not be blank/],
    [{ ...good, worker_id: 5 }, /worker_id must be a string/],
    [{ ...good, limit: -1 }, /limit must be >= 0/],
    [{ ...good, limit: 1.5 }, /limit must be an integer/],
    [{ ...good, limit: '1' }, /limit must be an integer/],
    [{ ...good, wait_ms: -1 }, /wait_ms must be >= 0/],
    [{ ...good, version: 5 }, /version must be a string/],
    [{ ...good, worker_id: 'x'.repeat(256) }, /worker_id must have at most 255/],
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
