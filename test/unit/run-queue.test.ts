/** The order in which the instances of a shard that have something to do are served. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RunQueue } from '../../actors/shard/run-queue.js';

const CRITICAL = 0;
const NORMAL = 2;
const LOW = 3;

test('instances leave by priority, within one in the order in which they became due', () => {
  const queue = new RunQueue();
  queue.push('low', LOW, 't');
  queue.push('first', NORMAL, 't');
  queue.push('second', NORMAL, 't');
  assert.equal(queue.shift(), 'first');
  queue.push('critical', CRITICAL, 't');
  queue.push('third', NORMAL, 't');
  assert.equal(queue.size, 4);
  const seen = [queue.shift(), queue.shift(), queue.shift(), queue.shift(), queue.shift()];
  assert.deepEqual(seen, ['critical', 'second', 'third', 'low', undefined]);
  assert.equal(queue.size, 0);
});

test('a rank that no priority has is refused', () => {
  assert.throws(() => new RunQueue().push('x', 4, 't'), /no rank 4/);
});

test('tenants take turns within one priority, and not across priorities', () => {
  const queue = new RunQueue();
  for (let number = 1; number <= 4; number += 1) queue.push(`a${number}`, NORMAL, 'a');
  queue.push('b1', NORMAL, 'b');
  queue.push('b2', NORMAL, 'b');
  queue.push('b3', LOW, 'b');
  const seen = Array.from({ length: 7 }, () => queue.shift());
  assert.deepEqual(seen, ['a1', 'b1', 'a2', 'b2', 'a3', 'a4', 'b3']);
});

test('of one tenant as many leave as came, in their order, while others come and go', () => {
  const queue = new RunQueue();
  const seen: (string | undefined)[] = [];
  for (let number = 0; number < 10; number += 1) {
    queue.push(`a${number}`, NORMAL, 'a');
    queue.push(`a${number}'`, NORMAL, 'a');
    if (number % 3 === 0) queue.push(`b${number}`, NORMAL, 'b');
    seen.push(queue.shift());
  }
  while (queue.size > 0) seen.push(queue.shift());
  assert.equal(seen.length, 24);
  const ofA = seen.filter((instance) => instance?.startsWith('a'));
  assert.deepEqual(ofA, [...ofA].sort());
});
