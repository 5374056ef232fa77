/** The bounds on requests under way: who gets the next slot, and who gets none. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { OriginSlots, type Slot } from '../../src/handlers/origin-slots.js';

const LIMITS = { activeMax: 3, activePerOriginMax: 2, waitingMax: 4 };

/** Asks for slots and notes, by name, in which order they are granted. */
function requester(slots: OriginSlots) {
  const granted: string[] = [];
  const releases = new Map<string, () => void>();
  const ask = async (name: string, origin: string, signal = new AbortController().signal) => {
    const slot = await slots.acquire(origin, signal);
    granted.push(slot.ok ? name : `${name} ${slot.reason}`);
    if (slot.ok) releases.set(name, slot.release);
  };
  const settled = () => new Promise<void>((resolve) => setImmediate(resolve));
  return {
    granted,
    async ask(name: string, origin: string, signal?: AbortSignal) {
      void ask(name, origin, signal);
      await settled();
    },
    async release(name: string) {
      releases.get(name)?.();
      await settled();
    },
    settled,
  };
}

test('an origin takes no more than its share, and another is served before it', async () => {
  const { ask, granted } = requester(new OriginSlots(LIMITS));
  for (const name of ['a1', 'a2', 'a3']) await ask(name, 'a');
  await ask('b1', 'b');
  assert.deepEqual(granted, ['a1', 'a2', 'b1']);
});

test('within an origin the first to come is served first', async () => {
  const { ask, release, granted } = requester(new OriginSlots(LIMITS));
  for (const name of ['a1', 'a2', 'a3', 'a4']) await ask(name, 'a');
  await release('a2');
  await release('a1');
  assert.deepEqual(granted, ['a1', 'a2', 'a3', 'a4']);
});

test('origins take turns when all slots are taken', async () => {
  const { ask, release, granted } = requester(new OriginSlots({ ...LIMITS, activeMax: 1 }));
  await ask('x', 'x');
  for (const name of ['a1', 'a2']) await ask(name, 'a');
  for (const name of ['b1', 'b2']) await ask(name, 'b');
  for (const name of ['x', 'a1', 'b1', 'a2']) await release(name);
  assert.deepEqual(granted, ['x', 'a1', 'b1', 'a2', 'b2']);
});

test('a slot that is released twice is given away once', async () => {
  const { ask, release, granted } = requester(new OriginSlots({ ...LIMITS, activeMax: 1 }));
  for (const name of ['a1', 'a2', 'a3']) await ask(name, 'a');
  await release('a1');
  await release('a1');
  assert.deepEqual(granted, ['a1', 'a2']);
});

test('past the bound on who waits a request is refused', async () => {
  const { ask, granted } = requester(new OriginSlots({ ...LIMITS, activeMax: 1, waitingMax: 1 }));
  for (const name of ['a1', 'a2', 'a3']) await ask(name, 'a');
  await ask('b1', 'b');
  assert.deepEqual(granted, ['a1', 'a3 full', 'b1 full']);
});

test('a request that is aborted leaves the queue to the next', async () => {
  const { ask, release, granted, settled } = requester(
    new OriginSlots({ ...LIMITS, activeMax: 1 }),
  );
  const controller = new AbortController();
  await ask('a1', 'a');
  await ask('a2', 'a', controller.signal);
  await ask('a3', 'a');
  controller.abort();
  await settled();
  await release('a1');
  await ask('late', 'a', controller.signal);
  assert.deepEqual(granted, ['a1', 'a2 aborted', 'a3', 'late aborted']);
});

test('closing refuses who waits and who comes, and leaves who holds a slot', async () => {
  const slots = new OriginSlots({ ...LIMITS, activeMax: 1 });
  const { ask, release, granted, settled } = requester(slots);
  for (const name of ['a1', 'a2', 'a3']) await ask(name, 'a');
  await ask('b1', 'b');
  slots.close();
  await settled();
  await ask('c1', 'c');
  await release('a1');
  assert.deepEqual(granted, ['a1', 'a2 closed', 'a3 closed', 'b1 closed', 'c1 closed']);
});

test('after all have left, every slot is free again', async () => {
  const slots = new OriginSlots(LIMITS);
  const signal = new AbortController().signal;
  for (let round = 0; round < 100; round += 1) {
    const held: Slot[] = [];
    for (const origin of ['a', 'a', 'b']) held.push(await slots.acquire(origin, signal));
    for (const slot of held) {
      assert.ok(slot.ok);
      slot.release();
    }
  }
});
