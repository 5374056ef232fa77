/**
 * The actor of one concurrency key: who is next, and what it makes of words that
 * come twice, late or not at all.
 */

import assert from 'node:assert/strict';
import { beforeEach, describe, test } from 'node:test';
import fc from 'fast-check';
import { KeyWorld, type Word } from '../helpers/key-world.js';

let world: KeyWorld;
beforeEach(() => {
  world = new KeyWorld();
});

describe('who is next', () => {
  test('as many as the maximum are let in, by age and then by id, however they came', async () => {
    await world.turn(
      world.want('d', { createdAt: 2, max: 2 }),
      world.want('c', { createdAt: 1, max: 2 }),
      world.want('b', { createdAt: 2, max: 2 }),
      world.want('a', { createdAt: 3, max: 2 }),
    );
    assert.deepEqual(world.told, ['c#1', 'b#1']);
    await world.turn(world.leave('c'));
    await world.turn(world.leave('b'));
    assert.deepEqual(world.told, ['c#1', 'b#1', 'd#1', 'a#1']);
  });

  test('each is judged by its own maximum', async () => {
    const words = [1, 3, 3, 2, 4].map((max, at) => world.want(`a${at}`, { createdAt: at, max }));
    await world.turn(...words);
    assert.deepEqual(world.told, ['a0#1', 'a1#1', 'a2#1']);
    await world.turn(world.leave('a0'));
    assert.equal(world.told.length, 3);
    await world.turn(world.leave('a1'));
    assert.deepEqual(world.told.slice(3), ['a3#1', 'a4#1']);
  });

  test('nobody is overtaken by a younger one with a higher maximum', async () => {
    await world.turn(world.want('a', { createdAt: 1 }));
    await world.turn(world.want('b', { createdAt: 2 }), world.want('c', { createdAt: 3, max: 9 }));
    assert.deepEqual(world.told, ['a#1']);
    await world.turn(world.leave('a'));
    assert.deepEqual(world.told, ['a#1', 'b#1', 'c#1']);
  });

  test('one that comes back is in its old place', async () => {
    await world.turn(world.want('a', { createdAt: 1 }));
    await world.turn(world.want('b', { createdAt: 2 }), world.want('c', { createdAt: 3 }));
    await world.turn(world.leave('a'));
    await world.turn(world.want('a', { createdAt: 1 }));
    await world.turn(world.leave('b'));
    assert.deepEqual(world.told, ['a#1', 'b#1', 'a#2']);
  });

  test('a slot is passed on in the unit in which it is given back', async () => {
    await world.turn(world.want('a'), world.want('b', { createdAt: 1 }));
    await world.turn(world.leave('a'));
    assert.deepEqual(world.units, [['permit.set'], ['permit.clear', 'permit.set']]);
  });

  test('nothing is kept of a key that nobody wants', async () => {
    await world.turn(world.want('a'));
    assert.equal(world.isPassive, false);
    await world.turn(world.leave('a'));
    assert.equal(world.isPassive, true);
    assert.equal(world.slots.size, 0);
  });
});

describe('words that come twice, or late', () => {
  test('a wish that is heard again takes no second slot; its instance is told again', async () => {
    const word = world.want('a', { max: 2 });
    await world.turn(word, word);
    assert.deepEqual(world.told, ['a#1']);
    await world.turn(word);
    await world.turn(world.want('b', { max: 2 }));
    assert.deepEqual(world.told, ['a#1', 'a#1', 'b#1']);
    assert.deepEqual(
      [...world.slots],
      [
        ['a', 1],
        ['b', 1],
      ],
    );
  });

  test('an earlier leave takes nothing from a later wish', async () => {
    await world.turn(world.want('a'));
    const left = world.leave('a');
    const again = world.want('a');
    await world.turn(left, again, left);
    assert.deepEqual(world.told, ['a#1', 'a#2']);
    await world.turn(left);
    assert.equal(world.slots.get('a'), 2);
  });

  test('a wish that is heard before the leave that came first replaces the slot', async () => {
    await world.turn(world.want('a'));
    const left = world.leave('a');
    await world.turn(world.want('a'));
    await world.turn(left);
    assert.deepEqual(world.told, ['a#1', 'a#2']);
    assert.equal(world.slots.get('a'), 2);
  });

  test('one that waits is taken out by its leave, and its next wish counts', async () => {
    await world.turn(world.want('a'), world.want('b', { createdAt: 1 }));
    await world.turn(world.leave('b'));
    await world.turn(world.leave('a'));
    assert.deepEqual(world.told, ['a#1']);
    await world.turn(world.want('b', { createdAt: 1 }));
    assert.deepEqual(world.told, ['a#1', 'b#2']);
  });

  test('a leave of one that is unknown changes nothing', async () => {
    await world.turn(world.leave('a'));
    assert.deepEqual(world.units, []);
  });
});

describe('words that are lost', () => {
  test('a lost leave is found by the rescan, and the slot is passed on', async () => {
    await world.turn(world.want('a'), world.want('b', { createdAt: 1 }));
    world.leave('a');
    await world.turn();
    assert.deepEqual(world.told, ['a#1']);
    await world.rescan();
    assert.deepEqual(world.told, ['a#1', 'b#1']);
    assert.deepEqual([...world.slots.keys()], ['b']);
  });

  test('a lost wish is found by the rescan, in its place', async () => {
    await world.turn(world.want('a'), world.want('c', { createdAt: 2 }));
    world.want('b', { createdAt: 1 });
    await world.rescan();
    await world.turn(world.leave('a'));
    assert.deepEqual(world.told, ['a#1', 'b#1']);
  });

  test('a leave and a new wish, both lost, keep their place before the younger', async () => {
    await world.turn(world.want('a'), world.want('b', { createdAt: 1 }));
    world.leave('a');
    world.want('a');
    await world.restart();
    assert.deepEqual(world.told, ['a#1', 'a#2']);
    await world.turn(world.leave('a'));
    assert.deepEqual(world.told, ['a#1', 'a#2', 'b#1']);
  });

  test('an instance that was not told is told when the rows are read, one that runs is not', async () => {
    await world.turn(world.want('a', { max: 2 }), world.want('b', { max: 2 }));
    world.running.delete('b');
    await world.restart();
    assert.deepEqual(world.told, ['a#1', 'b#1', 'b#1']);
  });

  test('after a restart those who run keep their slots, and the others their order', async () => {
    const more = { max: 2 };
    const words = ['a', 'b', 'c', 'd'].map((id, createdAt) =>
      world.want(id, { createdAt, ...more }),
    );
    await world.turn(...words);
    await world.restart();
    assert.deepEqual(world.told, ['a#1', 'b#1']);
    await world.turn(world.leave('b'));
    await world.restart();
    await world.turn(world.leave('a'));
    assert.deepEqual(world.told, ['a#1', 'b#1', 'c#1', 'd#1']);
  });

  test('after a refused unit nobody is told, and the rows are read again', async () => {
    world.refuses = true;
    await world.turn(world.want('a'), world.want('b', { createdAt: 1 }));
    assert.equal(world.reads, 2);
    assert.deepEqual(world.told, ['a#1']);
    world.refuses = true;
    await world.turn(world.leave('a'));
    assert.deepEqual(world.told, ['a#1', 'b#1']);
    assert.deepEqual([...world.slots], [['b', 1]]);
  });
});

describe('more that wait than are kept in memory', () => {
  const COUNT = 2_500;
  const idOf = (at: number) => at.toString(16).padStart(6, '0');

  for (const [how, isAwake] of [
    ['when they were read', false],
    ['when they were heard of', true],
  ] as const) {
    test(`2,500 leave in order ${how}, those that come meanwhile in their places`, async () => {
      if (isAwake) await world.turn(world.want('0', { createdAt: -1 }));
      const words: Word[] = [];
      const expected: string[] = isAwake ? ['0#1'] : [];
      for (let at = 0; at < COUNT; at++) {
        words.push(world.want(idOf(at), { createdAt: at }));
        expected.push(`${idOf(at)}#1`);
      }
      await world.turn(...words.reverse());
      for (let served = 0; world.running.size > 0; served++) {
        if (served === 10) {
          await world.turn(
            world.want('aaaa', { createdAt: COUNT }),
            world.want('bbbb', { createdAt: 1_700 }),
            world.want('cccc', { createdAt: 20 }),
          );
          expected.push('aaaa#1');
          expected.splice(expected.indexOf(`${idOf(1_700)}#1`) + 1, 0, 'bbbb#1');
          expected.splice(expected.indexOf(`${idOf(20)}#1`) + 1, 0, 'cccc#1');
        }
        for (const id of [...world.running]) await world.turn(world.leave(id));
      }
      assert.deepEqual(world.told, expected);
      assert.ok(world.reads < 10, `${world.reads} reads`);
    });
  }
});

test('whatever is lost or doubled, never more than the maximum run, and all get their turn', async () => {
  const ids = ['a', 'b', 'c', 'd', 'e'];
  const deeds = fc.array(
    fc.record({
      deed: fc.constantFrom('want', 'leave', 'rescan', 'restart', 'refuse'),
      id: fc.constantFrom(...ids),
      said: fc.constantFrom(0, 1, 1, 2),
    }),
    { maxLength: 40 },
  );
  await fc.assert(
    fc.asyncProperty(deeds, fc.integer({ min: 1, max: 3 }), async (list, max) => {
      const world = new KeyWorld();
      for (const { deed, id, said } of list) {
        if (deed === 'rescan') await world.rescan();
        else if (deed === 'restart') await world.restart();
        else if (deed === 'refuse') world.refuses = true;
        else if (world.wishes.has(id) === (deed === 'leave')) {
          const createdAt = ids.indexOf(id);
          const word = deed === 'want' ? world.want(id, { createdAt, max }) : world.leave(id);
          await world.turn(...Array<Word>(said).fill(word));
        }
        assert.ok(world.running.size <= max, `${world.running.size} run`);
        assert.ok(world.slots.size <= max, `${world.slots.size} have a slot`);
      }
      for (const id of ids) if (!world.wishes.has(id)) world.want(id, { max });
      const served = new Set<string>();
      while (served.size < ids.length) {
        await world.rescan();
        assert.ok(world.running.size > 0 && world.running.size <= max);
        for (const id of [...world.running]) {
          served.add(id);
          await world.turn(world.leave(id));
        }
      }
    }),
    { numRuns: 100 },
  );
});
