/** Places that parties share: who gets the next one, and who gets none. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FairSlots, type LevelLimits, type Slot } from '../../src/fair-slots.js';

const PARTIES = { activeMax: 2 };
const LIMITS: [LevelLimits, LevelLimits] = [{ activeMax: 3, waitingMax: 4 }, PARTIES];
const ONE_PLACE: [LevelLimits, LevelLimits] = [{ activeMax: 1 }, PARTIES];

/** Asks for slots and notes, by name, in which order they are granted. */
function requester(slots: FairSlots) {
  const granted: string[] = [];
  const releases = new Map<string, () => void>();
  const ask = async (name: string, path: string, signal = new AbortController().signal) => {
    const slot = await slots.acquire(path.split('/'), signal);
    granted.push(slot.ok ? name : `${name} ${slot.reason}`);
    if (slot.ok) releases.set(name, slot.release);
  };
  const settled = () => new Promise<void>((resolve) => setImmediate(resolve));
  return {
    granted,
    async ask(name: string, path: string, signal?: AbortSignal) {
      void ask(name, path, signal);
      await settled();
    },
    async release(name: string) {
      releases.get(name)?.();
      await settled();
    },
    settled,
  };
}

test('a party takes no more than its bound, and another is served before it', async () => {
  const { ask, granted } = requester(new FairSlots(LIMITS));
  for (const name of ['a1', 'a2', 'a3']) await ask(name, 'a');
  await ask('b1', 'b');
  assert.deepEqual(granted, ['a1', 'a2', 'b1']);
});

test('within a party the first to come is served first', async () => {
  const { ask, release, granted } = requester(new FairSlots(LIMITS));
  for (const name of ['a1', 'a2', 'a3', 'a4']) await ask(name, 'a');
  await release('a2');
  await release('a1');
  assert.deepEqual(granted, ['a1', 'a2', 'a3', 'a4']);
});

test('parties take turns when all slots are taken', async () => {
  const { ask, release, granted } = requester(new FairSlots(ONE_PLACE));
  await ask('x', 'x');
  for (const name of ['a1', 'a2']) await ask(name, 'a');
  for (const name of ['b1', 'b2']) await ask(name, 'b');
  for (const name of ['x', 'a1', 'b1', 'a2']) await release(name);
  assert.deepEqual(granted, ['x', 'a1', 'b1', 'a2', 'b2']);
});

test('a slot that is released twice is given away once', async () => {
  const { ask, release, granted } = requester(new FairSlots(ONE_PLACE));
  for (const name of ['a1', 'a2', 'a3']) await ask(name, 'a');
  await release('a1');
  await release('a1');
  assert.deepEqual(granted, ['a1', 'a2']);
});

test('past the bound on who waits a request is refused', async () => {
  const { ask, granted } = requester(new FairSlots([{ activeMax: 1, waitingMax: 1 }, PARTIES]));
  for (const name of ['a1', 'a2', 'a3']) await ask(name, 'a');
  await ask('b1', 'b');
  assert.deepEqual(granted, ['a1', 'a3 full', 'b1 full']);
});

test('a request that is aborted leaves the queue to the next', async () => {
  const { ask, release, granted, settled } = requester(new FairSlots(ONE_PLACE));
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
  const slots = new FairSlots(ONE_PLACE);
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
  const slots = new FairSlots(LIMITS);
  const signal = new AbortController().signal;
  for (let round = 0; round < 100; round += 1) {
    const held: Slot[] = [];
    for (const origin of ['a', 'a', 'b']) held.push(await slots.acquire([origin], signal));
    for (const slot of held) {
      assert.ok(slot.ok);
      slot.release();
    }
  }
});

test('within a party its parts take turns, and no other party waits for them', async () => {
  const { ask, release, granted } = requester(
    new FairSlots([{ activeMax: 3 }, { activeMax: 2 }, { activeMax: 1 }]),
  );
  for (const name of ['a1', 'a2']) await ask(name, 'a/1');
  for (const name of ['a3', 'a4']) await ask(name, 'a/2');
  await ask('a5', 'a/3');
  await ask('b1', 'b/1');
  assert.deepEqual(granted, ['a1', 'a3', 'b1'], 'a part has its bound, and the party, too');
  for (const name of ['a1', 'a3', 'a2']) await release(name);
  assert.deepEqual(granted.slice(3), ['a2', 'a4', 'a5']);
});

test('a party of many waits no more than its turn beside one that floods', async () => {
  const { ask, release, granted } = requester(new FairSlots([{ activeMax: 4 }, { activeMax: 3 }]));
  for (let n = 1; n <= 9; n += 1) await ask(`a${n}`, 'a');
  await ask('b1', 'b');
  for (const name of ['b2', 'b3']) await ask(name, 'b');
  for (const name of ['a1', 'a2', 'a3']) await release(name);
  assert.deepEqual(granted, ['a1', 'a2', 'a3', 'b1', 'a4', 'b2', 'a5']);
});

test('the bound on who waits is each party its own, too', async () => {
  const { ask, granted } = requester(
    new FairSlots([
      { activeMax: 1, waitingMax: 3 },
      { activeMax: 1, waitingMax: 2 },
    ]),
  );
  for (const name of ['a1', 'a2', 'a3', 'a4']) await ask(name, 'a');
  for (const name of ['b1', 'b2']) await ask(name, 'b');
  assert.deepEqual(granted, ['a1', 'a4 full', 'b2 full']);
});

test('a place that is taken at once is given or not, and nobody waits', () => {
  const slots = new FairSlots([{ activeMax: 2 }, { activeMax: 1 }]);
  const release = slots.take(['a']);
  assert.ok(release);
  assert.equal(slots.take(['a']), undefined);
  assert.ok(slots.take(['b']));
  assert.equal(slots.take(['c']), undefined);
  release();
  assert.ok(slots.take(['c']));
  assert.equal(slots.active, 2);
});

test('who takes many places waits for all of them, and nobody who wants less goes before', async () => {
  const slots = new FairSlots([{ activeMax: 10 }, { activeMax: 8 }]);
  const granted: string[] = [];
  const releases = new Map<string, () => void>();
  const ask = async (name: string, places: number, signal?: AbortSignal) => {
    void slots.acquire([name[0] as string], signal, places).then((slot) => {
      if (slot.ok) releases.set(name, slot.release);
      granted.push(slot.ok ? name : `${name} ${slot.reason}`);
    });
    await new Promise<void>((resolve) => setImmediate(resolve));
  };
  const release = async (name: string) => {
    releases.get(name)?.();
    await new Promise<void>((resolve) => setImmediate(resolve));
  };
  const controller = new AbortController();
  await ask('a1', 6);
  await ask('b1', 6, controller.signal);
  await ask('c1', 1);
  assert.equal(slots.take(['d']), undefined, 'it is the turn of b');
  assert.deepEqual(granted, ['a1']);
  controller.abort();
  await ask('a2', 3);
  await ask('a3', 1);
  assert.deepEqual(granted, ['a1', 'b1 aborted', 'c1'], 'a has 8 at most, in its order');
  await ask('b2', 100);
  await release('a1');
  assert.deepEqual(granted.slice(3), ['a2'], 'then it is the turn of b, which has to be alone');
  for (const name of ['c1', 'a2']) await release(name);
  assert.deepEqual(granted.slice(4), ['b2']);
  await ask('b3', 1);
  await release('b2');
  assert.deepEqual(granted.slice(5), ['a3', 'b3']);
  for (const name of ['a3', 'b3']) await release(name);
  assert.equal(slots.active, 0);
});
