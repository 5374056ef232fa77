/** Durations, counts and names as people read them. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { countOf, formatDuration, formatPercent, wordsOf } from '../src/lib/format.ts';

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

test('shares say more of what is small', () => {
  assert.deepEqual([0, 0.004, 0.5, 1].map(formatPercent), ['0 %', '0.4 %', '50 %', '100 %']);
});

test('counts have the word for one and the word for many', () => {
  assert.equal(countOf(1, 'instance'), '1 instance');
  assert.equal(countOf(0, 'instance'), '0 instances');
  assert.equal(countOf(2, 'query', 'queries'), '2 queries');
});

test('names of the API are read as words', () => {
  assert.equal(wordsOf('queue_depth_max'), 'Queue depth max');
});
