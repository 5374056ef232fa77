/** States on request, and cancel by signal and by state. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { InstanceExplanation } from '../../schema/explanation.js';
import type { AuditEntry, TaskInstance } from '../../schema/instance.js';
import { INSTANCE_STATES } from '../../schema/states.js';
import type { WorkerTask } from '../../schema/worker.js';
import {
  eventually,
  FAR,
  type Json,
  LONG_MS,
  newHandler,
  parallel,
  sleep,
  step,
  type Tenant,
  tryCatch,
  useSharedApi,
} from '../helpers/api.js';
import { expectStatus } from '../helpers/client.js';

const api = useSharedApi();

const noop = (id: string) => step(id, 'noop');

interface Busy {
  readonly tenant: Tenant;
  readonly id: string;
  readonly handler: string;
  /** Claimed. Another one of the same handler is pending. */
  readonly task: WorkerTask;
}

type BusyState = 'scheduled' | 'running' | 'waiting' | 'paused';

/** An instance in this state with a claimed and a pending task, a sleep and a delay all open. */
async function busy(state: BusyState): Promise<Busy> {
  const [tenant, handler] = [api.tenant(), newHandler()];
  const id = await tenant.run([
    noop('done'),
    parallel(
      'p',
      [step('claimed', handler), noop('behind')],
      [step('pending', handler)],
      [sleep('nap', LONG_MS)],
      [step('late', 'noop', { delay: { duration: LONG_MS } })],
    ),
    noop('after'),
  ]);
  const task = await tenant.task(handler);
  if (state === 'scheduled') await tenant.move(id, 'scheduled', { next_fire_at: FAR });
  if (state === 'waiting') await tenant.move(id, 'waiting');
  if (state === 'paused') await tenant.signal(id, 'pause');
  assert.equal((await tenant.instance(id)).state, state);
  return { tenant, id, handler, task };
}

async function isWaitingForTime(id: string): Promise<boolean> {
  const query = 'select 1 from timers where instance_id = $1';
  return (await api.sql.query(query, [id])).rowCount !== 0;
}

const openTasks = async ({ tenant, handler }: Busy) =>
  (await tenant.tasks(handler)).map((task) => task.state).sort();

// `concurrency.test.ts` has the permits.
describe('PATCH to a working state: `running` continues now, `waiting` parks until a task, signal or PATCH, `scheduled` waits for next_fire_at and keeps open tasks; a terminal state withdraws tasks, timers and permits and cancels unfinished nodes; `failed` enters the DLQ', () => {
  for (const from of ['scheduled', 'waiting'] as const) {
    test(`${from} → running: continue now, with what is open`, async () => {
      const instance = await busy(from);
      const { tenant, id, task } = instance;
      const reply = await tenant.move(id, 'running');
      assert.deepEqual([reply.state, reply.next_fire_at], ['running', null]);
      assert.deepEqual(await openTasks(instance), ['claimed', 'pending']);
      await tenant.complete(task);
      await eventually(async () => assert.ok((await tenant.rowsOf(id)).includes('behind')));
      const { state } = await tenant.instance(id);
      assert.deepEqual([state, (await tenant.nodeStates(id)).nap], ['running', 'running']);
    });
  }

  describe('running → waiting: park until a task, signal or PATCH wakes it', {
    concurrency: true,
  }, () => {
    const wakes: readonly [string, (tenant: Tenant, id: string, task: WorkerTask) => unknown][] = [
      ['a task that is completed', (tenant, _id, task) => tenant.complete(task)],
      ['a signal', (tenant, id) => tenant.signal(id, 'custom:go')],
      ['PATCH to running', (tenant, id) => tenant.move(id, 'running')],
    ];
    /** Parked while it sleeps: before more than a moment has passed, if the machine lets it. */
    async function parked() {
      const tenant = api.tenant();
      for (const napMs of [300, 1_200, 4_800]) {
        const handler = newHandler();
        const blocks = [parallel('p', [sleep('nap', napMs), noop('woken')], [step('a', handler)])];
        const id = await tenant.run(blocks);
        const task = await tenant.task(handler);
        // Refused when the sleep is over: then the instance waits by itself.
        const reply = await tenant.patch(`/instances/${id}/state`, { state: 'waiting' });
        if (reply.status === 200) return { tenant, id, task, napMs };
      }
      throw new Error('no instance could be parked in time');
    }

    for (const [what, wake] of wakes) {
      test(what, async () => {
        const { tenant, id, task, napMs } = await parked();
        await tenant.runUntil('completed', [sleep('longer', napMs + 50)]);
        assert.equal((await tenant.instance(id)).state, 'waiting');
        assert.deepEqual(await tenant.rowsOf(id), []);
        await wake(tenant, id, task);
        await eventually(async () => assert.ok((await tenant.rowsOf(id)).includes('woken')));
      });
    }
  });

  for (const from of ['running', 'waiting', 'paused'] as const) {
    test(`${from} → scheduled at next_fire_at, then now: open tasks stay, nothing new starts before`, async () => {
      const instance = await busy(from);
      const { tenant, id, task } = instance;
      const reply = await tenant.move(id, 'scheduled', { next_fire_at: FAR });
      assert.deepEqual([reply.state, reply.next_fire_at], ['scheduled', FAR]);
      assert.deepEqual(await openTasks(instance), ['claimed', 'pending']);
      await tenant.complete(task, { n: 1 });
      const { state, next_fire_at } = await tenant.instance(id);
      assert.deepEqual([state, next_fire_at], ['scheduled', FAR]);
      assert.deepEqual(await tenant.rowsOf(id), ['done', 'claimed']);
      assert.equal((await tenant.move(id, 'running')).state, 'running');
      await eventually(async () => assert.ok((await tenant.rowsOf(id)).includes('behind')));
    });
  }

  test('running → paused: open tasks stay, and nothing new starts; scheduled from there goes on', async () => {
    const instance = await busy('running');
    const { tenant, id, task } = instance;
    const reply = await tenant.move(id, 'paused');
    assert.deepEqual([reply.state, reply.next_fire_at], ['paused', null]);
    assert.deepEqual(await openTasks(instance), ['claimed', 'pending']);
    await tenant.complete(task);
    assert.equal((await tenant.instance(id)).state, 'paused');
    assert.deepEqual(await tenant.rowsOf(id), ['done', 'claimed']);
    assert.equal((await tenant.move(id, 'scheduled')).state, 'scheduled');
    await eventually(async () => assert.ok((await tenant.rowsOf(id)).includes('behind')));
  });

  for (const [from, to] of [
    ['scheduled', 'cancelled'],
    ['running', 'completed'],
    ['waiting', 'failed'],
    ['paused', 'cancelled'],
  ] as const) {
    test(`${from} → ${to}: tasks withdrawn, timers dropped, unfinished nodes cancelled`, async () => {
      const instance = await busy(from);
      const { tenant, id, handler, task } = instance;
      const reply = await tenant.move(id, to);
      assert.deepEqual([reply.state, reply.next_fire_at], [to, null]);
      assert.equal((await tenant.instance(id)).state, to);
      assert.deepEqual(await openTasks(instance), []);
      assert.deepEqual(await tenant.poll(handler), []);
      for (const call of ['complete', 'fail', 'heartbeat'] as const) {
        assert.equal(await tenant.call(call, task), 404, call);
        assert.equal(await tenant.call(call, task, { claim_epoch: 1 }), 409, call);
      }
      assert.equal(await isWaitingForTime(id), false);
      const { done, ...unfinished } = await tenant.nodeStates(id);
      assert.equal(done, 'completed');
      assert.deepEqual(new Set(Object.values(unfinished)), new Set(['cancelled']));
      assert.deepEqual(await tenant.deadLetters(), to === 'failed' ? [id] : []);
    });
  }
});

const bulk = async (tenant: Tenant, state: string, filter: Json = {}) =>
  expectStatus(
    await tenant.patch<{ count: number }>('/instances/bulk/state', { filter, state }),
    200,
  ).count;

test('Bulk state changes and counts every match that is not completed or cancelled, in windows by cursor; repeating it is safe', async () => {
  const tenant = api.tenant();
  const ids: Record<string, string> = {};
  for (const state of INSTANCE_STATES) ids[state] = await tenant.inState(state);
  const done = await tenant.instance(ids.completed ?? '');
  assert.equal(await bulk(tenant, 'paused'), 5);
  for (const [state, id] of Object.entries(ids)) {
    const isSkipped = state === 'completed' || state === 'cancelled';
    assert.equal((await tenant.instance(id)).state, isSkipped ? state : 'paused', state);
  }
  assert.deepEqual(await tenant.instance(done.id), done);
  assert.equal(await bulk(tenant, 'paused'), 5);
  assert.equal(await bulk(tenant, 'cancelled', { states: ['completed', 'cancelled'] }), 0);
  assert.equal(await bulk(tenant, 'cancelled'), 5);
  assert.equal(await bulk(tenant, 'cancelled'), 0);
});

describe('A failed instance accepts signals: `cancel` cancels it and takes it off the DLQ, `pause` pauses it, `update_context` merges', () => {
  async function failed() {
    const tenant = api.tenant();
    const id = await tenant.runUntil('failed', [step('a', 'fail')], { kept: 1 });
    assert.deepEqual(await tenant.deadLetters(), [id]);
    return { tenant, id };
  }

  for (const [signal, state] of [
    ['cancel', 'cancelled'],
    ['pause', 'paused'],
  ] as const) {
    test(`${signal} makes it ${state} and takes it off the DLQ`, async () => {
      const { tenant, id } = await failed();
      await tenant.signal(id, signal);
      assert.equal((await tenant.instance(id)).state, state);
      assert.deepEqual(await tenant.deadLetters(), []);
    });
  }

  test('update_context merges, and it stays failed', async () => {
    const { tenant, id } = await failed();
    await tenant.signal(id, 'update_context', { added: 2 });
    const { state, context } = await tenant.instance(id);
    assert.deepEqual([state, context.data], ['failed', { kept: 1, added: 2 }]);
    assert.deepEqual(await tenant.deadLetters(), [id]);
  });
});

describe('PATCH state from failed to scheduled is a retry, like `POST /instances/{id}/retry`', () => {
  const ways: readonly [string, (tenant: Tenant, id: string) => Promise<unknown>][] = [
    ['PATCH state', (tenant, id) => tenant.move(id, 'scheduled')],
    [
      'POST retry',
      async (tenant, id) => expectStatus(await tenant.post(`/instances/${id}/retry`), 200),
    ],
  ];
  for (const [how, retry] of ways) {
    test(how, async () => {
      const [tenant, handler] = [api.tenant(), newHandler()];
      const policy = { max_attempts: 2, initial_backoff: 1, max_backoff: 1 };
      const id = await tenant.run([noop('a'), step('b', handler, { retry: policy }), noop('c')]);
      const [first] = await tenant.outputs(id);
      for (const round of [1, 2]) {
        for (const attempt of [0, 1]) {
          const task = await tenant.task(handler);
          assert.equal(task.attempt, attempt, `round ${round}`);
          await tenant.fail(task, 'busy', true);
        }
        await tenant.until(id, 'failed');
        assert.deepEqual(await tenant.deadLetters(), [id]);
        await retry(tenant, id);
        assert.deepEqual(await tenant.deadLetters(), []);
      }
      await tenant.complete(await tenant.task(handler));
      await tenant.until(id, 'completed');
      assert.deepEqual(await tenant.rowsOf(id), ['a', 'b', 'c']);
      assert.deepEqual((await tenant.outputs(id))[0], first);
    });
  }
});

// ---------------------------------------------------------------- cancel

/** What keeps an instance in each state; a paused one is paused while it sleeps. */
const STATES: readonly [string, () => Json][] = [
  ['scheduled', () => step('tried', 'noop', { delay: { duration: LONG_MS } })],
  ['running', () => sleep('tried', LONG_MS)],
  ['waiting', () => step('tried', newHandler())],
  ['paused', () => sleep('tried', LONG_MS)],
];

/** An instance in this state, whose finally list is a task of the handler. */
async function guarded(state: string, tried: Json) {
  const [tenant, handler] = [api.tenant(), newHandler()];
  const id = await tenant.run([
    tryCatch('t', [tried], [step('caught', 'noop')], [step('last', handler)]),
    step('after', 'noop'),
  ]);
  if (state === 'paused') await tenant.signal(id, 'pause');
  assert.equal((await tenant.instance(id)).state, state);
  return { tenant, handler, id };
}

describe('The signal `cancel` lets `finally` lists, `cancellation_scope` and non-cancellable steps finish in every state; PATCH state and bulk `cancelled` stop everything', () => {
  test('the signal lets the finally list run', async () => {
    for (const [state, tried] of STATES) {
      const { tenant, handler, id } = await guarded(state, tried());
      await tenant.signal(id, 'cancel');
      const task = await tenant.task(handler);
      const { state: now, cancelling } = await tenant.instance(id);
      const { since, ...wanted } = cancelling ?? assert.fail(state);
      assert.deepEqual([now, wanted], ['waiting', { reason: 'cancel', waiting_for: ['last'] }]);
      const [listed] = (await tenant.get<TaskInstance[]>('/instances')).body;
      assert.deepEqual(listed?.cancelling, cancelling);
      assert.equal('cancelling' in (listed?.context.runtime ?? {}), false);
      const { body } = await tenant.get<InstanceExplanation>(`/instances/${id}/explain`);
      assert.ok(
        body.summary.startsWith(`It was cancelled at ${since}, and ends once`),
        body.summary,
      );
      assert.ok(body.next.some(({ action, method }) => `${action} ${method}` === 'stop PATCH'));
      const audit = (await tenant.get<AuditEntry[]>(`/instances/${id}/audit`)).body;
      assert.ok(audit.some(({ event_type }) => event_type === 'cancelling'));
      await tenant.complete(task, { tidy: true });
      const { cancelling: behind } = await tenant.until(id, 'cancelled');
      assert.equal(behind, undefined);
      assert.deepEqual(await tenant.outputsOf(id), { last: { tidy: true } });
      const { tried: cut, caught, last, after } = await tenant.nodeStates(id);
      const states = ['cancelled', 'skipped', 'completed', 'cancelled'];
      assert.deepEqual([cut, caught, last, after], states);
    }
  });

  test('PATCH state and bulk are hard', async () => {
    for (const [state, tried] of STATES) {
      const { tenant, handler, id } = await guarded(state, { ...tried(), cancellable: false });
      const bulk = { filter: {}, state: 'cancelled' };
      if (state === 'waiting' || state === 'running') await tenant.move(id, 'cancelled');
      else expectStatus(await tenant.patch('/instances/bulk/state', bulk), 200);
      assert.equal((await tenant.instance(id)).state, 'cancelled', state);
      assert.deepEqual(await tenant.poll(handler), []);
      assert.deepEqual(await tenant.outputs(id), []);
      assert.equal((await tenant.nodeStates(id)).last, 'cancelled');
    }
  });
});
