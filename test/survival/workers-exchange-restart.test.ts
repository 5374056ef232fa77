/** Exchanges whose server is killed between the results and the answer: nothing is lost, nothing happens twice. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { TasksExchanged, WorkerAttempt, WorkerTask } from '../../schema/worker.js';
import { eventually, newHandler, step, useApi, WORKER } from '../helpers/api.js';
import { expectStatus, NoReplyError } from '../helpers/client.js';
import { column } from '../helpers/columns.js';

const api = useApi({ env: { ENGINE_SHARDS: '3' } });
const ROUNDS = 4;
const TASKS = 40;

test('results of an exchange that was killed are there once, whether or not they were answered', async () => {
  const tenant = api.tenant();
  const handler = newHandler();
  const next = newHandler();
  const sequence = await tenant.sequence([step('a', handler), step('b', next)]);
  for (let round = 0; round < ROUNDS; round++) {
    const instances = Array.from({ length: TASKS }, () => tenant.creation(sequence));
    expectStatus(await tenant.post('/instances/batch', { instances }), 201);
    const tasks: WorkerTask[] = [];
    await eventually(async () => {
      tasks.push(...(await tenant.poll(handler, { limit: TASKS })));
      assert.equal(tasks.length, TASKS);
    });
    const results = tasks.map(({ id, claim_epoch }, n) => {
      return { kind: 'complete', task_id: id, claim_epoch, output: { n } };
    });
    const body = { worker_id: WORKER, results };
    const exchange = () => tenant.post<TasksExchanged>('/workers/tasks/exchange', body);
    const first = exchange().catch((error: unknown) => assert.ok(error instanceof NoReplyError));
    // Each round ends it at another moment.
    await new Promise((resolve) => setTimeout(resolve, round * 4));
    await api.engine.kill();
    const answered = await first;
    await api.restart();
    const { outcomes } = await eventually(async () => expectStatus(await exchange(), 200));
    const expected = answered === undefined ? [200, 409] : [409];
    for (const { status } of outcomes) assert.ok(expected.includes(status), `${status}`);
    for (const [n, { id, instance_id }] of tasks.entries()) {
      const { context } = await tenant.until(instance_id, 'waiting');
      assert.equal(context.data.n, n);
      assert.deepEqual(await tenant.rowsOf(instance_id), ['a']);
      const history = expectStatus(
        await tenant.get<WorkerAttempt[]>(`/workers/tasks/${id}/attempts`),
        200,
      );
      const ends = column(history, 'event').filter((event) => event === 'completed');
      assert.deepEqual(ends, ['completed']);
    }
  }
});
