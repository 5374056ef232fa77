/** Tasks of workers: their order, claims, checkpoints, histories and results. */

import assert from 'node:assert/strict';
import { setTimeout as pause } from 'node:timers/promises';
import type { TasksExchanged, WorkerAttempt, WorkerTask } from '../../schema/worker.js';
import { type Api, eventually, newHandler, step, WORKER } from '../helpers/api.js';
import { expectStatus } from '../helpers/client.js';
import { column, columns } from '../helpers/columns.js';
import { untilAll } from '../helpers/slots.js';
import { subject, untilKilled } from '../helpers/survival.js';
import { withoutDatabase } from './changes.js';

export const tasks = subject();
const { survives } = tasks;

survives('Tasks of workers survive a server restart', async (tenant) => {
  const handlers = { pending: newHandler(), claimed: newHandler(), completed: newHandler() };
  const readAll = async () => [
    expectStatus(await tenant.get('/workers/tasks'), 200),
    await Promise.all(
      Object.values(handlers).map(async (handler) => {
        const [task] = await tenant.tasks(handler);
        return tenant.attempts(task?.id ?? '');
      }),
    ),
  ];
  const ids: string[] = [];
  for (const handler of Object.values(handlers)) ids.push(await tenant.run([step('a', handler)]));
  await tenant.complete(await tenant.task(handlers.completed), { n: 1 });
  await tenant.task(handlers.claimed);
  const told = await readAll();
  return async () => {
    assert.deepEqual(await readAll(), told);
    const [claimed] = await tenant.tasks(handlers.claimed);
    assert.ok(claimed);
    await tenant.complete(claimed);
    await tenant.complete(await tenant.task(handlers.pending));
    await untilAll(tenant, ids, 'completed');
  };
});

survives('pending tasks, in their order', async (tenant) => {
  const handler = newHandler();
  const sequence = await tenant.sequence([step('a', handler)]);
  const low = await tenant.create(sequence, { priority: 'low' });
  const high = await tenant.create(sequence, { priority: 'high' });
  return async () => {
    const offered = await tenant.poll(handler, { limit: 5 });
    assert.deepEqual(column(offered, 'instance_id'), [high, low]);
  };
});

survives('the trace of an instance, for the task that comes after it', async (tenant) => {
  const [first, second] = [newHandler(), newHandler()];
  const traceparent = `00-${'ab'.repeat(16)}-${'cd'.repeat(8)}-01`;
  const body = tenant.creation(await tenant.sequence([step('a', first), step('b', second)]));
  const headers = { traceparent };
  expectStatus(await tenant.request('POST', '/instances', { body, headers }), 201);
  const task = await tenant.task(first);
  return async () => {
    await tenant.complete(task);
    assert.equal((await tenant.task(second)).traceparent, traceparent);
  };
});

const EXCHANGES = 20;
const TASKS_EACH = 4;

survives(
  'results of a killed exchange are stored once, whether or not they were answered',
  async (tenant) => {
    const [handler, next] = [newHandler(), newHandler()];
    const sequence = await tenant.sequence([step('a', handler), step('b', next)]);
    const instances = Array(EXCHANGES * TASKS_EACH).fill(tenant.creation(sequence));
    expectStatus(await tenant.post('/instances/batch', { instances }), 201);
    const claimed: WorkerTask[] = [];
    await eventually(async () => {
      claimed.push(...(await tenant.poll(handler, { limit: 100 })));
      assert.equal(claimed.length, instances.length);
    });
    const exchange = async (turn: number) => {
      const some = claimed.slice(turn * TASKS_EACH, (turn + 1) * TASKS_EACH);
      const results = some.map(({ id, claim_epoch }) => {
        return { kind: 'complete', task_id: id, claim_epoch, output: { id } };
      });
      const body = { worker_id: WORKER, results };
      const reply = await tenant.post<TasksExchanged>('/workers/tasks/exchange', body);
      return column(expectStatus(reply, 200).outcomes, 'status');
    };
    let answered = 0;
    let work: Promise<unknown>;
    return {
      atTheKill: async () => {
        work = untilKilled(EXCHANGES, async (turn) => {
          assert.deepEqual(await exchange(turn), Array(TASKS_EACH).fill(200));
          answered = turn + 1;
          await pause(10);
        });
      },
      check: async () => {
        await work;
        for (let turn = 0; turn < EXCHANGES; turn += 1) {
          // The one that the kill cut off is there or not; those behind it were never sent.
          const statuses = await exchange(turn);
          const expected = turn < answered ? [409] : turn === answered ? [200, 409] : [200];
          for (const status of statuses) assert.ok(expected.includes(status), `${turn}: ${status}`);
        }
        for (const { id, instance_id } of claimed) {
          const { context } = await tenant.until(instance_id, 'waiting');
          assert.equal(context.data.id, id);
          assert.deepEqual(await tenant.rowsOf(instance_id), ['a']);
          const events = (await tenant.attempts(id)).map(([event]) => event);
          assert.deepEqual(
            events.filter((event) => event === 'completed'),
            ['completed'],
          );
        }
      },
    };
  },
);

/**
 * Kills the server once more, while a worker is silent for an hour. Silence counts from readiness,
 * or live workers would lose all claims whenever the server was away.
 */
export async function silentSinceReady(api: Api, staleMs: number, env: Record<string, string>) {
  const tenant = api.tenant();
  const handler = newHandler();
  await tenant.run([step('a', handler)]);
  const task = await tenant.task(handler);
  await api.engine.kill();
  await api.sql.query(
    'update worker_tasks set claimed_at = claimed_at - $2::interval, ' +
      'heartbeat_at = heartbeat_at - $2::interval where id = $1',
    [task.id, '1 hour'],
  );
  await api.restart('SIGKILL', { env });
  const again = await tenant.task(handler, { worker_id: 'w2' });
  assert.deepEqual([again.id, again.claim_epoch], [task.id, 2]);
  const { body } = await tenant.get<WorkerAttempt[]>(`/workers/tasks/${task.id}/attempts`);
  assert.deepEqual(columns(body, 'event', 'claim_epoch'), [
    ['claimed', 1],
    ['reclaimed', 1],
    ['claimed', 2],
  ]);
  assert.equal(again.lost_claims, 1);
  // It listens before it is ready.
  const listening = api.engine.logs().find(({ msg }) => msg === 'listening');
  const silence = Date.parse(body[1]?.created_at ?? '') - Date.parse(String(listening?.time));
  assert.ok(silence >= staleMs, `returned ${silence} ms after the start`);
  // What was counted is counted still.
  await api.restart('SIGKILL', { env });
  assert.equal((await tenant.task(handler, { worker_id: 'w3' })).lost_claims, 2);
}

/** Takes the database away for longer than a worker may be silent, and than one of the steps may take. */
export async function outageIsNoSilence(api: Api, staleMs: number) {
  const tenant = api.tenant();
  const handler = newHandler();
  const timeout = staleMs / 2;
  const ids = [
    await tenant.run([step('a', handler)]),
    await tenant.run([step('a', handler, { timeout })]),
  ];
  const tasks = await tenant.poll(handler, { limit: 2 });
  assert.equal(tasks.length, 2);
  const beat = (task: WorkerTask) => tenant.call('heartbeat', task);
  await withoutDatabase(api, async () => {
    await eventually(async () => assert.equal(await beat(tasks[0]!), 503));
    for (
      const until = performance.now() + 2 * staleMs;
      performance.now() < until;
      await pause(100)
    ) {
      for (const task of tasks) assert.equal(await beat(task), 503);
    }
  });
  for (const task of tasks) {
    await eventually(async () => assert.equal(await tenant.call('complete', task), 200));
    assert.deepEqual(await tenant.attempts(task.id), [
      ['claimed', 1],
      ['completed', 1],
    ]);
  }
  for (const id of ids) await tenant.until(id, 'completed');
}
