/** Instances are loaded before they are needed, and nothing is done with them before that. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { HandShard } from '../helpers/hand-shard.js';

const ID = '01950000-0000-7000-8000-000000000000';

test('an instance that a queue expects is read, however often it says so', async () => {
  const reads: (readonly string[])[] = [];
  const hand = new HandShard({
    instances: async (ids) => {
      reads.push(ids);
      return new Map();
    },
  });
  await hand.start();
  hand.hint({ kind: 'expect', instance: ID }, { kind: 'expect', instance: ID });
  await hand.run();
  assert.deepEqual(reads, [[ID]]);
  assert.deepEqual([hand.units, hand.errors], [[], []]);
});
