/** Lists of workers and handlers. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { HandlerNames, WorkerInfo } from '../../schema/worker.js';
import { eventually, newHandler, step, useSharedApi } from '../helpers/api.js';

const api = useSharedApi();

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
      'wait_for_event',
    ]);
    assert.ok(body.external.includes(handler), JSON.stringify(body));
  });
});
