/** Slots of concurrency keys: who takes one, who gives it back, and who is next. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { newHandler, parallel, sleep, step, useApi } from '../helpers/api.js';
import { expectStatus } from '../helpers/client.js';
import {
  assertNeverMore,
  aWhile,
  type Blocks,
  type Line,
  lineOf,
  moveInBulk,
  oneTask,
  pairOf,
  peakOf,
  spansOf,
  underKey,
  untilAll,
} from '../helpers/slots.js';

/** Never over within a test. */
const LONG_MS = 600_000;
const FAR = '2100-01-01T00:00:00.000Z';

// No scan for what is overdue comes within a test: whoever goes on was woken by an event.
const api = useApi({ env: { ENGINE_SHARDS: '3', ENGINE_TICK_INTERVAL_MS: '60000' } });

describe('`concurrency_key`: Per tenant. A slot is held while `running` or `waiting`, not while `scheduled` (delay, back-off), `paused` or terminal; the rest stay scheduled and are admitted oldest first, woken by event', () => {
  test('per tenant: the same key of two tenants is two keys', async () => {
    const key = underKey(1, 'the same');
    for (const tenant of [api.tenant(), api.tenant()]) {
      const sequence = await tenant.sequence(oneTask(newHandler()));
      await tenant.until(await tenant.create(sequence, key), 'waiting');
      assert.equal((await tenant.instance(await tenant.create(sequence, key))).state, 'scheduled');
    }
  });

  test('a slot is held while running or waiting, never by more than the maximum', async () => {
    const line = await lineOf(api, 3, (handler) => [
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
    const { tenant, next } = await pairOf(api, 'waiting');
    const { state, next_fire_at, created_at, context } = await tenant.instance(next);
    assert.deepEqual([state, next_fire_at], ['scheduled', created_at]);
    assert.deepEqual(context.runtime, {});
  });

  test('they are admitted oldest first', async () => {
    const line = await lineOf(api, 1);
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
    const line = await pairOf(api, 'waiting');
    const last = await line.add();
    await line.tenant.signal(line.next, 'pause');
    await line.tenant.signal(line.next, 'resume');
    await aWhile(api);
    const served = [await line.serve(), await line.serve(), await line.serve()];
    assert.deepEqual(served, [line.holder, line.next, last]);
  });

  test('woken by event: 30 of them take turns before one sleeper wakes', async () => {
    // Each turn would last a second or more if anybody looked for free slots from time to time.
    const sleeper = api.tenant();
    const asleep = await sleeper.run([sleep('a', 30_000)]);
    const line = await lineOf(api, 1, () => [sleep('a', 1), step('b', 'noop')]);
    for (let index = 0; index < 30; index++) await line.add();
    await untilAll(line.tenant, line.ids, 'completed');
    assert.equal((await sleeper.instance(asleep)).state, 'running');
    await assertNeverMore(1, line.tenant, line.ids);
  });
});

describe('a slot is not held, and is asked for again when the time comes,', () => {
  interface Way {
    readonly blocks?: Blocks;
    /** Brings the instance that has the slot to where it waits for a time. */
    readonly leave?: (line: Line, id: string) => Promise<unknown>;
  }
  const soon = () => ({ next_fire_at: new Date(Date.now() + 2_000).toISOString() });
  const ways: Record<string, Way> = {
    'by one that is delayed': {
      blocks: (handler) => [step('d', 'noop', { delay: { duration: 2_000 } }), step('a', handler)],
    },
    'by one in back-off': {
      blocks: (handler) => [
        step('a', handler, { retry: { max_attempts: 2, initial_backoff: 2_000 } }),
      ],
      leave: async ({ tenant, handler }) => tenant.fail(await tenant.task(handler), 'no', true),
    },
    'by one that is rescheduled': {
      leave: async ({ tenant }, id) => {
        await tenant.until(id, 'waiting');
        await tenant.move(id, 'scheduled', soon());
      },
    },
  };

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

  for (const [what, { blocks, leave }] of Object.entries(ways)) {
    test(what, async () => {
      const line = await lineOf(api, 1, blocks);
      const first = await another(line);
      const id = await line.add();
      const other = await another(line);
      await line.tenant.signal(first, 'cancel');
      await leave?.(line, id);
      await meet(line, id, other);
    });
  }

  test('by one that starts later', async () => {
    const line = await lineOf(api, 1);
    const other = await another(line);
    await meet(line, await line.add(soon()), other);
  });

  test('by one whose rate limit is reached', async () => {
    const line = await lineOf(api, 1, (handler) => [
      step('r', 'noop', { rate_limit_key: 'r' }),
      step('a', handler),
    ]);
    const { tenant } = line;
    const limit = { max_count: 1, window_seconds: 3_600 };
    expectStatus(await tenant.put('/rate-limits/r', limit), 200);
    await tenant.runUntil('completed', [step('first', 'noop', { rate_limit_key: 'r' })]);
    const id = await line.add();
    const other = await another(line);
    await tenant.until(other, 'waiting');
    expectStatus(await tenant.delete('/rate-limits/r'), 204);
    await aWhile(api);
    assert.equal((await tenant.instance(id)).state, 'scheduled');
    await tenant.signal(other, 'cancel');
    assert.equal(await line.serve(), id);
    await tenant.until(id, 'completed');
    await assertNeverMore(1, tenant, [id, other]);
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
      const line = await pairOf(api, 'waiting');
      await leave(line, line.holder);
      await line.tenant.until(line.next, 'waiting');
      await assertNeverMore(1, line.tenant, [line.holder, line.next]);
    });
  }

  for (const state of ['scheduled', 'completed', 'failed', 'paused', 'cancelled']) {
    test(`by PATCH running to ${state}`, async () => {
      const { tenant, holder, next } = await pairOf(api, 'running', () => [sleep('a', LONG_MS)]);
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
      const line = await pairOf(api, 'running', (handler) => [
        parallel('p', [step('a', handler), step('b', handler)], [sleep('c', LONG_MS)]),
      ]);
      await act(line, line.holder);
      await aWhile(api);
      assert.equal((await line.tenant.instance(line.holder)).state, 'running');
      assert.equal((await line.tenant.instance(line.next)).state, 'scheduled');
      assert.deepEqual(await spansOf(line.tenant, [line.next]), []);
    });
  }
});
