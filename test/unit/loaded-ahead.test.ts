/** Instances are loaded before they are needed, and nothing is done with them before that. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { HandShard } from '../helpers/hand-shard.js';

const ID = '01950000-0000-7000-8000-000000000000';

/** A shard that notes when it reads instances, of which it finds none. */
function setUp(dueInMs: number) {
  const reads: { readonly at: number; readonly ids: readonly string[] }[] = [];
  const hand: HandShard = new HandShard({
    dueTimers: async (_from, _to, take) => take(ID, startedAt + dueInMs, 2),
    instances: async (ids) => {
      reads.push({ at: hand.now - startedAt, ids });
      return new Map();
    },
  });
  const startedAt = hand.now;
  return { hand, reads };
}

test('an instance whose timer is due soon is read before the timer is due', async () => {
  const { hand, reads } = setUp(10_000);
  await hand.start();
  for (let ms = 0; ms < 9_900; ms += 100) await hand.pass(100);
  assert.equal(reads.length, 1);
  assert.deepEqual(reads[0]?.ids, [ID]);
  assert.ok(reads[0].at > 8_000, `not long before, but after ${reads[0].at} ms`);
  assert.deepEqual([hand.units, hand.errors], [[], []], 'and nothing is done with it');
});

test('an instance that a queue expects is read, however often it says so', async () => {
  const { hand, reads } = setUp(1_000_000);
  await hand.start();
  hand.hint({ kind: 'expect', instance: ID }, { kind: 'expect', instance: ID });
  await hand.run();
  assert.deepEqual(
    reads.map(({ ids }) => ids),
    [[ID]],
  );
  assert.deepEqual([hand.units, hand.errors], [[], []]);
});
