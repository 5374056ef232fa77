/** Sums as they are told: reasons of failures, quantiles, lines over time, queues and versions side by side. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ActivityLines } from '../../src/core/activity.js';
import { addTo, type Buckets, bucketOf, quantile } from '../../src/core/durations.js';
import { foldReason } from '../../src/core/failure-reason.js';
import { queuesOf, releasePoints } from '../../src/core/statistics.js';

const REASONS: readonly (readonly [message: string, reason: string])[] = [
  ['', ''],
  ['no money', 'no money'],
  ['order 123 refused', 'order # refused'],
  ['order A-17_b refused', 'order # refused'],
  ['0190b5a4-7d1c-7000-8000-000000000001 is gone', '# is gone'],
  ['took 1,204.5 ms', 'took #,#.# ms'],
  ['at 2025-01-31T12:00:00.123Z', 'at #:#:#.#'],
  ['"Ann" knows `x` but not \'y\'', '"…" knows "…" but not "…"'],
  ['she said "12 apples', 'she said "# apples'],
  ['naïve42 ٣', 'naï# ٣'],
  ['a "b\nc" d', 'a "…" d'],
  ['it\'s "x" 7', 'it\'s "…" #'],
  ['e-mail', 'e-mail'],
  ['a"1"b2', 'a"…"#'],
];

for (const [message, reason] of REASONS) {
  test(`the reason of ${JSON.stringify(message)} is ${JSON.stringify(reason)}`, () => {
    assert.equal(foldReason(message), reason);
    assert.equal(foldReason(reason), reason, 'folding again changes nothing');
  });
}

test('a quantile is within a tenth of the true one', () => {
  const buckets: Buckets = new Map();
  for (let ms = 1; ms <= 100_000; ms += 1) addTo(buckets, bucketOf(ms), 1);
  for (const part of [0.01, 0.5, 0.95, 1]) {
    const told = quantile(buckets, part) as number;
    assert.ok(Math.abs(told / (part * 100_000) - 1) < 0.1, `${part}: ${told}`);
  }
});

test('what took no time is 0 ms, and nothing has no quantile', () => {
  assert.equal(quantile(new Map([[bucketOf(0), 3]]), 0.5), 0);
  assert.equal(quantile(new Map(), 0.5), null);
});

test('lines have every interval, and add up the minutes of all shards', () => {
  const since = Date.parse('2025-01-01T00:00:00.000Z');
  const minute = { created: 2, completed: 1, failed: 0, cancelled: 1, durations: '[[9,1]]' };
  const minutes = ['00:02:00.000', '00:03:59.999', '00:01:59.999'].map((at) => ({
    ...minute,
    at: `2025-01-01T${at}Z`,
  }));
  const lines = new ActivityLines(since, since + 4 * 60_000, 120_000);
  for (const it of minutes) lines.add(it);
  const none = { duration_p50_ms: null, duration_p95_ms: null };
  const zero = { created: 0, completed: 0, failed: 0, cancelled: 0, ...none };
  const took = { duration_p50_ms: 4, duration_p95_ms: 4 };
  assert.deepEqual(lines.intervals, [
    { at: '2025-01-01T00:00:00.000Z', created: 2, completed: 1, failed: 0, cancelled: 1, ...took },
    { at: '2025-01-01T00:02:00.000Z', created: 4, completed: 2, failed: 0, cancelled: 2, ...took },
    { at: '2025-01-01T00:04:00.000Z', ...zero },
  ]);
});

test('a worker that polls without a queue serves every queue of its handler', () => {
  const open = { waiting: 1, claimed: 0, oldest_waiting_since: 'then' };
  const nothing = { waiting: 0, claimed: 0, oldest_waiting_since: null };
  const queues = queuesOf(
    [
      { handler: 'charge', queue: 'slow', ...open },
      { handler: 'mail', queue: null, ...open },
    ],
    [
      { handler: 'charge', queue: '', workers: ['a', 'b'] },
      { handler: 'charge', queue: 'slow', workers: ['b', 'c'] },
      { handler: 'charge', queue: 'fast', workers: ['b'] },
    ],
    [
      { handler: 'charge', queue: '', polls: 2 },
      { handler: 'charge', queue: 'slow', polls: 1 },
      { handler: 'charge', queue: '', polls: 1 },
      { handler: 'scan', queue: 'new', polls: 1 },
    ],
  );
  assert.deepEqual(queues, [
    { handler: 'charge', queue: null, ...nothing, workers: 2, open_polls: 3 },
    { handler: 'charge', queue: 'fast', ...nothing, workers: 2, open_polls: 3 },
    { handler: 'charge', queue: 'slow', ...open, workers: 3, open_polls: 4 },
    { handler: 'mail', queue: null, ...open, workers: 0, open_polls: 0 },
    { handler: 'scan', queue: 'new', ...nothing, workers: 0, open_polls: 1 },
  ]);
});

test('the share of a version is that of what ended in the interval', () => {
  const counts = { at: 'now', ended: 3, failed: 0, cancelled: 0, p50: 1, p95: 2 };
  const points = releasePoints(
    [
      { ...counts, sequence_id: 'old' },
      { ...counts, sequence_id: 'new', ended: 1, failed: 1 },
    ],
    'new',
  );
  const shown = points.map((it) => [it.variant, it.error_rate, it.share]);
  assert.deepEqual(shown, [
    ['baseline', 0, 0.75],
    ['candidate', 1, 0.25],
  ]);
});

test('rates are of what ended of the version in the interval', () => {
  const counts = { at: 'now', ended: 8, failed: 2, cancelled: 4, p50: 1, p95: 2 };
  const points = releasePoints([{ ...counts, sequence_id: 'new' }], 'new');
  const shown = points.map((it) => [it.cancelled, it.error_rate, it.cancel_rate]);
  assert.deepEqual(shown, [[4, 0.25, 0.5]]);
});
