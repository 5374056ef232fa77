/** The order in which the instances of a shard that have something to do are served. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RunQueue } from '../../actors/shard/run-queue.js';
import { LIMITS } from '../../src/limits.js';

const CRITICAL = 0;
const NORMAL = 2;
const LOW = 3;

test('instances leave by priority, within one in the order in which they became due', () => {
  const queue = new RunQueue();
  queue.push({ instance: 'low', rank: LOW, tenant: 't' });
  queue.push({ instance: 'first', rank: NORMAL, tenant: 't' });
  queue.push({ instance: 'second', rank: NORMAL, tenant: 't' });
  assert.equal(queue.shift(), 'first');
  queue.push({ instance: 'critical', rank: CRITICAL, tenant: 't' });
  queue.push({ instance: 'third', rank: NORMAL, tenant: 't' });
  assert.equal(queue.size, 4);
  const seen = [queue.shift(), queue.shift(), queue.shift(), queue.shift(), queue.shift()];
  assert.deepEqual(seen, ['critical', 'second', 'third', 'low', undefined]);
  assert.equal(queue.size, 0);
});

test('a rank that no priority has is refused', () => {
  assert.throws(() => new RunQueue().push({ instance: 'x', rank: 4, tenant: 't' }), /no rank 4/);
});

test('an instance that waits already waits once, and again when it has left', () => {
  const queue = new RunQueue();
  const again = { instance: 'x', rank: NORMAL, tenant: 't' };
  queue.push(again);
  queue.push(again);
  assert.equal(queue.size, 1);
  assert.equal(queue.shift(), 'x');
  queue.push(again);
  assert.deepEqual([queue.shift(), queue.shift()], ['x', undefined]);
});

test('tenants take turns within one priority, and not across priorities', () => {
  const queue = new RunQueue();
  for (let number = 1; number <= 4; number += 1)
    queue.push({ instance: `a${number}`, rank: NORMAL, tenant: 'a' });
  queue.push({ instance: 'b1', rank: NORMAL, tenant: 'b' });
  queue.push({ instance: 'b2', rank: NORMAL, tenant: 'b' });
  queue.push({ instance: 'b3', rank: LOW, tenant: 'b' });
  const seen = Array.from({ length: 7 }, () => queue.shift());
  assert.deepEqual(seen, ['a1', 'b1', 'a2', 'b2', 'a3', 'a4', 'b3']);
});

test('of one tenant as many leave as came, in their order, while others come and go', () => {
  const queue = new RunQueue();
  const seen: (string | undefined)[] = [];
  for (let number = 0; number < 10; number += 1) {
    queue.push({ instance: `a${number}`, rank: NORMAL, tenant: 'a' });
    queue.push({ instance: `a${number}'`, rank: NORMAL, tenant: 'a' });
    if (number % 3 === 0) queue.push({ instance: `b${number}`, rank: NORMAL, tenant: 'b' });
    seen.push(queue.shift());
  }
  while (queue.size > 0) seen.push(queue.shift());
  assert.equal(seen.length, 24);
  const ofA = seen.filter((instance) => instance?.startsWith('a'));
  assert.deepEqual(ofA, [...ofA].sort());
});

test('it knows whether anybody else waits than the tenant that asked last, for a while', () => {
  const queue = new RunQueue();
  const unitsMax = (now: number) => {
    queue.look(now);
    return queue.unitsMax;
  };
  queue.asked('a', 0);
  assert.equal(unitsMax(0), LIMITS.dueUnitsMax);
  queue.push({ instance: 'a1', rank: NORMAL, tenant: 'a' });
  assert.equal(unitsMax(0), LIMITS.dueUnitsMax);
  queue.asked('b', 0);
  queue.asked('', 1);
  assert.equal(unitsMax(1), LIMITS.dueUnitsSharedMax);
  assert.equal(unitsMax(LIMITS.crowdMs), LIMITS.dueUnitsMax);
  queue.push({ instance: 'b1', rank: LOW, tenant: 'b' });
  queue.asked('a', LIMITS.crowdMs);
  assert.equal(unitsMax(LIMITS.crowdMs), LIMITS.dueUnitsSharedMax);
});
