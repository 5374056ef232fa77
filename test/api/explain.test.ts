/** `GET /instances/{id}/explain`: each kind of wait, and what the requests that it names come to. */

import assert from 'node:assert/strict';
import { describe } from 'node:test';
import type { InstanceExplanation, NextAction, Wait } from '../../schema/explanation.js';
import {
  eventually,
  FAR,
  forEach,
  type Json,
  LONG_MS,
  newHandler,
  parallel,
  sleep,
  step,
  type Tenant,
  testsOf,
  useSharedApi,
} from '../helpers/api.js';
import { expectStatus } from '../helpers/client.js';
import { column, columns } from '../helpers/columns.js';

const api = useSharedApi();
const test = testsOf(api);

const explained = async (tenant: Tenant, id: string): Promise<InstanceExplanation> =>
  expectStatus(await tenant.get<InstanceExplanation>(`/instances/${id}/explain`), 200);

/** The only thing that it waits for, once that is of this kind. */
async function waitOf(tenant: Tenant, id: string, kind: Wait['kind']): Promise<Wait> {
  return eventually(async () => {
    const { waiting_for: waits, waiting_count: count } = await explained(tenant, id);
    assert.deepEqual([waits.map((wait) => wait.kind), count], [[kind], 1]);
    return waits[0]!;
  });
}

function actionOf({ next }: InstanceExplanation, name: string): NextAction {
  const found = next.find(({ action }) => action === name);
  assert.ok(found, `no ${name} among ${next.map(({ action }) => action)}`);
  assert.ok(found.why.length > 0);
  return found;
}

/** Does what an explanation says can be done. */
async function follow(tenant: Tenant, id: string, name: string): Promise<unknown> {
  const { method, path, body } = actionOf(await explained(tenant, id), name);
  const reply = await tenant.request(method as 'GET', path, { body });
  assert.ok(reply.status < 300, `${name}: ${reply.status} ${reply.text}`);
  return reply.body;
}

describe('Explain: everything an instance waits for is named, with the block, since when, and until when', () => {
  test('a task that no worker polls for', async () => {
    const [tenant, handler] = [api.tenant(), newHandler()];
    const id = await tenant.run([step('a', handler, { queue_name: 'eu' })]);
    const wait = await waitOf(tenant, id, 'task');
    const seen = [wait.block_id, wait.path, wait.handler, wait.queue];
    assert.deepEqual(seen, ['a', 'a', handler, 'eu']);
    assert.deepEqual(wait.workers, { polled_lately: 0, last_polled_at: null });
    assert.match(wait.summary, new RegExp(`no worker polls for the handler ${handler}`));
    assert.ok(Date.parse(wait.since ?? '') <= Date.now() + 60_000);
    const [task] = (await follow(tenant, id, 'poll')) as Json[];
    assert.equal(task?.instance_id, id);
  });

  test('a task for which workers have polled lately', async () => {
    const [tenant, handler] = [api.tenant(), newHandler()];
    for (const worker_id of ['one', 'two']) await tenant.poll(handler, { worker_id });
    const id = await tenant.run([step('a', handler)]);
    await eventually(async () => {
      const { workers } = await waitOf(tenant, id, 'task');
      assert.equal(workers?.polled_lately, 2);
      assert.ok(workers?.last_polled_at !== null);
    });
  });

  test('a worker that has claimed the task', async () => {
    const [tenant, handler] = [api.tenant(), newHandler()];
    const id = await tenant.run([step('a', handler)]);
    const task = await tenant.task(handler, { worker_id: 'busy' });
    const wait = await waitOf(tenant, id, 'worker');
    assert.deepEqual([wait.worker_id, wait.task_id], ['busy', task.id]);
    assert.equal(wait.since, task.claimed_at);
    await follow(tenant, id, 'look_at_task');
  });

  test('a delay or a scheduled start, which can be ended', async (tenant) => {
    const id = await tenant.run([step('a', 'noop', { delay: { duration: LONG_MS } })]);
    const wait = await waitOf(tenant, id, 'delay');
    assert.equal(wait.until, (await tenant.instance(id)).next_fire_at);
    await follow(tenant, id, 'start_now');
    await tenant.until(id, 'completed');
    const start = await tenant.run([step('a', 'noop')], { next_fire_at: FAR });
    assert.equal((await waitOf(tenant, start, 'start')).until, FAR);
    await follow(tenant, start, 'start_now');
    await tenant.until(start, 'completed');
  });

  test('the next try, with the number of tries and the last error', async () => {
    const [tenant, handler] = [api.tenant(), newHandler()];
    const retry = { max_attempts: 3, initial_backoff: LONG_MS, max_backoff: LONG_MS };
    const id = await tenant.run([forEach('f', 'items', [step('a', handler, { retry })])], {
      context: { data: { items: ['x'] } },
    });
    await tenant.fail(await tenant.task(handler), 'busy', true);
    const wait = await waitOf(tenant, id, 'retry');
    const told = [wait.path, wait.attempt, wait.max_attempts, wait.last_error];
    assert.deepEqual(told, ['f[0]/a', 1, 3, 'busy']);
    assert.match(wait.summary, /try 2 of 3/);
    await follow(tenant, id, 'start_now');
    assert.equal((await waitOf(tenant, id, 'task')).last_error, 'busy');
  });

  test('a permit of a rate limit', async (tenant) => {
    const limit = { max_count: 1, window_seconds: 3_600 };
    expectStatus(await tenant.put('/rate-limits/mail', limit), 200);
    const blocks = [step('a', 'noop', { rate_limit_key: 'mail' })];
    await tenant.runUntil('completed', blocks);
    const id = await tenant.run(blocks);
    const wait = await eventually(async () => {
      const found = await waitOf(tenant, id, 'rate_limit');
      assert.ok(found.until !== null);
      return found;
    });
    assert.deepEqual([wait.key, wait.limit], ['mail', limit]);
    await follow(tenant, id, 'raise_limit');
    await tenant.until(id, 'completed');
  });

  test('a slot of a concurrency key, who holds it, and how many come before', async (tenant) => {
    const sequence = await tenant.sequence([step('a', newHandler())]);
    const keyed = { concurrency_key: 'k', max_concurrency: 1 };
    const holder = await tenant.create(sequence, keyed);
    await tenant.until(holder, 'waiting');
    await tenant.create(sequence, keyed);
    const last = await tenant.create(sequence, keyed);
    await eventually(async () => {
      const wait = await waitOf(tenant, last, 'slot');
      assert.deepEqual([wait.key, wait.max_concurrency, wait.ahead], ['k', 1, 1]);
      assert.deepEqual(wait.holders, [{ instance_id: holder, state: 'waiting' }]);
    });
    const next = (await follow(tenant, last, 'look_at_holder')) as InstanceExplanation;
    assert.equal(next.id, holder);
  });

  test('a pause, beside what goes on after it', async (tenant) => {
    const id = await tenant.inState('paused');
    const { waiting_for: waits, state, since: pausedAt, summary } = await explained(tenant, id);
    assert.deepEqual([state, waits.map(({ kind }) => kind)], ['paused', ['pause', 'task']]);
    assert.equal(waits[0]?.since, pausedAt);
    assert.match(summary, /paused/);
    await follow(tenant, id, 'resume');
    await tenant.until(id, 'waiting');
  });

  test('a signal, after a move to waiting', async (tenant) => {
    const id = await tenant.run([sleep('a', LONG_MS)]);
    await tenant.move(id, 'waiting');
    const { waiting_for: waits } = await explained(tenant, id);
    assert.deepEqual(column(waits, 'kind'), ['signal', 'sleep']);
    await follow(tenant, id, 'custom:continue');
    await waitOf(tenant, id, 'sleep');
  });

  test('all branches of a parallel, up to a bound', async () => {
    const [tenant, handler] = [api.tenant(), newHandler()];
    const few = parallel('p', [sleep('a', LONG_MS)], [step('b', handler)]);
    const { waiting_for: two, summary } = await explained(tenant, await tenant.run([few]));
    assert.deepEqual(columns(two, 'kind', 'path'), [
      ['sleep', 'p/a'],
      ['task', 'p/b'],
    ]);
    assert.match(summary, /2 things at once/);
    const [nap] = two;
    assert.equal(Date.parse(nap?.until ?? '') - Date.parse(nap?.since ?? ''), LONG_MS);
    const branches = Array.from({ length: 130 }, (_, n) => [sleep(`s${n}`, LONG_MS)]);
    const many = await tenant.run([parallel('p', ...branches)]);
    await eventually(async () => {
      const { waiting_for: waits, waiting_count: count } = await explained(tenant, many);
      assert.deepEqual([waits.length, count], [100, 130]);
    });
  });
});

describe('Explain: an ended instance reports how it ended and the possible actions', () => {
  test('completed', async (tenant) => {
    const id = await tenant.runUntil('completed', [step('a', 'noop')]);
    const { summary, waiting_for: waits, failure, since: at } = await explained(tenant, id);
    assert.deepEqual([waits, failure, summary], [[], null, `It completed at ${at}.`]);
    await follow(tenant, id, 'fork');
    await follow(tenant, id, 'resume_from');
  });

  test('failed', async () => {
    const [tenant, handler] = [api.tenant(), newHandler()];
    const id = await tenant.run([step('x', 'noop'), parallel('p/1', [step('a', handler)])]);
    await tenant.fail(await tenant.task(handler), 'no money');
    await tenant.until(id, 'failed');
    const answer = await explained(tenant, id);
    assert.deepEqual(answer.failure, (await tenant.instance(id)).failure);
    assert.equal(answer.since, answer.failure?.at);
    assert.match(answer.summary, /p\/1\/a failed: no money \(worker_failed\)/);
    assert.deepEqual(actionOf(answer, 'fork').body, { from_block_id: 'p/1', dry_run: true });
    for (const action of ['retry', 'resume_from']) {
      await follow(tenant, id, action);
      await tenant.fail(await tenant.task(handler), 'no money');
      await tenant.until(id, 'failed');
    }
    await follow(tenant, id, 'cancel');
    assert.match((await explained(tenant, id)).summary, /^It was cancelled at /);
  });
});

test('Explain: without the right to read the instance the answer is that of an unknown one', async () => {
  const id = await api.tenant().run([step('a', newHandler())]);
  assert.equal((await api.tenant().get(`/instances/${id}/explain`)).status, 404);
});
