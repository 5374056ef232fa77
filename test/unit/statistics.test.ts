/** Sums: reasons of failures, quantiles, queues and versions side by side, and what shards count over time. */

import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { ACTIVITY_KEPT_MS, Activity } from '../../actors/activity/activity.js';
import {
  ActivityLines,
  addTo,
  type Buckets,
  bucketOf,
  quantile,
} from '../../actors/activity/core/activity.js';
import { StepLines, shapeOf } from '../../actors/activity/core/steps.js';
import { foldReason } from '../../actors/instance/core/failure-reason.js';
import { queuesOf, releasePoints } from '../../actors/queue/core/statistics.js';
import { CommitLog } from '../../actors/runtime/commit-log.js';
import type { Block } from '../../schema/blocks.js';
import { createLogger } from '../../src/base/log.js';
import { isoTime } from '../../src/base/time.js';
import { compilePlan } from '../../src/core/plan.js';
import type { UnitEnvelope } from '../../src/db/units.js';
import { Meter } from '../../src/metrics/meter.js';
import { lines } from '../helpers/columns.js';
import { HandClock } from '../helpers/hand-clock.js';
import { rowsOf } from '../helpers/hand-shard.js';

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

test('a quantile is within a tenth of the true one, and nothing has none', () => {
  const buckets: Buckets = new Map();
  for (let ms = 1; ms <= 100_000; ms += 1) addTo(buckets, bucketOf(ms), 1);
  for (const part of [0.01, 0.5, 0.95, 1]) {
    const told = quantile(buckets, part) as number;
    assert.ok(Math.abs(told / (part * 100_000) - 1) < 0.1, `${part}: ${told}`);
  }
  assert.equal(quantile(new Map([[bucketOf(0), 3]]), 0.5), 0);
  assert.equal(quantile(new Map(), 0.5), null);
});

test('lines have every interval, and add up the minutes of all shards', () => {
  const since = Date.parse('2025-01-01T00:00:00.000Z');
  const minute = { created: 2, completed: 1, failed: 0, cancelled: 1, durations: '[[9,1]]' };
  const lines = new ActivityLines(since, since + 4 * 60_000, 120_000);
  for (const at of ['00:02:00.000', '00:03:59.999', '00:01:59.999']) {
    lines.add({ ...minute, at: `2025-01-01T${at}Z` });
  }
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

test('the share of a version, and its rates, are of what ended in the interval', () => {
  const counts = { at: 'now', ended: 6, failed: 0, cancelled: 3, p50: 1, p95: 2 };
  const points = releasePoints(
    [
      { ...counts, sequence_id: 'old' },
      { ...counts, sequence_id: 'new', ended: 2, failed: 2, cancelled: 0 },
    ],
    'new',
  );
  assert.deepEqual(lines(points, 'variant', 'cancelled', 'error_rate', 'cancel_rate', 'share'), [
    'baseline 3 0 0.5 0.75',
    'candidate 0 1 0 0.25',
  ]);
});

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const BEGAN = Date.parse('2025-01-01T00:00:00.000Z');

let clock: HandClock;
let commits: CommitLog;
let meter: Meter;
/** The times of the rows, oldest first. */
let stored: number[];

beforeEach(() => {
  clock = new HandClock(BEGAN);
  commits = new CommitLog();
  meter = new Meter();
  stored = [];
});

function activity(shard = 0): Activity {
  return new Activity({
    commits,
    release: () => {},
    schedule: (work) => work(),
    whenWriterKnown: (then) => then(),
    log: createLogger('silent', 'test'),
    clock,
    now: clock.now,
    loader: {
      oldestActivity: async () => stored[0],
      oldestSteps: async () => undefined,
      oldestQueueMinutes: async () => undefined,
    },
    meter,
    shard,
  });
}

/** What is written now, all of it committed. */
function written(): UnitEnvelope[] {
  const units = commits.take();
  commits.settle(units.map(({ seq }) => ({ seq, outcome: 'committed' })));
  return units;
}

const rows = () => rowsOf(written(), 'activity.set');

/** Lets time pass in steps, with what is decided in promises in between. */
async function pass(ms: number): Promise<void> {
  const until = clock.ms + ms;
  do {
    for (let i = 0; i < 10; i += 1) await Promise.resolve();
    for (const unit of written()) {
      for (const { before } of rowsOf([unit], 'activity.prune')) {
        const old = stored.filter((at) => at < Date.parse(before as string));
        stored = stored.slice(Math.min(old.length, 1_000));
      }
    }
    for (let i = 0; i < 10; i += 1) await Promise.resolve();
  } while (clock.step(until));
  clock.ms = until;
}

test('changes are written together after a while, and the row of the minute is replaced by later ones', () => {
  const counted = activity();
  counted.count('a', 'created');
  counted.count('a', 'completed', 3);
  assert.deepEqual(rows(), []);
  clock.pass(20_000);
  const first = rows();
  const seen = first.map(({ tenant_id, created, completed }) => [tenant_id, created, completed]);
  assert.deepEqual(seen, [['a', 1, 1]]);
  counted.count('a', 'created');
  clock.pass(20_000);
  const [second] = rows();
  assert.deepEqual([second?.at, second?.created], [first[0]?.at, 2]);
  clock.pass(20_000);
  counted.count('a', 'created');
  clock.pass(MINUTE_MS);
  const [next] = rows();
  assert.deepEqual([next?.at, next?.created], [isoTime(BEGAN + MINUTE_MS), 1]);
});

test('changes of tasks are written as one row for each queue, with the longest wait', () => {
  const counted = activity();
  const place = { kind: 'tasked', tenant: 'a', handler: 'h', queue: 'q', waitedMs: 0 } as const;
  counted.countTask({ ...place, change: 'arrived' });
  counted.countTask({ ...place, change: 'taken', waitedMs: 70 });
  counted.countTask({ ...place, change: 'taken', waitedMs: 30 });
  counted.countTask({ ...place, change: 'ended' });
  counted.countTask({ ...place, queue: '', change: 'withdrawn' });
  clock.pass(20_000);
  const seen = rowsOf(written(), 'queueMinute.set').map((row) => {
    const { handler_name, queue_name, arrived, taken, withdrawn, ended, longest_wait } = row;
    return [handler_name, queue_name, arrived, taken, withdrawn, ended, longest_wait];
  });
  assert.deepEqual(seen, [
    ['h', 'q', 1, 2, 0, 1, 70],
    ['h', '', 0, 0, 1, 0, 0],
  ]);
});

test('ends of blocks are written as one row for each version and five minutes', () => {
  const counted = activity();
  const ended = { id: 'a', isFailed: false, ms: 100 };
  counted.countBlocks('t', 'v1', [ended, { ...ended, isFailed: true, ms: 300 }]);
  counted.countBlocks('t', 'v2', [{ ...ended, id: 'b', ms: 0 }]);
  clock.pass(4 * MINUTE_MS);
  counted.countBlocks('t', 'v1', [ended]);
  counted.drain();
  const last = new Map(
    rowsOf(written(), 'stepActivity.set').map((row) => [row.sequence_id, row.blocks]),
  );
  const [fast, slow] = [bucketOf(100), bucketOf(300)];
  const a = [
    'a',
    3,
    1,
    500,
    [
      [fast, 2],
      [slow, 1],
    ],
  ];
  assert.deepEqual(Object.fromEntries(last), { v1: [a], v2: [['b', 1, 0, 0, [[0, 1]]]] });
  clock.pass(MINUTE_MS);
  counted.countBlocks('t', 'v1', [ended]);
  counted.drain();
  const [next] = rowsOf(written(), 'stepActivity.set');
  assert.deepEqual(next?.blocks, [['a', 1, 0, 100, [[fast, 1]]]]);
});

test('more blocks than are counted in five minutes are counted as left out', () => {
  const counted = activity();
  const blocks = Array.from({ length: 5_001 }, (_, at) => ({
    id: `${at}`,
    isFailed: false,
    ms: 1,
  }));
  for (const sequence of ['v1', 'v2', 'v3', 'v4']) counted.countBlocks('t', sequence, blocks);
  assert.equal(meter.counter('engine_steps_left_out_total'), 4);
  clock.pass(5 * MINUTE_MS);
  counted.countBlocks('t', 'v4', blocks);
  assert.equal(meter.counter('engine_steps_left_out_total'), 4, 'the next interval has room again');
});

test('the share of a block with blocks inside is that of the steps inside', () => {
  const step = (id: string): Block => ({ type: 'step', id, handler: 'noop' });
  const blocks: Block[] = [
    { type: 'parallel', id: 'both', branches: [[step('a')], [step('b')]] },
    step('c'),
  ];
  const compiled = compilePlan({ id: 'v1', blocks });
  assert.ok(compiled.ok);
  const stored = new StepLines();
  const row = [
    ['a', 2, 1, 30, [[1, 2]]],
    ['both', 1, 0, 50, [[1, 1]]],
    ['c', 1, 0, 60, [[1, 1]]],
    ['injected', 1, 0, 10, [[1, 1]]],
  ];
  stored.add(JSON.stringify(row));
  stored.add(JSON.stringify(row));
  const steps = stored.statistics(shapeOf(compiled.plan), [
    { node: 1, count: 3 },
    { node: 99, count: 1 },
  ]);
  assert.deepEqual(lines(steps, 'block_id', 'runs', 'failures', 'total_ms', 'share', 'here_now'), [
    'both 2 0 100 0.3 0',
    'a 4 2 60 0.3 3',
    'b 0 0 0 0 0',
    'c 2 0 120 0.6 0',
    'injected 2 0 20 0.1 0',
  ]);
  assert.equal(steps[2]?.duration_p50_ms, null);
});

test('old rows go while other changes are counted without a pause, and without any', async () => {
  for (const isBusy of [true, false]) {
    const counted = activity();
    stored = Array.from({ length: 2_500 }, (_, i) => clock.ms - ACTIVITY_KEPT_MS - HOUR_MS + i);
    const [pruning] = counted.parts;
    pruning?.start();
    for (let minute = 0; minute < 90; minute += 1) {
      if (isBusy) counted.count('a', 'created');
      await pass(MINUTE_MS);
      if (minute === 0) {
        assert.equal(stored.length, 0, 'at the start');
        // Falls due within the hour.
        stored = [clock.ms - ACTIVITY_KEPT_MS + HOUR_MS / 2];
      }
    }
    assert.deepEqual(stored, [], 'after an hour');
    pruning?.stop();
    counted.stop();
  }
});

test('changes of more tenants than are counted in a minute are counted as left out', () => {
  const counted = activity();
  for (let tenant = 0; tenant < 10_003; tenant += 1) counted.count(`t${tenant}`, 'created');
  counted.count('t0', 'completed', 1);
  clock.pass(MINUTE_MS);
  assert.equal(new Set(rows().map(({ tenant_id }) => tenant_id)).size, 10_000);
  assert.equal(meter.counter('engine_activity_left_out_total'), 3);
});
