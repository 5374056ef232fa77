/** Slots of concurrency keys: who takes one, who gives it back, and who is next. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { WorkerAttempt, WorkerTask } from '../../schema/worker.js';
import {
  eventually,
  FAR,
  LONG_MS,
  newHandler,
  parallel,
  sleep,
  step,
  type Tenant,
  useSharedApi,
} from '../helpers/api.js';
import { expectStatus } from '../helpers/client.js';
import { column } from '../helpers/columns.js';
import { resumeFrom } from '../helpers/edits.js';
import {
  assertNeverMore,
  aWhile,
  type Blocks,
  type Line,
  lineOf,
  moveInBulk,
  oneTask,
  type Pair,
  pairOf,
  peakOf,
  spansOf,
  underKey,
  untilAll,
} from '../helpers/slots.js';

// No safety scan comes within a test: whoever goes on was woken by an event.
const quick = useSharedApi('quick');
/** No claim expires within a test. */
const api = useSharedApi();

describe('`concurrency_key`: per tenant; an instance holds its slot from start to end, also in delays and between attempts, and gives it up when paused or rescheduled without running work; waiting instances stay scheduled and start oldest first', () => {
  test('per tenant: the same key of two tenants is two keys', async () => {
    const key = underKey(1, 'the same');
    for (const tenant of [quick.tenant(), quick.tenant()]) {
      const sequence = await tenant.sequence(oneTask(newHandler()));
      await tenant.until(await tenant.create(sequence, key), 'waiting');
      assert.equal((await tenant.instance(await tenant.create(sequence, key))).state, 'scheduled');
    }
  });

  test('a slot is held while running or waiting, never by more than the maximum', async () => {
    const line = await lineOf(quick, 3, (handler) => [
      sleep('before', 10),
      step('a', handler),
      parallel('p', [sleep('left', 5)], [sleep('right', 15)]),
    ]);
    await Promise.all(Array.from({ length: 20 }, () => line.add()));
    for (let served = 0; served < 20; served++) await line.serve();
    await untilAll(line.tenant, line.ids, 'completed');
    assert.equal(peakOf(await spansOf(line.tenant, line.ids)), 3);
  });

  test('the rest stay scheduled, due since they were created', async () => {
    const { tenant, next } = await pairOf(quick, 'waiting');
    const { state, next_fire_at, created_at, context } = await tenant.instance(next);
    assert.deepEqual([state, next_fire_at], ['scheduled', created_at]);
    assert.deepEqual(context.runtime, {});
  });

  test('they are admitted oldest first', async () => {
    const line = await lineOf(quick, 1);
    const holder = await line.add();
    await line.tenant.until(holder, 'waiting');
    for (let index = 0; index < 12; index++) await line.add();
    const ages = await Promise.all(line.ids.slice(1).map((id) => line.tenant.instance(id)));
    ages.sort((a, b) => (a.created_at + a.id < b.created_at + b.id ? -1 : 1));
    const served: string[] = [];
    while (served.length < 13) served.push(await line.serve());
    assert.deepEqual(served, [holder, ...ages.map(({ id }) => id)]);
  });

  test('an older one that comes back goes before the younger ones that waited all the time', async () => {
    const line = await pairOf(quick, 'waiting');
    const last = await line.add();
    await line.tenant.signal(line.next, 'pause');
    await line.tenant.signal(line.next, 'resume');
    await aWhile(quick);
    const served = [await line.serve(), await line.serve(), await line.serve()];
    assert.deepEqual(served, [line.holder, line.next, last]);
  });

  test('woken by event: 30 of them take turns before one sleeper wakes', async () => {
    // Each turn would last a second or more if anybody looked for free slots from time to time.
    const sleeper = quick.tenant();
    const asleep = await sleeper.run([sleep('a', 30_000)]);
    const line = await lineOf(quick, 1, () => [sleep('a', 1), step('b', 'noop')]);
    for (let index = 0; index < 30; index++) await line.add();
    await untilAll(line.tenant, line.ids, 'completed');
    assert.equal((await sleeper.instance(asleep)).state, 'running');
    await assertNeverMore(1, line.tenant, line.ids);
  });
});

// They wait for their times side by side.
describe('a slot is not held, and is asked for again when the time comes,', {
  concurrency: true,
}, () => {
  const soon = () => ({ next_fire_at: new Date(Date.now() + 2_000).toISOString() });

  /** Another one of the line's key, whose task is no one's. */
  const another = ({ tenant, key }: Line) => tenant.run(oneTask(newHandler()), key);

  /** `other` has the slot until the instance is due, and then gives it back. */
  async function meet(line: Line, id: string, other: string): Promise<void> {
    const { tenant } = line;
    await tenant.until(other, 'waiting');
    const { state, next_fire_at } = await tenant.instance(id);
    assert.equal(state, 'scheduled');
    const later = { next_fire_at: new Date(Date.parse(next_fire_at ?? '') + 50).toISOString() };
    await tenant.until(await tenant.run([step('x', 'noop')], later), 'completed');
    const due = await tenant.instance(id);
    assert.deepEqual([due.state, due.next_fire_at], [state, next_fire_at]);
    await tenant.signal(other, 'cancel');
    assert.equal(await line.serve(), id);
    await tenant.until(id, 'completed');
    await assertNeverMore(1, tenant, [id, other]);
  }

  test('by one that is rescheduled', async () => {
    const line = await lineOf(quick, 1);
    const id = await line.add();
    await line.tenant.until(id, 'waiting');
    const other = await another(line);
    await line.tenant.move(id, 'scheduled', soon());
    await meet(line, id, other);
  });

  test('by one that starts later', async () => {
    const line = await lineOf(quick, 1);
    const other = await another(line);
    await meet(line, await line.add(soon()), other);
  });
});

describe('a slot is given back', () => {
  const waiting: Record<string, (line: Line, id: string) => Promise<unknown>> = {
    'by the completion of its instance': (line) => line.serve(),
    'by its failure': async ({ tenant, handler }) => tenant.fail(await tenant.task(handler), 'no'),
    'by the signal cancel': ({ tenant }, id) => tenant.signal(id, 'cancel'),
    'by the signal pause': ({ tenant }, id) => tenant.signal(id, 'pause'),
  };
  for (const state of ['cancelled', 'failed', 'scheduled']) {
    waiting[`by PATCH waiting to ${state}`] = ({ tenant }, id) =>
      tenant.move(id, state, { next_fire_at: FAR });
  }
  for (const state of ['paused', 'completed', 'failed', 'cancelled']) {
    waiting[`by a bulk change to ${state}`] = (line, id) => moveInBulk(line, id, state);
  }
  for (const [how, leave] of Object.entries(waiting)) {
    test(how, async () => {
      const line = await pairOf(quick, 'waiting');
      await leave(line, line.holder);
      await line.tenant.until(line.next, 'waiting');
      await assertNeverMore(1, line.tenant, [line.holder, line.next]);
    });
  }

  for (const state of ['scheduled', 'completed', 'failed', 'paused', 'cancelled']) {
    test(`by PATCH running to ${state}`, async () => {
      const { tenant, holder, next } = await pairOf(quick, 'running', () => [sleep('a', LONG_MS)]);
      await tenant.move(holder, state, { next_fire_at: FAR });
      await tenant.until(next, 'running');
      await assertNeverMore(1, tenant, [holder, next]);
    });
  }
});

describe('a slot is kept', () => {
  const ways: Record<string, (line: Line, id: string) => Promise<unknown>> = {
    'over PATCH running to waiting, which parks its instance, and back': async ({ tenant }, id) => {
      await tenant.move(id, 'waiting');
      await tenant.move(id, 'running');
    },
    'from one external step to the next': (line) => line.serve(),
    'while a failed try is dispatched again': async ({ tenant, handler }) =>
      tenant.fail(await tenant.task(handler), 'busy', true),
    'over signals that change no state': async ({ tenant }, id) => {
      await tenant.signal(id, 'update_context', { n: 1 });
      await tenant.signal(id, 'custom:hello');
      await tenant.signal(id, 'resume');
    },
  };
  for (const [how, act] of Object.entries(ways)) {
    test(how, async () => {
      const line = await pairOf(quick, 'running', (handler) => [
        parallel('p', [step('a', handler), step('b', handler)], [sleep('c', LONG_MS)]),
      ]);
      await act(line, line.holder);
      await aWhile(quick);
      assert.equal((await line.tenant.instance(line.holder)).state, 'running');
      assert.equal((await line.tenant.instance(line.next)).state, 'scheduled');
      assert.deepEqual(await spansOf(line.tenant, [line.next]), []);
    });
  }
});

describe('a slot is kept, though nothing of its instance runs,', { concurrency: true }, () => {
  const delay = { duration: LONG_MS };
  const retry = { max_attempts: 2, initial_backoff: LONG_MS, max_backoff: LONG_MS };
  const waits: Record<string, Blocks> = {
    'in a delay': (handler) => [step('d', 'noop', { delay }), step('a', handler)],
    'in a back-off': () => [step('b', 'fail', { params: { retryable: true }, retry })],
    'at a rate limit': (name) => [step('r', 'noop', { rate_limit_key: 'r' }), step('a', name)],
  };
  for (const [how, blocks] of Object.entries(waits)) {
    test(how, async () => {
      const line = await lineOf(quick, 1, blocks);
      const { tenant, key } = line;
      await tenant.put('/rate-limits/r', { max_count: 1, window_seconds: 3_600 });
      await tenant.runUntil('completed', [step('first', 'noop', { rate_limit_key: 'r' })]);
      const holder = await line.add();
      await eventually(async () => {
        const { state, context } = await tenant.instance(holder);
        assert.deepEqual([state, 'started_at' in context.runtime], ['scheduled', true]);
      });
      const next = await tenant.run(oneTask(newHandler()), key);
      await aWhile(quick);
      assert.deepEqual(await spansOf(tenant, [next]), []);
      await tenant.signal(holder, 'cancel');
      await tenant.until(next, 'waiting');
    });
  }

  const heldBack: Record<string, (pair: Pair) => Promise<unknown>> = {
    'paused by a signal': ({ tenant, holder }) => tenant.signal(holder, 'pause'),
    'paused in bulk': (pair) => moveInBulk(pair, pair.holder, 'paused'),
    'put off': ({ tenant, holder }) => tenant.move(holder, 'scheduled', { next_fire_at: FAR }),
  };
  const ends: Record<string, (tenant: Tenant, task: WorkerTask) => Promise<unknown>> = {
    'until it completes its task': (tenant, task) => tenant.complete(task),
    'until it fails it': (tenant, task) => tenant.fail(task, 'no', true),
  };
  for (const [how, leave] of Object.entries(heldBack)) {
    for (const [when, end] of Object.entries(ends)) {
      test(`while a worker is at a task of an instance that is ${how}, ${when}`, async () => {
        const pair = await pairOf(api, 'waiting');
        const { tenant, holder, next, handler } = pair;
        const task = await tenant.task(handler);
        await leave(pair);
        await aWhile(api);
        assert.deepEqual(await spansOf(tenant, [next]), []);
        await end(tenant, task);
        await tenant.until(next, 'waiting');
        await assertNeverMore(1, tenant, [holder, next]);
      });
    }

    test(`while a worker is at a task of an instance that is ${how}, until it is silent`, async () => {
      const pair = await pairOf(quick, 'waiting');
      const { tenant, next, handler } = pair;
      const { id } = await tenant.task(handler);
      await leave(pair);
      await tenant.until(next, 'waiting');
      const { body } = await tenant.get<WorkerAttempt[]>(`/workers/tasks/${id}/attempts`);
      const lost = body.find(({ event }) => event === 'reclaimed');
      const [span] = await spansOf(tenant, [next]);
      assert.ok(span && lost && span.from >= Date.parse(lost.created_at));
    });
  }
});

test('A task of an instance that is paused, rescheduled or without its slot is not offered', async () => {
  const { tenant, holder, next, handler } = await pairOf(quick, 'waiting');
  const polled = async () => column(await tenant.poll(handler, { limit: 9 }), 'instance_id');
  await tenant.signal(holder, 'pause');
  await tenant.until(next, 'waiting');
  await tenant.signal(holder, 'resume');
  await aWhile(quick);
  assert.deepEqual(await polled(), [next], 'the other one has the slot');
  await tenant.signal(next, 'cancel');
  await tenant.until(holder, 'waiting');
  await tenant.move(holder, 'scheduled', { next_fire_at: FAR });
  assert.deepEqual(await polled(), [], 'it is put off');
  await tenant.move(holder, 'running');
  const [task] = await tenant.poll(handler, { wait_ms: 5_000 });
  assert.equal(task?.instance_id, holder);
});

// ---------------------------------------------------------------- however instances come and go

const stateOf = async (tenant: Tenant, id: string) => (await tenant.instance(id)).state;

describe('A concurrency key with max 1 never has two running instances, and all of them complete', () => {
  const naps = () => [sleep('a', 3), step('b', 'noop'), sleep('c', 3)];

  test('created in a batch, some of them later, some of them twice', async () => {
    const { tenant, sequence, key } = await lineOf(api, 1, naps);
    const instances = Array.from({ length: 30 }, (_, index) => {
      const keyed = index % 3 === 0 ? { idempotency_key: `k${index % 9}` } : {};
      const at = new Date(Date.now() + 10 * (index % 7)).toISOString();
      const later = index % 2 === 0 ? { next_fire_at: at } : {};
      return tenant.creation(sequence, { ...key, ...keyed, ...later });
    });
    const reply = await tenant.post('/instances/batch', { instances });
    assert.deepEqual(expectStatus(reply, 201), { count: 30, created: 23 });
    const list = await tenant.get<{ id: string }[]>(`/instances?sequence_id=${sequence}`);
    const ids = column(expectStatus(list, 200), 'id');
    assert.equal(ids.length, 23);
    await untilAll(tenant, ids, 'completed');
    await eventually(() => assertNeverMore(1, tenant, ids));
  });

  test('created with idempotency keys: what is created twice waits once', async () => {
    const line = await lineOf(api, 1);
    const add = (index: number) => line.add({ idempotency_key: `k${index % 6}` });
    const ids = new Set(await Promise.all(Array.from({ length: 18 }, (_, index) => add(index))));
    const served = new Set<string>();
    while (served.size < 6) served.add(await line.serve());
    assert.deepEqual(served, ids);
    await untilAll(line.tenant, [...ids], 'completed');
    await eventually(() => assertNeverMore(1, line.tenant, [...ids]));
  });
});

test('half a key limits nothing, and with a whole one each has its own maximum', async () => {
  const tenant = api.tenant();
  const sequence = await tenant.sequence(oneTask(newHandler()));
  const { concurrency_key, max_concurrency } = underKey(1);
  const nothing = [
    { concurrency_key },
    { max_concurrency },
    { max_concurrency, concurrency_key: null },
  ];
  for (const half of nothing) {
    const ids = [await tenant.create(sequence, half), await tenant.create(sequence, half)];
    await untilAll(tenant, ids, 'waiting');
  }
  const line = await lineOf(api, 1);
  const free = [await line.add(), await line.add({ max_concurrency: 2 })];
  const full = [await line.add(), await line.add({ max_concurrency: 2 })];
  await untilAll(line.tenant, free, 'waiting');
  await untilAll(line.tenant, full, 'scheduled');
});

// ---------------------------------------------------------------- ways of leaving and coming back

type Way = (pair: Pair) => Promise<unknown>;

/** Of pairs, one for each way, all of which wait at the same time. */
async function afterAWhile(ways: Record<string, Way>): Promise<[how: string, pair: Pair][]> {
  const pairs = await Promise.all(
    Object.entries(ways).map(async ([how, way]): Promise<[string, Pair]> => {
      const pair = await pairOf(api, 'waiting');
      await way(pair);
      return [how, pair];
    }),
  );
  await aWhile(api);
  return pairs;
}

test('one that comes back waits for a slot like all others, however it went', async () => {
  const gone = (away: Way, back: Way) => async (pair: Pair) => {
    await away(pair);
    await pair.tenant.until(pair.next, 'waiting');
    await back(pair);
  };
  const failed: Way = async ({ tenant, handler }) => tenant.fail(await tenant.task(handler), 'no');
  const paused: Way = ({ tenant, holder }) => tenant.signal(holder, 'pause');
  const later: Way = ({ tenant, holder }) =>
    tenant.move(holder, 'scheduled', { next_fire_at: FAR });
  const scheduled: Way = ({ tenant, holder }) => tenant.move(holder, 'scheduled');
  const running: Way = ({ tenant, holder }) => tenant.move(holder, 'running');
  const retried: Way = ({ tenant, holder }) => tenant.post(`/instances/${holder}/retry`);
  const resumed: Way = ({ tenant, holder }) => tenant.signal(holder, 'resume');
  const rewound: Way = async ({ tenant, holder }) => {
    const [block = ''] = Object.keys(await tenant.tree(holder));
    await resumeFrom(tenant, holder, block);
  };
  const inBulk =
    (state: string): Way =>
    (pair) =>
      moveInBulk(pair, pair.holder, state);
  const pairs = await afterAWhile({
    'from failed by POST retry': gone(failed, retried),
    'from failed by PATCH scheduled': gone(failed, scheduled),
    'from failed by going back to a block': gone(failed, rewound),
    'from paused by the signal resume': gone(paused, resumed),
    'from paused by PATCH scheduled': gone(paused, scheduled),
    'from paused by a bulk change to scheduled': gone(paused, inBulk('scheduled')),
    'from paused by a bulk change to running': gone(paused, inBulk('running')),
    'from paused by a bulk change to waiting': gone(paused, inBulk('waiting')),
    'from later by PATCH running': gone(later, running),
  });
  for (const [how, { tenant, holder, next, serve }] of pairs) {
    assert.equal(await stateOf(tenant, holder), 'scheduled', how);
    await tenant.signal(next, 'cancel');
    assert.equal(await serve(), holder, how);
    await tenant.until(holder, 'completed');
    await assertNeverMore(1, tenant, [holder, next]);
  }
});

test('one that waits stays scheduled whoever asks for more, and still gets its slot', async () => {
  const pairs = await afterAWhile({
    'PATCH running': async ({ tenant, next }) =>
      assert.equal((await tenant.move(next, 'running')).state, 'scheduled'),
    'a bulk change to running': (pair) => moveInBulk(pair, pair.next, 'running'),
    'a bulk change to waiting': (pair) => moveInBulk(pair, pair.next, 'waiting'),
    'a bulk change to scheduled': (pair) => moveInBulk(pair, pair.next, 'scheduled'),
  });
  for (const [how, { tenant, holder, next, ids, serve }] of pairs) {
    assert.equal(await stateOf(tenant, next), 'scheduled', how);
    assert.deepEqual([await serve(), await serve()], [holder, next], how);
    await untilAll(tenant, ids, 'completed');
    await assertNeverMore(1, tenant, ids);
  }
});

test('PATCH running of one that starts later asks for a slot at once', async () => {
  const line = await lineOf(api, 1);
  const { tenant } = line;
  const free = await line.add({ next_fire_at: FAR });
  assert.equal((await tenant.move(free, 'running')).state, 'scheduled');
  await tenant.until(free, 'waiting');
  const busy = await line.add({ next_fire_at: FAR });
  const { state, next_fire_at } = await tenant.move(busy, 'running');
  assert.equal(state, 'scheduled');
  assert.notEqual(next_fire_at, FAR);
  assert.deepEqual([await line.serve(), await line.serve()], [free, busy]);
  await assertNeverMore(1, tenant, line.ids);
});
