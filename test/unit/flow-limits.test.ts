/** Limits of sequences by keys: what a key does while it is full, the starts of a throttle, and the keys. */

import assert from 'node:assert/strict';
import { beforeEach, describe, test } from 'node:test';
import fc from 'fast-check';
import { READ_AGAIN_MS } from '../../actors/limits/concurrency-key.js';
import { StartWindow } from '../../actors/limits/start-window.js';
import { compileFlow, flowKeysOf } from '../../src/core/flow-limits.js';
import { KeyWorld } from '../helpers/key-world.js';
import { check } from '../helpers/properties.js';

describe('a creation takes a free slot in its own unit, which is all that is written', () => {
  let world: KeyWorld;
  let answers: string[];
  beforeEach(() => {
    world = new KeyWorld();
    answers = [];
  });

  const create = (id: string, createdAt = 0) => world.create(id, answers, { createdAt });

  test('of two in one turn one gets it, and the other one learns who has it', async () => {
    await world.turn(create('a'), create('b'));
    assert.deepEqual(answers, ['free', 'full: a']);
    assert.deepEqual([...world.running], ['a']);
    await world.turn(world.leave('a'));
    assert.deepEqual(world.units, [['instance.insert']]);
    assert.equal(world.isPassive, true);
  });

  test('the other one learns it when the first is committed, and takes the slot if it is refused', async () => {
    world.refuses = true;
    await world.turn(create('a'), create('b'));
    assert.deepEqual(answers, ['free', 'free']);
    assert.deepEqual([...world.running], ['b']);
  });

  test('one that is repeated is known, and one that others wait before is not served first', async () => {
    await world.turn(create('a'), create('a'));
    await world.turn(world.want('b', { createdAt: 1 }));
    await world.turn(world.leave('a'));
    await world.turn(create('c', 2));
    assert.deepEqual(answers, ['free', 'known', 'full: b']);
  });

  test('a creation that the database refuses leaves the slot to the next one', async () => {
    world.refuses = true;
    await world.turn(create('a'));
    await world.turn(create('b'));
    assert.deepEqual(answers, ['free', 'free']);
    assert.deepEqual([...world.running], ['b']);
  });

  test('it is held after a restart, and free when its instance has ended', async () => {
    await world.turn(create('a'));
    await world.restart();
    await world.turn(create('b'));
    await world.turn(world.leave('a'));
    await world.turn(create('c'));
    assert.deepEqual(answers, ['free', 'full: a', 'free']);
  });

  test('the slot of an instance that ended unheard is free for the next one within seconds', async () => {
    await world.turn(create('a'));
    world.leave('a');
    await world.turn(create('b', 1));
    world.now += READ_AGAIN_MS;
    await world.turn(create('c', 2), create('d', 3));
    assert.deepEqual(answers, ['free', 'full: a', 'free', 'full: c']);
    world.leave('c');
    world.now += READ_AGAIN_MS;
    await world.turn(world.want('e', { createdAt: 4 }));
    assert.deepEqual(world.told, ['e#1']);
  });

  test('an instance that gives its slot back and wants another one waits for it like all others', async () => {
    await world.turn(create('a'));
    await world.turn(world.want('b', { createdAt: 1 }));
    world.leave('a');
    const again = world.want('a');
    await world.turn(again);
    assert.deepEqual(world.told, ['a#2']);
    await world.turn(world.leave('a'));
    assert.deepEqual([world.told, [...world.slots]], [['a#2', 'b#1'], [['b', 1]]]);
  });
});

describe('an arrival while the key is full', () => {
  let world: KeyWorld;
  beforeEach(() => {
    world = new KeyWorld();
  });

  const arrive = (id: string, createdAt: number, whenFull: 'cancel_oldest' | 'cancel_newest') =>
    world.want(id, { createdAt, whenFull });

  test('is cancelled itself, also when the message is lost', async () => {
    await world.turn(arrive('a', 1, 'cancel_newest'), arrive('b', 2, 'cancel_newest'));
    assert.deepEqual([world.told, world.denied], [['a#1'], ['b: cancel_newest']]);
    await world.rescan();
    assert.deepEqual(world.denied, ['b: cancel_newest', 'b: cancel_newest']);
  });

  test('makes the oldest holder end, once, and takes its slot', async () => {
    await world.turn(arrive('a', 1, 'cancel_oldest'));
    await world.turn(arrive('b', 2, 'cancel_oldest'));
    await world.turn(arrive('c', 3, 'cancel_oldest'));
    assert.deepEqual(world.denied, ['a: cancel_oldest', 'b: cancel_oldest']);
    await world.turn(world.leave('b'));
    await world.restart();
    assert.deepEqual(world.denied.slice(2), ['a: cancel_oldest']);
    await world.turn(world.leave('a'));
    assert.deepEqual(world.told, ['a#1', 'c#1']);
  });
});

describe('the starts of a throttle', () => {
  test('begin with a burst, and go on one by one', () => {
    const terms = { limit: 4, perMs: 1_000, burst: 2 };
    assert.deepEqual(startsOf(terms, 6), [0, 0, 250, 500, 1_000, 1_000]);
  });

  test('a use that was not reported counts at its latest time, one that was not made not at all', () => {
    for (const [used, next] of [
      [undefined, 1_900],
      [50, 1_050],
      [null, 100],
    ] as const) {
      const terms = { limit: 1, perMs: 1_000, burst: 1 };
      const window = new StartWindow();
      window.grant(1, 0, 900, terms);
      if (used !== undefined) window.used(1, used);
      assert.equal(window.nextAt(100, terms), next);
    }
  });

  test('no window of any position has more than the limit, and each of them comes', (t) => {
    const any = fc.record({
      limit: fc.integer({ min: 1, max: 5 }),
      burst: fc.integer({ min: 1, max: 5 }),
      lateness: fc.array(fc.integer({ min: 0, max: 900 }), { minLength: 1, maxLength: 30 }),
    });
    check(t, 200, any, ({ limit, burst, lateness }) => {
      const terms = { limit, perMs: 1_000, burst: Math.min(burst, limit) };
      const used: number[] = [];
      const window = new StartWindow();
      let now = 0;
      for (const [number, late] of lateness.entries()) {
        now = window.nextAt(now, terms);
        window.grant(number, now, now + 1_000, terms);
        // Every third use is never reported.
        if (number % 3 < 2) window.used(number, now + late);
        used.push(now + late);
      }
      used.sort((a, b) => a - b);
      for (let i = limit; i < used.length; i++) {
        assert.ok(used[i]! - used[i - limit]! >= 1_000, `${used}`);
      }
    });
  });

  function startsOf(terms: Parameters<StartWindow['add']>[1], count: number): number[] {
    const window = new StartWindow();
    const starts: number[] = [];
    for (let number = 0; number < count; number++) {
      const at = window.nextAt(starts.at(-1) ?? 0, terms);
      window.grant(number, at, at + 500, terms);
      window.used(number, at);
      starts.push(at);
    }
    return starts;
  }
});

describe('keys', () => {
  const keyOf = (namespace: string, name: string, key?: string) => {
    const flow = compileFlow({ concurrency: { limit: 1, ...(key === undefined ? {} : { key }) } })!;
    const data = { x: 'b', o: { p: 1 }, none: null };
    const keys = flowKeysOf(flow, name, { id: 'i-1', namespace, data, config: {} });
    return keys.ok ? keys.value.concurrency_key : keys.message;
  };

  test('name the sequence, so that no two sequences have one in common', () => {
    assert.equal(keyOf('n', 's'), 'sequence:n/s');
    assert.equal(keyOf('n', 's', 'a {{ data.x }}'), 'sequence:n/s:a b');
    assert.equal(keyOf('n', 's', 'a {{ instance_id }}'), 'sequence:n/s:a i-1');
    const all = [keyOf('n/s', 'b'), keyOf('n', 's/b'), keyOf('n', 's', '/b'), keyOf('n', 's:b')];
    assert.equal(new Set(all).size, all.length);
  });

  test('a template that gives no key, in any of its parts, is named', () => {
    const wrong = [
      '{{ data.none }}',
      'cust:{{ data.none }}',
      '{{ nothing.at.all }}',
      '{{ data.o }}',
    ];
    for (const key of [...wrong, ' ', '{{ data.x }}'.padEnd(600, 'x')]) {
      assert.match(keyOf('n', 's', key) ?? '', /^concurrency\.key(?: must|: )/, key);
    }
  });
});
