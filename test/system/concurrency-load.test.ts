/**
 * Limits of concurrency keys however instances come, go and come back,
 * and over the death of the server.
 */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createRandom } from '../chaos/random.js';
import {
  eventually,
  type Json,
  newHandler,
  race,
  sleep,
  step,
  type Tenant,
  tryCatch,
  useApi,
} from '../helpers/api.js';
import { expectStatus } from '../helpers/client.js';
import { byDepth } from '../helpers/depth.js';
import {
  assertNeverMore,
  aWhile,
  type Line,
  lineOf,
  moveInBulk,
  oneTask,
  type Pair,
  pairOf,
  spansOf,
  underKey,
  untilAll,
} from '../helpers/slots.js';

/** Never over within a test. */
const LONG_MS = 600_000;
const FAR = '2100-01-01T00:00:00.000Z';

const api = useApi({ env: { ENGINE_SHARDS: '3' } });

const stateOf = async (tenant: Tenant, id: string) => (await tenant.instance(id)).state;

/** A worker completes whatever there is to do, until all instances have completed. */
async function workOff({ tenant, handler }: Line, ids: readonly string[]): Promise<void> {
  await eventually(async () => {
    await tenant.poll(handler, { limit: 100 });
    for (const task of await tenant.tasks(handler)) {
      if (task.state === 'claimed') await tenant.call('complete', task);
    }
    const states = await Promise.all(ids.map((id) => stateOf(tenant, id)));
    assert.deepEqual(new Set(states), new Set(['completed']));
  });
}

describe('Concurrency key with max 1: never more than one running, all complete in the end', () => {
  const naps = () => [sleep('a', 3), step('b', 'noop'), sleep('c', 3)];

  test('created one by one, all at once', async () => {
    const line = await lineOf(api, 1, naps);
    await Promise.all(Array.from({ length: 25 }, () => line.add()));
    await untilAll(line.tenant, line.ids, 'completed');
    await assertNeverMore(1, line.tenant, line.ids);
  });

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
    const ids = expectStatus(list, 200).map(({ id }) => id);
    assert.equal(ids.length, 23);
    await untilAll(tenant, ids, 'completed');
    await assertNeverMore(1, tenant, ids);
  });

  test('created with idempotency keys: what is created twice waits once', async () => {
    const line = await lineOf(api, 1);
    const add = (index: number) => line.add({ idempotency_key: `k${index % 6}` });
    const ids = new Set(await Promise.all(Array.from({ length: 18 }, (_, index) => add(index))));
    const served = new Set<string>();
    while (served.size < 6) served.add(await line.serve());
    assert.deepEqual(served, ids);
    await untilAll(line.tenant, [...ids], 'completed');
    await assertNeverMore(1, line.tenant, [...ids]);
  });
});

describe('who is limited', () => {
  test('a key without max_concurrency, or the reverse, limits nothing', async () => {
    const tenant = api.tenant();
    const sequence = await tenant.sequence(oneTask(newHandler()));
    const { concurrency_key, max_concurrency } = underKey(1);
    for (const half of [
      { concurrency_key },
      { max_concurrency },
      { ...underKey(1), concurrency_key: null },
    ]) {
      const ids = [await tenant.create(sequence, half), await tenant.create(sequence, half)];
      await untilAll(tenant, ids, 'waiting');
    }
  });

  test('each is judged by its own maximum, and nobody is overtaken by a younger one', async () => {
    const line = await lineOf(api, 1);
    const { tenant } = line;
    const [a, b, c, d, e] = [
      await line.add(),
      await line.add({ max_concurrency: 2 }),
      await line.add(),
      await line.add({ max_concurrency: 9 }),
      await line.add({ max_concurrency: 2 }),
    ] as const;
    const states = () => Promise.all([a, b, c, d, e].map((id) => stateOf(tenant, id)));
    await untilAll(tenant, [a, b], 'waiting');
    await aWhile(api);
    // The fourth may, but the third comes before it.
    assert.deepEqual(await states(), ['waiting', 'waiting', ...Array(3).fill('scheduled')]);
    await tenant.signal(a, 'cancel');
    await aWhile(api);
    assert.equal(await stateOf(tenant, c), 'scheduled');
    await tenant.signal(b, 'cancel');
    await untilAll(tenant, [c, d], 'waiting');
    await aWhile(api);
    assert.equal(await stateOf(tenant, e), 'scheduled');
    await tenant.signal(c, 'cancel');
    await tenant.until(e, 'waiting');
  });
});

describe('one that comes back waits for a slot like all others:', () => {
  const away: Record<string, (line: Line, id: string) => Promise<unknown>> = {
    failed: async ({ tenant, handler }) => tenant.fail(await tenant.task(handler), 'no'),
    paused: ({ tenant }, id) => tenant.signal(id, 'pause'),
    later: ({ tenant }, id) => tenant.move(id, 'scheduled', { next_fire_at: FAR }),
  };
  const ways: readonly [keyof typeof away, string, (line: Line, id: string) => Promise<unknown>][] =
    [
      ['failed', 'POST retry', ({ tenant }, id) => tenant.post(`/instances/${id}/retry`)],
      ['failed', 'PATCH scheduled', ({ tenant }, id) => tenant.move(id, 'scheduled')],
      ['paused', 'the signal resume', ({ tenant }, id) => tenant.signal(id, 'resume')],
      ['paused', 'PATCH scheduled', ({ tenant }, id) => tenant.move(id, 'scheduled')],
      ['paused', 'a bulk change to scheduled', (line, id) => moveInBulk(line, id, 'scheduled')],
      ['paused', 'a bulk change to running', (line, id) => moveInBulk(line, id, 'running')],
      ['paused', 'a bulk change to waiting', (line, id) => moveInBulk(line, id, 'waiting')],
      ['later', 'PATCH running', ({ tenant }, id) => tenant.move(id, 'running')],
    ];
  for (const [from, how, comeBack] of ways) {
    test(`from ${from} by ${how}`, async () => {
      const line = await pairOf(api, 'waiting');
      const { tenant, holder, next } = line;
      await away[from]?.(line, holder);
      await tenant.until(next, 'waiting');
      await comeBack(line, holder);
      await aWhile(api);
      assert.equal(await stateOf(tenant, holder), 'scheduled');
      await tenant.signal(next, 'cancel');
      assert.equal(await line.serve(), holder);
      await tenant.until(holder, 'completed');
      await assertNeverMore(1, tenant, [holder, next]);
    });
  }
});

describe('one that waits for a slot', () => {
  const ends: Record<string, (line: Line, id: string) => Promise<unknown>> = {
    'the signal cancel': ({ tenant }, id) => tenant.signal(id, 'cancel'),
    'PATCH cancelled': ({ tenant }, id) => tenant.move(id, 'cancelled'),
    'the signal pause': ({ tenant }, id) => tenant.signal(id, 'pause'),
    'PATCH paused': ({ tenant }, id) => tenant.move(id, 'paused'),
    'a bulk change to failed': (line, id) => moveInBulk(line, id, 'failed'),
    'a bulk change to completed': (line, id) => moveInBulk(line, id, 'completed'),
  };
  for (const [how, leave] of Object.entries(ends)) {
    test(`leaves the line by ${how}, and the slot passes it by`, async () => {
      const line = await pairOf(api, 'waiting');
      const { tenant, holder, next } = line;
      const last = await line.add();
      await leave(line, next);
      const left = await stateOf(tenant, next);
      assert.notEqual(left, 'scheduled');
      assert.deepEqual([await line.serve(), await line.serve()], [holder, last]);
      assert.equal(await stateOf(tenant, next), left);
      assert.deepEqual(await spansOf(tenant, [next]), []);
    });
  }

  const asked: Record<string, (pair: Pair) => Promise<unknown>> = {
    'PATCH running': async ({ tenant, next }) =>
      assert.equal((await tenant.move(next, 'running')).state, 'scheduled'),
    'a bulk change to running': (pair) => moveInBulk(pair, pair.next, 'running'),
    'a bulk change to waiting': (pair) => moveInBulk(pair, pair.next, 'waiting'),
    'a bulk change to scheduled': (pair) => moveInBulk(pair, pair.next, 'scheduled'),
  };
  for (const [how, ask] of Object.entries(asked)) {
    test(`stays scheduled over ${how}, and still gets its slot`, async () => {
      const pair = await pairOf(api, 'waiting');
      await ask(pair);
      await aWhile(api);
      assert.equal(await stateOf(pair.tenant, pair.next), 'scheduled');
      assert.deepEqual([await pair.serve(), await pair.serve()], [pair.holder, pair.next]);
      await untilAll(pair.tenant, pair.ids, 'completed');
      await assertNeverMore(1, pair.tenant, pair.ids);
    });
  }

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

  test('a cancelled one waits for a slot for its protected work, too', async () => {
    const line = await lineOf(api, 1, (handler) => [
      tryCatch('t', [step('a', handler)], [], [sleep('last', 10)]),
      step('after', 'noop'),
    ]);
    const { tenant } = line;
    const guarded = await line.add();
    await tenant.until(guarded, 'waiting');
    await tenant.signal(guarded, 'pause');
    const holder = await line.add();
    await tenant.until(holder, 'waiting');
    await tenant.signal(guarded, 'cancel');
    await aWhile(api);
    assert.equal(await stateOf(tenant, guarded), 'scheduled');
    assert.deepEqual(await tenant.rowsOf(guarded), []);
    assert.equal(await line.serve(), holder);
    await tenant.until(guarded, 'cancelled');
    assert.deepEqual(await tenant.rowsOf(guarded), ['last']);
    await tenant.until(holder, 'completed');
    await assertNeverMore(1, tenant, line.ids);
  });
});

test('whatever is done to them: never more than the maximum, and all can be brought to their end', async (t) => {
  const seed = Number(process.env.SEED ?? Date.now() % 1_000_000);
  t.diagnostic(`SEED=${seed}`);
  const retry = { max_attempts: 99, initial_backoff: 20, max_backoff: 20 };
  const line = await lineOf(api, 3, (handler) => [
    sleep('a', 5),
    step('b', handler, { retry }),
    step('c', 'noop', { delay: { duration: 20 } }),
    sleep('d', 5),
  ]);
  const { tenant, handler, sequence, ids } = line;
  for (let index = 0; index < 20; index++) await line.add();
  const states = ['scheduled', 'running', 'waiting', 'paused', 'failed'] as const;

  /** Refusals are part of it: not every state allows every move. */
  async function user(stream: number): Promise<void> {
    const random = createRandom(seed, stream);
    for (let deed = 0; deed < 50; deed++) {
      const path = `/instances/${random.pick(ids)}`;
      const state = random.pick(states);
      const kind = random.weighted({ work: 6, signal: 4, move: 4, retry: 1, bulk: 1 });
      if (kind === 'signal') {
        await tenant.post(`${path}/signals`, { signal_type: random.pick(['pause', 'resume']) });
      } else if (kind === 'move') await tenant.patch(`${path}/state`, { state });
      else if (kind === 'retry') await tenant.post(`${path}/retry`);
      else if (kind === 'bulk') {
        const filter = { sequence_id: sequence, states: [random.pick(states)] };
        await tenant.patch('/instances/bulk/state', { filter, state });
      } else {
        for (const task of await tenant.poll(handler, { limit: 2 })) {
          if (random.chance(0.7)) await tenant.call('complete', task);
          else await tenant.call('fail', task, { retryable: random.chance(0.8) });
        }
      }
    }
  }
  await Promise.all([user(1), user(2), user(3)]);

  for (const id of ids) {
    // The first ends a pause or a failure. Who was parked before its pause is parked again: the second.
    await tenant.patch(`/instances/${id}/state`, { state: 'scheduled' });
    await tenant.patch(`/instances/${id}/state`, { state: 'running' });
  }
  await workOff(line, ids);
  await assertNeverMore(3, tenant, ids);
});

describe('after SIGKILL', () => {
  test('who had a slot has it, who waited waits, and all complete', async () => {
    const line = await lineOf(api, 3);
    const { tenant, handler, key } = line;
    const run = (block: Json, more: Json = {}) =>
      tenant.run([block, sleep('z', 3)], { ...key, ...more });
    const task = step('a', handler);
    const until = async (state: string, id: string) => (await tenant.until(id, state)).id;
    const away: Record<string, string> = {};

    away.failed = await run(task);
    await tenant.fail(await tenant.task(handler), 'no');
    const retry = { max_attempts: 2, initial_backoff: LONG_MS, max_backoff: LONG_MS };
    away.inBackOff = await run(step('a', handler, { retry }));
    await tenant.fail(await tenant.task(handler), 'busy', true);
    away.paused = await until('waiting', await run(task));
    await tenant.signal(away.paused, 'pause');
    away.rescheduled = await until('waiting', await run(task));
    await tenant.move(away.rescheduled, 'scheduled', { next_fire_at: FAR });
    away.delayed = await run(step('a', 'noop', { delay: { duration: LONG_MS } }));
    away.later = await run(task, { next_fire_at: FAR });

    const open = race('r', [[sleep('s', LONG_MS)], [task]]);
    const holders = [
      await until('waiting', await run(task)),
      await until('running', await run(open)),
      await until('running', await run(open)),
    ];
    await tenant.move(holders[2] ?? '', 'waiting');
    // One of them is claimed.
    await tenant.task(handler);
    const waiters = [await run(task), await run(task), await run(sleep('a', 3))];
    const ids = [...Object.values(away), ...holders, ...waiters];
    const states = () =>
      Promise.all(
        ids.map(async (id) => {
          const { state, next_fire_at } = await tenant.instance(id);
          return [state, next_fire_at];
        }),
      );
    const before = await states();
    await api.restart();
    await aWhile(api);
    assert.deepEqual(await states(), before);

    expectStatus(await tenant.post(`/instances/${away.failed}/retry`), 200);
    await tenant.signal(away.paused, 'resume');
    for (const id of [away.inBackOff, away.rescheduled, away.delayed, away.later]) {
      assert.equal((await tenant.move(id, 'running')).state, 'scheduled');
    }
    await workOff(line, ids);
    await assertNeverMore(3, tenant, ids);
  });

  test('while slots change hands', async () => {
    const line = await lineOf(api, 2, () => [sleep('a', 2), step('b', 'noop')]);
    const { tenant, sequence, ids } = line;
    await Promise.all(Array.from({ length: 60 }, () => line.add()));
    for (const count of byDepth([25], [5, 25])) {
      await eventually(async () => {
        const path = `/instances?sequence_id=${sequence}&state=completed`;
        const completed = expectStatus(await tenant.get<unknown[]>(path), 200);
        assert.ok(completed.length >= count);
      });
      await api.restart();
    }
    await untilAll(tenant, ids, 'completed');
    await assertNeverMore(2, tenant, ids);
  });
});
