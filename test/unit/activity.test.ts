/** What one shard counts for lines over time: when it writes, what it leaves out, and when old rows go. */

import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { ACTIVITY_KEPT_MS, Activity } from '../../actors/activity/activity.js';
import { CommitLog } from '../../actors/runtime/commit-log.js';
import type { UnitEnvelope } from '../../actors/runtime/protocol.js';
import { isoTime } from '../../src/core/time.js';
import { createLogger } from '../../src/log.js';
import { Meter } from '../../src/metrics/meter.js';
import { HandClock } from '../helpers/hand-clock.js';
import { rowsOf } from '../helpers/hand-shard.js';

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
    log: createLogger('silent', 'test'),
    clock,
    now: clock.now,
    loader: { oldestActivity: async () => stored[0] },
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
  assert.deepEqual(
    first.map(({ tenant_id, created, completed }) => [tenant_id, created, completed]),
    [['a', 1, 1]],
  );
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

test('what was not written is lost with the process, and nothing is counted twice', () => {
  const dying = activity();
  dying.count('a', 'created');
  clock.pass(20_000);
  const [before] = rows();
  dying.count('a', 'created');
  clock.pass(1_000);
  assert.deepEqual(rows(), []);
  dying.stop();
  const next = activity();
  next.count('a', 'created');
  clock.pass(20_000);
  const written = rows().filter(({ at }) => at !== before?.at);
  assert.deepEqual(
    [before, ...written].map((row) => row?.created),
    [1, 1],
  );
});

test('old rows go while other changes are counted without a pause, and without any', async () => {
  for (const isBusy of [true, false]) {
    const counted = activity();
    stored = Array.from({ length: 2_500 }, (_, i) => clock.ms - ACTIVITY_KEPT_MS - HOUR_MS + i);
    counted.start();
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
    counted.stop();
  }
});

test('only the first shard removes old rows', async () => {
  stored = [0];
  const counted = activity(1);
  counted.start();
  await pass(2 * HOUR_MS);
  assert.equal(stored.length, 1);
});

test('changes of more tenants than are counted in a minute are counted as left out', () => {
  const counted = activity();
  for (let tenant = 0; tenant < 10_003; tenant += 1) counted.count(`t${tenant}`, 'created');
  counted.count('t0', 'completed', 1);
  clock.pass(MINUTE_MS);
  assert.equal(new Set(rows().map(({ tenant_id }) => tenant_id)).size, 10_000);
  assert.equal(meter.counter('engine_activity_left_out_total'), 3);
});
