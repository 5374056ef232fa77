/** The order in which the instances of a shard that have something to do are served. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RunQueue } from '../../actors/shard/run-queue.js';

const CRITICAL = 0;
const NORMAL = 2;
const LOW = 3;

test('instances leave by priority, within one in the order in which they became due', () => {
  const queue = new RunQueue();
  queue.push('low', LOW);
  queue.push('first', NORMAL);
  queue.push('second', NORMAL);
  assert.equal(queue.shift(), 'first');
  queue.push('critical', CRITICAL);
  queue.push('third', NORMAL);
  assert.equal(queue.size, 4);
  const seen = [queue.shift(), queue.shift(), queue.shift(), queue.shift(), queue.shift()];
  assert.deepEqual(seen, ['critical', 'second', 'third', 'low', undefined]);
  assert.equal(queue.size, 0);
});

test('a rank that no priority has is refused', () => {
  assert.throws(() => new RunQueue().push('x', 4), /no rank 4/);
});
