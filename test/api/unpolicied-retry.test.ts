/** Tries of external steps with a policy and without one, over HTTP. `settings.test.ts` forbids the latter. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Timeline } from '../../schema/instance.js';
import type { WorkerTask } from '../../schema/worker.js';
import { type Json, newHandler, step, type Tenant, useSharedApi } from '../helpers/api.js';

const RETRY = { max_attempts: 3, initial_backoff: 1, max_backoff: 1 };

const api = useSharedApi();

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

describe('Retryable worker failure of a step without `retry`: dispatched again at once, then after 200 ms, 400 ms and so on, attempt + 1, without limit', () => {
  test('dispatched again at once, attempt + 1', async () => {
    const { tenant, id, handler, task } = await failedOnce();
    assert.equal((await tenant.instance(id)).state, 'waiting');
    const [next] = await tenant.poll(handler);
    assert.deepEqual([next?.instance_id, next?.attempt], [id, 1]);
    assert.notEqual(next?.id, task.id);
  });

  test('from the second failure on it waits, so that a broken worker is no hot loop', async () => {
    const { tenant, id, handler } = await failedOnce();
    await tenant.fail(await tenant.task(handler), 'busy', true);
    assert.equal((await tenant.instance(id)).state, 'scheduled');
    assert.deepEqual(await tenant.poll(handler), []);
    const next = await tenant.task(handler);
    assert.equal(next.attempt, 2);
    await tenant.complete(next, { n: 1 });
    await tenant.until(id, 'completed');
    assert.equal((await tenant.outputs(id))[0]?.attempt, 2);
  });
});
