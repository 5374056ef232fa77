/** Which timers come when, and whose instances are loaded before them. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DueTimers } from '../../actors/shard/due-timers.js';
import { LIMITS } from '../../src/limits.js';

const NOW = 1_000_000;
const LEAD = LIMITS.timerLeadMs;

function wake(instance: string, tenant = 'a') {
  return { kind: 'wake', instance, rank: 2, tenant } as const;
}

/** Everything that may be loaded ahead at that time. */
function ahead(timers: DueTimers, now: number, max: number): string[] {
  const instances: string[] = [];
  for (;;) {
    const instance = timers.nextAhead(now, max);
    if (instance === undefined) return instances;
    if (instance !== '') instances.push(instance);
  }
}

test('an instance is loaded ahead when its time is near, and those that are due first come first', () => {
  const timers = new DueTimers();
  timers.pushFar(NOW + 3, wake('third'));
  timers.pushFar(NOW + 1, wake('first'));
  timers.pushFar(NOW + LEAD + 50, wake('later'));
  timers.pushFar(NOW + 2, wake('second'));
  assert.deepEqual(ahead(timers, NOW, 10), ['first', 'second', 'third']);
  assert.deepEqual(ahead(timers, NOW + 49, 10), []);
  assert.deepEqual(ahead(timers, NOW + 50, 10), ['later']);
});

test('the shard sleeps until the first is due or to be loaded, and no longer than that', () => {
  const timers = new DueTimers();
  assert.equal(timers.nextAt(NOW), undefined);
  timers.pushFar(NOW + LEAD + 50, wake('later'));
  assert.equal(timers.nextAt(NOW), NOW + 50);
  timers.push(NOW + 7, { kind: 'expire', request: 1 });
  assert.equal(timers.nextAt(NOW), NOW + 7);
  assert.deepEqual(timers.popDue(NOW + 7), { kind: 'expire', request: 1 });
  assert.equal(timers.nextAt(NOW + 50), NOW + LEAD + 50, 'no place is left: until it is due');
  assert.deepEqual(ahead(timers, NOW + 50, 10), ['later']);
  assert.equal(timers.nextAt(NOW + 50), NOW + LEAD + 50);
});

test('what is due comes in its order, whether or not it was loaded ahead', () => {
  const timers = new DueTimers();
  for (const n of [4, 2, 3, 1]) timers.pushFar(NOW + n, wake(`${n}`));
  timers.push(NOW + 2.5, { kind: 'expire', request: 1 });
  assert.deepEqual(ahead(timers, NOW, 2), ['1', '2']);
  const due: unknown[] = [];
  for (let timer = timers.popDue(NOW + 9); timer; timer = timers.popDue(NOW + 9)) {
    due.push('instance' in timer ? timer.instance : timer.kind);
  }
  assert.deepEqual(due, ['1', '2', 'expire', '3', '4']);
});

test('one tenant has three quarters of the places at most, and gets others when its instances are due', () => {
  const timers = new DueTimers();
  for (let n = 0; n < 10; n += 1) timers.pushFar(NOW + 100 + n, wake(`a${n}`));
  for (let n = 0; n < 10; n += 1) timers.pushFar(NOW + 200 + n, wake(`b${n}`, 'b'));
  for (let n = 0; n < 10; n += 1) timers.pushFar(NOW + 300 + n, wake(`c${n}`));
  const first = ahead(timers, NOW, 8);
  assert.deepEqual(first, ['a0', 'a1', 'a2', 'a3', 'a4', 'a5', 'b0', 'b1']);
  for (let n = 0; n < 10; n += 1) timers.popDue(NOW + 109);
  const next = ahead(timers, NOW + 150, 8);
  assert.deepEqual(next, ['b2', 'b3', 'b4', 'b5', 'c0', 'c1']);
});

test('what is due already is not loaded ahead of anything', () => {
  const timers = new DueTimers();
  timers.pushFar(NOW - 1, wake('overdue'));
  assert.deepEqual(ahead(timers, NOW, 10), []);
  assert.deepEqual(timers.popDue(NOW), wake('overdue'));
});
