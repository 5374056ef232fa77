/** Durations, counts and names as people read them. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  countOf,
  elapsedMs,
  formatClock,
  formatDuration,
  formatZoned,
  wordsOf,
} from '../src/lib/format.ts';

const DURATIONS = [
  [0, '0 ms'],
  [12.4, '12 ms'],
  [999.4, '999 ms'],
  [1000, '1 s'],
  [3449, '3.4 s'],
  [59_999, '59 s'],
  [60_000, '1 m'],
  [320_000, '5 m 20 s'],
  [7_500_000, '2 h 5 m'],
  [273_600_000, '3 d 4 h'],
] as const;

for (const [ms, text] of DURATIONS) {
  test(`${ms} ms are read as ${text}`, () => {
    assert.equal(formatDuration(ms), text);
  });
}

test('what goes on takes until now, and no longer than until it is over by itself', () => {
  assert.equal(elapsedMs(0, 4_000, { until: 10_000 }), 4_000);
  assert.equal(elapsedMs(0, 12_000, { until: 10_000 }), 10_000);
  assert.equal(elapsedMs(0, 12_000, { to: 7_000 }), 7_000);
  assert.equal(elapsedMs(5_000, 4_000), 0);
});

test('a time of the day has its day where that is not today', () => {
  const now = new Date(2026, 4, 4, 10, 20, 30);
  assert.ok(!formatClock(now, now.getTime()).includes('2026'));
  assert.match(formatClock(new Date(2026, 4, 3, 10, 20, 30), now.getTime()), /2026/);
});

test('an instant of another zone is read as clocks there show it', () => {
  assert.equal(formatZoned('2026-03-29T03:00:00.000+02:00'), '2026-03-29 03:00:00 +02:00');
});

test('counts have the word for one and the word for many', () => {
  assert.equal(countOf(1, 'instance'), '1 instance');
  assert.equal(countOf(0, 'instance'), '0 instances');
  assert.equal(countOf(2, 'query', 'queries'), '2 queries');
});

test('names of the API are read as words', () => {
  assert.equal(wordsOf('queue_depth_max'), 'Queue depth max');
});
