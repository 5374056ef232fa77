/**
 * Tries of external steps over HTTP, under both settings of ENGINE_UNPOLICIED_RETRY. That tasks
 * survive a restart is tested here too, since the settings need one between them.
 */

import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import type { Timeline } from '../../../schema/instance.js';
import type { WorkerTask } from '../../../schema/worker.js';
import { eventually, type Json, newHandler, step, type Tenant, useApi } from '../../helpers/api.js';
import { expectStatus } from '../../helpers/client.js';

const RETRY = { max_attempts: 3, initial_backoff: 1, max_backoff: 1 };

const api = useApi({ env: { ENGINE_SHARDS: '2' } });

interface Failing {
  readonly tenant: Tenant;
  readonly id: string;
  readonly handler: string;
  /** The task whose try has failed retryably. */
  readonly task: WorkerTask;
}

/** An instance of one external step, whose first try has failed retryably. */
async function failedOnce(more: Json = {}): Promise<Failing> {
  const tenant = api.tenant();
  const handler = newHandler();
  const id = await tenant.run([step('a', handler, more)]);
  const task = await tenant.task(handler);
  await tenant.fail(task, 'busy', true);
  return { tenant, id, handler, task };
}

async function assertDead({ tenant, id, handler }: Failing): Promise<void> {
  await tenant.until(id, 'failed');
  assert.deepEqual(await tenant.poll(handler), []);
  assert.deepEqual(await tenant.deadLetters(), [id]);
}

async function offersThree(): Promise<void> {
  const failing = await failedOnce({ retry: RETRY });
  const { tenant, handler, task } = failing;
  const ids = [task.id];
  for (const attempt of [1, 2]) {
    const next = await tenant.task(handler);
    assert.equal(next.attempt, attempt);
    ids.push(next.id);
    await tenant.fail(next, 'busy', true);
  }
  assert.equal(new Set(ids).size, 3);
  await assertDead(failing);
}

test('retryable true with a policy re-dispatches: the instance goes to scheduled, then waiting, a second poll gets a task', async () => {
  const { tenant, id, handler } = await failedOnce({
    retry: { max_attempts: 2, initial_backoff: 100 },
  });
  await tenant.until(id, 'waiting');
  const [task] = await tenant.poll(handler);
  assert.deepEqual([task?.instance_id, task?.attempt], [id, 1]);
  const { body } = await tenant.get<Timeline>(`/instances/${id}/timeline`);
  const states = body.state_transitions.map((move) => move.to_state);
  assert.deepEqual(
    states.filter((state) => state !== 'running'),
    ['waiting', 'scheduled', 'waiting'],
  );
});

test('max_attempts 3 offers exactly three tasks, then failed, in the DLQ', offersThree);

describe('External step with max_attempts 3: exactly three tasks are offered, then failed and in the DLQ; without policy a retryable failure is offered again', () => {
  test('exactly three tasks are offered, then failed and in the DLQ', offersThree);

  test('without policy it is offered again', async () => {
    const { tenant, handler } = await failedOnce();
    assert.equal((await tenant.task(handler)).attempt, 1);
  });
});

describe('Retryable worker failure of a step without `retry`: Dispatched again at once, attempt + 1, without limit. `ENGINE_UNPOLICIED_RETRY=fail` makes it a step failure', () => {
  test('dispatched again at once, attempt + 1', async () => {
    const { tenant, id, handler, task } = await failedOnce();
    assert.equal((await tenant.instance(id)).state, 'waiting');
    const [next] = await tenant.poll(handler);
    assert.deepEqual([next?.instance_id, next?.attempt], [id, 1]);
    assert.notEqual(next?.id, task.id);
  });

  test('without limit: past any number of tries that a policy has', async () => {
    const { tenant, id, handler } = await failedOnce();
    for (let attempt = 1; attempt <= 40; attempt++) {
      const [next] = await tenant.poll(handler);
      assert.equal(next?.attempt, attempt);
      await tenant.fail(next, 'busy', true);
    }
    await tenant.complete(await tenant.task(handler), { n: 1 });
    await tenant.until(id, 'completed');
    assert.equal((await tenant.outputs(id))[0]?.attempt, 41);
  });
});

describe('after a restart with ENGINE_UNPOLICIED_RETRY=fail', () => {
  const handlers = { pending: newHandler(), claimed: newHandler(), completed: newHandler() };
  let owner: Tenant;
  let told: unknown;

  const tasksOf = async () => [
    expectStatus(await owner.get('/workers/tasks'), 200),
    await Promise.all(
      Object.values(handlers).map(async (handler) => {
        const [task] = await owner.tasks(handler);
        return owner.attempts(task?.id ?? '');
      }),
    ),
  ];

  before(async () => {
    owner = api.tenant();
    for (const handler of Object.values(handlers)) await owner.run([step('a', handler)]);
    await owner.complete(await owner.task(handlers.completed), { n: 1 });
    await owner.task(handlers.claimed);
    told = await tasksOf();
    const env = { ENGINE_SHARDS: '2', ENGINE_UNPOLICIED_RETRY: 'fail' };
    await api.restart('SIGKILL', { env });
  });

  test('Worker task state survives a server restart', async () => {
    assert.deepEqual(await tasksOf(), told);
    const [claimed] = await owner.tasks(handlers.claimed);
    assert.ok(claimed);
    await owner.complete(claimed);
    await owner.complete(await owner.task(handlers.pending));
    await eventually(async () => {
      const reply = await owner.get<unknown[]>('/instances?state=completed');
      assert.equal(reply.body.length, 3);
    });
  });

  test('`ENGINE_UNPOLICIED_RETRY=fail` makes it a step failure', async () => {
    await assertDead(await failedOnce());
  });

  test('With ENGINE_UNPOLICIED_RETRY=fail retryable true without a policy fails at once', async () => {
    const { tenant, id, task } = await failedOnce();
    assert.equal((await tenant.instance(id)).state, 'failed');
    const [listed] = await tenant.tasks(task.handler_name);
    assert.deepEqual([listed?.id, listed?.state], [task.id, 'failed']);
  });

  test('a policy still counts', offersThree);
});
