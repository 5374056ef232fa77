/** Engine time, and how it follows the clock of the database. */

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';
import { Worker } from 'node:worker_threads';
import { EngineClock, realClock } from '../../src/clock.js';
import { offsetFrom } from '../../src/core/clock.js';

const HOUR_MS = 3_600_000;

/** A machine whose clock reads 0 at monotonic time 0. */
function machine() {
  let monotonic = 0;
  const clock = new EngineClock({ ...realClock, now: () => 0, monotonic: () => monotonic });
  const pass = (ms: number) => {
    monotonic += ms;
    return clock.now();
  };
  return { clock, pass };
}

test('the first reading is taken as made in the middle of its round trip', () => {
  assert.equal(offsetFrom({ unixMs: 5_000, sentAt: 100, receivedAt: 140 }), 4_880);
});

test('an offset that is known moves only as far as a reading proves it wrong', () => {
  const cases: readonly [known: number, sentAt: number, receivedAt: number, offset: number][] = [
    [4_880, 100, 140, 4_880],
    [4_880, 0, 2_000, 4_880],
    [4_000, 100, 140, 4_860],
    [6_000, 100, 140, 4_900],
  ];
  for (const [known, sentAt, receivedAt, offset] of cases) {
    assert.equal(offsetFrom({ unixMs: 5_000, sentAt, receivedAt }, known), offset);
  }
});

test('time goes ahead at once, and tells of a jump that matters', () => {
  const { clock, pass } = machine();
  assert.equal(clock.setOffset(900), 0);
  assert.equal(pass(1), 901);
  assert.equal(clock.setOffset(HOUR_MS + 900), HOUR_MS);
  assert.equal(pass(1), HOUR_MS + 902);
});

test('time stands still while it is a little ahead, however often it is set back', () => {
  const { clock, pass } = machine();
  clock.setOffset(10_000);
  assert.equal(pass(100), 10_100);
  assert.equal(clock.setOffset(9_400), 0);
  assert.equal(pass(100), 10_100);
  assert.equal(pass(600), 10_200);
  assert.equal(clock.setOffset(9_300), 0);
  assert.equal(pass(50), 10_200);
  assert.equal(pass(100), 10_250);
});

test('time goes back when it is far ahead, also by many small steps', () => {
  const { clock, pass } = machine();
  clock.setOffset(HOUR_MS);
  assert.equal(pass(100), HOUR_MS + 100);
  assert.equal(clock.setOffset(0), -HOUR_MS);
  assert.equal(pass(100), 200);
  clock.setOffset(-600);
  assert.equal(pass(0), 200);
  assert.equal(clock.setOffset(-1_200), -1_200);
  assert.equal(pass(0), -1_000);
});

test('every thread has the same monotonic clock', async () => {
  const module = new URL('../../src/clock.js', import.meta.url).href;
  const source = `import(${JSON.stringify(module)}).then(({ realClock }) =>
    require('node:worker_threads').parentPort.postMessage(realClock.monotonic()))`;
  const before = realClock.monotonic();
  const worker = new Worker(source, { eval: true });
  const [inside] = await once(worker, 'message');
  const after = realClock.monotonic();
  assert.ok(before < inside && inside < after, `${before} < ${inside} < ${after}`);
});
