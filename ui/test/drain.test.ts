/** What a queue was like, and when it will be empty. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { depthsOf, outlookOf, ratesOf, waitsOf } from '../src/pages/workers/drain.ts';

const interval = (arrived: number, taken: number, withdrawn = 0) => ({ arrived, taken, withdrawn });

test('the depth at earlier times follows from what came and left since, and is never below zero', () => {
  const intervals = [interval(5, 0), interval(10, 4, 1), interval(0, 6)];
  assert.deepEqual(depthsOf(intervals, 4), [5, 10, 4]);
  assert.deepEqual(depthsOf([interval(0, 0), interval(9, 0)], 4), [0, 4]);
});

test('the longest wait is that of claimed tasks, or of the oldest one that still waits', () => {
  const at = (minute: number) => `2026-01-01T00:0${minute}:00.000Z`;
  const intervals = [
    { at: at(0), longest_wait_ms: 90_000 },
    { at: at(1), longest_wait_ms: 0 },
    { at: at(2), longest_wait_ms: 0 },
  ];
  assert.deepEqual(waitsOf(intervals, 60_000, at(1)), [90_000, 60_000, 120_000]);
  assert.deepEqual(waitsOf(intervals, 60_000, null), [90_000, 0, 0]);
});

test('rates are those of the last five intervals, by minute', () => {
  const intervals = [interval(900, 900), ...Array.from({ length: 5 }, () => interval(10, 28, 2))];
  assert.deepEqual(ratesOf(intervals, 60), { arrived: 10, left: 30 });
  assert.deepEqual(ratesOf(intervals, 120), { arrived: 5, left: 15 });
  assert.deepEqual(ratesOf([], 60), { arrived: 0, left: 0 });
});

test('a queue drains, grows, is steady, stuck or empty', () => {
  assert.deepEqual(outlookOf(80, { arrived: 10, left: 30 }), { kind: 'drains', minutes: 4 });
  assert.deepEqual(outlookOf(80, { arrived: 30, left: 10 }), { kind: 'grows', perMinute: 20 });
  assert.deepEqual(outlookOf(80, { arrived: 100, left: 101 }), { kind: 'steady' });
  assert.deepEqual(outlookOf(80, { arrived: 30, left: 0 }), { kind: 'stuck' });
  assert.deepEqual(outlookOf(0, { arrived: 30, left: 30 }), { kind: 'empty' });
});
