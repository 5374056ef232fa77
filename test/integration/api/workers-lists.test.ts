/** Lists and counts about tasks, workers and handlers. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { HandlerNames, TaskStats, WorkerInfo, WorkerTask } from '../../../schema/worker.js';
import { eventually, newHandler, step, useSharedApi } from '../../helpers/api.js';

const api = useSharedApi();

test('tasks are listed newest first and filtered by state, handler, worker and queue', async () => {
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
  assert.deepEqual(
    (await list('?state=claimed')).map((item) => item.id),
    [task.id],
  );
  assert.equal((await list('?state=pending,claimed')).length, 4);
  assert.equal((await list(`?handler_name=${one}`)).length, 3);
  assert.deepEqual(
    (await list(`?handler_name=${two}`)).map((item) => item.instance_id),
    [other],
  );
  assert.equal((await list('?worker_id=me')).length, 1);
  assert.equal((await list('?queue_name=q')).length, 3);
  assert.equal((await list('?queue_name=q&state=claimed')).length, 1);
  const pages = [...(await list('?limit=2')), ...(await list('?limit=2&offset=2'))];
  assert.deepEqual(pages, all);
  for (const query of ['?state=done', '?limit=x', '?offset=-1']) {
    assert.equal((await tenant.get(`/workers/tasks${query}`)).status, 400, query);
  }
});

test('stats count by state and handler, and name the workers that hold tasks', async () => {
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
  const tenant = api.tenant();
  const handler = newHandler();
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
    ]);
    assert.ok(body.external.includes(handler), JSON.stringify(body));
  });
});
