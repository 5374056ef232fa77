/** The actor of a concurrency key, and the arithmetic of sliding windows. */

import assert from 'node:assert/strict';
import { beforeEach, describe, test } from 'node:test';
import fc from 'fast-check';
import { GrantWindow } from '../../actors/limits/grant-window.js';
import { KeyWorld } from '../helpers/key-world.js';
import { check } from '../helpers/properties.js';

let world: KeyWorld;
beforeEach(() => {
  world = new KeyWorld();
});

const want = (id: string, createdAt = 0, max = 1) => world.want(id, { createdAt, max });

/** Those who were told of their slots, in order. */
const assertTold = (expected: string) => assert.equal(world.told.join(' '), expected);

describe('who is next', () => {
  test('as many as the maximum are let in, by age and then by id, however they came', async () => {
    await world.turn(want('d', 2, 2), want('c', 1, 2), want('b', 2, 2), want('a', 3, 2));
    assertTold('c#1 b#1');
    await world.turn(world.leave('c'));
    await world.turn(world.leave('b'));
    assertTold('c#1 b#1 d#1 a#1');
  });

  test('each is judged by its own maximum', async () => {
    await world.turn(...[1, 3, 3, 2, 4].map((max, at) => want(`a${at}`, at, max)));
    assertTold('a0#1 a1#1 a2#1');
    await world.turn(world.leave('a0'));
    assertTold('a0#1 a1#1 a2#1');
    await world.turn(world.leave('a1'));
    assertTold('a0#1 a1#1 a2#1 a3#1 a4#1');
  });

  test('nobody is overtaken by a younger one, with whatever maximum, and who comes back has its place', async () => {
    await world.turn(want('a', 1));
    await world.turn(want('b', 2), want('c', 3, 9));
    assertTold('a#1');
    await world.turn(world.leave('a'));
    assertTold('a#1 b#1 c#1');
    await world.turn(want('d', 4), want('a', 1));
    await world.turn(world.leave('b'), world.leave('c'));
    assertTold('a#1 b#1 c#1 a#2');
  });

  test('a slot is passed on in the unit in which it is given back, and nothing is kept of an idle key', async () => {
    await world.turn(want('a'), want('b', 1));
    assert.equal(world.isPassive, false);
    await world.turn(world.leave('a'));
    assert.deepEqual(world.units, [['permit.set'], ['permit.clear', 'permit.set']]);
    await world.turn(world.leave('b'));
    assert.deepEqual([world.isPassive, world.slots.size], [true, 0]);
  });
});

describe('words that come twice, or late', () => {
  test('a wish that is heard again takes no second slot; its instance is told again', async () => {
    const word = want('a', 0, 2);
    await world.turn(word, word);
    assertTold('a#1');
    await world.turn(word);
    await world.turn(want('b', 0, 2));
    assertTold('a#1 a#1 b#1');
    assert.deepEqual(Object.fromEntries(world.slots), { a: 1, b: 1 });
  });

  for (const [how, order] of [
    ['twice', [0, 1, 0]],
    ['after it', [1, 0]],
  ] as const) {
    test(`a leave that is heard ${how} takes nothing from a later wish`, async () => {
      await world.turn(want('a'));
      const words = [world.leave('a'), want('a')];
      for (const at of order) await world.turn(words[at]!);
      assertTold('a#1 a#2');
      assert.equal(world.slots.get('a'), 2);
    });
  }

  test('one that waits is taken out by its leave, and its next wish counts', async () => {
    await world.turn(want('a'), want('b', 1));
    await world.turn(world.leave('b'));
    await world.turn(world.leave('a'));
    assertTold('a#1');
    await world.turn(want('b', 1));
    assertTold('a#1 b#2');
  });
});

describe('words that are lost', () => {
  test('a lost leave, and a lost wish, are found by the rescan, in their places', async () => {
    await world.turn(want('a'), want('c', 2));
    world.leave('a');
    want('b', 1);
    await world.turn();
    assertTold('a#1');
    await world.rescan();
    assertTold('a#1 b#1');
    assert.deepEqual([...world.slots.keys()], ['b']);
  });

  test('a leave and a new wish, both lost, keep their place before the younger', async () => {
    await world.turn(want('a'), want('b', 1));
    world.leave('a');
    want('a');
    await world.restart();
    assertTold('a#1 a#2');
    await world.turn(world.leave('a'));
    assertTold('a#1 a#2 b#1');
  });

  test('after a restart those who run keep their slots, the others their order, and who was not told is told', async () => {
    await world.turn(...['a', 'b', 'c', 'd'].map((id, at) => want(id, at, 2)));
    world.running.delete('b');
    await world.restart();
    assertTold('a#1 b#1 b#1');
    await world.turn(world.leave('b'));
    await world.restart();
    await world.turn(world.leave('a'));
    assertTold('a#1 b#1 b#1 c#1 d#1');
  });

  test('after a refused unit nobody is told, and the rows are read again', async () => {
    world.refuses = true;
    await world.turn(want('a'), want('b', 1));
    assert.equal(world.reads, 2);
    assertTold('a#1');
    world.refuses = true;
    await world.turn(world.leave('a'));
    assertTold('a#1 b#1');
    assert.deepEqual([...world.slots.keys()], ['b']);
  });
});

describe('more that wait than are kept in memory', () => {
  const COUNT = 2_500;
  const idOf = (at: number) => at.toString(16).padStart(6, '0');

  for (const isAwake of [false, true]) {
    const how = isAwake ? 'when they were heard of' : 'when they were read';
    test(`2,500 leave in order ${how}, those that come meanwhile in their places`, async () => {
      if (isAwake) await world.turn(want('0', -1));
      const ids = Array.from({ length: COUNT }, (_, at) => idOf(at));
      const words = ids.map((id, at) => want(id, at));
      const expected = [...(isAwake ? ['0'] : []), ...ids];
      await world.turn(...words.reverse());
      for (let served = 0; world.running.size > 0; served++) {
        if (served === 10) {
          await world.turn(want('aaaa', COUNT), want('bbbb', 1_700), want('cccc', 20));
          expected.push('aaaa');
          expected.splice(expected.indexOf(idOf(1_700)) + 1, 0, 'bbbb');
          expected.splice(expected.indexOf(idOf(20)) + 1, 0, 'cccc');
        }
        for (const id of [...world.running]) await world.turn(world.leave(id));
      }
      assertTold(expected.map((id) => `${id}#1`).join(' '));
      assert.ok(world.reads < 10, `${world.reads} reads`);
    });
  }
});

describe('sliding windows', () => {
  const WINDOW_MS = 1_000;

  /** Asks, and uses a grant at once. @returns when to come again, or undefined for a grant */
  function take(window: GrantWindow, key: string, now: number): number | undefined {
    const at = window.place(key, now);
    if (at > now) return at;
    window.grant(now, now + WINDOW_MS);
    window.used(now, now);
    return undefined;
  }

  let window: GrantWindow;
  beforeEach(() => {
    window = new GrantWindow(1, WINDOW_MS);
  });

  test('grants up to the maximum, then names the time at which the oldest one is over', () => {
    const window = new GrantWindow(2, WINDOW_MS);
    const times = { a: 100, b: 300, c: 400, d: 400, e: 400 };
    const seen = Object.entries(times).map(([key, now]) => take(window, key, now));
    assert.deepEqual(seen, [undefined, undefined, 1_100, 1_300, 2_100]);
  });

  test('lets those in first who were told to come, and puts newcomers behind them', () => {
    take(window, 'a', 0);
    assert.deepEqual([take(window, 'b', 10), take(window, 'c', 20)], [1_000, 2_000]);
    assert.equal(take(window, 'b', 30), 1_000, 'asking again keeps the place');
    assert.equal(take(window, 'b', 1_000), undefined);
  });

  test('a place that nobody takes up is given away', () => {
    take(window, 'a', 0);
    take(window, 'gone', 10);
    assert.equal(take(window, 'b', 6_100), undefined);
  });

  test('with another limit the places are void and those who had one are named', () => {
    take(window, 'a', 0);
    take(window, 'b', 10);
    assert.deepEqual(window.change(1, WINDOW_MS), [], 'it is the same');
    assert.equal(take(window, 'c', 15), 2_000);
    assert.deepEqual(window.change(5, WINDOW_MS), ['b', 'c']);
    assert.equal(take(window, 'b', 20), undefined);
  });

  test('a grant counts from its use, one of unknown use from the last moment at which it could be', () => {
    for (const [use, now, next] of [
      [40, 50, 1_040],
      [undefined, 600, 1_500],
      // One that was not used is free again.
      [null, 50, 50],
    ] as const) {
      const window = new GrantWindow(1, WINDOW_MS);
      window.grant(1, 500);
      if (use !== undefined) window.used(1, use);
      assert.equal(window.place('a', now), next);
    }
  });

  test('no window of any position holds more than the maximum, and everyone is let in', (t) => {
    const run = fc.record({
      max: fc.integer({ min: 1, max: 4 }),
      asks: fc.array(fc.integer({ min: 0, max: 3_000 }), { minLength: 1, maxLength: 40 }),
      useAfter: fc.integer({ min: 0, max: 50 }),
    });
    check(t, 100, run, ({ max, asks, useAfter }) => {
      const window = new GrantWindow(max, WINDOW_MS);
      const due = asks.map((at, index) => ({ at, key: String(index) }));
      const used: number[] = [];
      while (due.length > 0) {
        due.sort((a, b) => a.at - b.at);
        const next = due.shift();
        if (next === undefined) break;
        const at = window.place(next.key, next.at);
        if (at > next.at) due.push({ at, key: next.key });
        else {
          window.grant(used.length + 1, at + useAfter);
          // Every third use is never reported.
          if (used.length % 3 < 2) window.used(used.length + 1, at + useAfter);
          used.push(at + useAfter);
        }
        assert.ok(next.at < 1_000_000, 'somebody is never let in');
      }
      used.sort((a, b) => a - b);
      for (let i = max; i < used.length; i++) {
        assert.ok((used[i] as number) - (used[i - max] as number) >= WINDOW_MS);
      }
    });
  });
});
