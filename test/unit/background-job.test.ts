/** Background work that fails is repeated soon, and is a warning only when it keeps failing. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as nextTick } from 'node:timers/promises';
import { BackgroundJob } from '../../src/base/background-job.js';
import { createLogger } from '../../src/base/log.js';
import { HandClock } from '../helpers/hand-clock.js';

const MINUTE_MS = 60_000;

function jobThat(work: (count: number) => void) {
  const clock = new HandClock(1_000);
  const levels: number[] = [];
  const write = (line: string) => void levels.push((JSON.parse(line) as { level: number }).level);
  const log = createLogger('debug', 'test', { write });
  const runs: number[] = [];
  const run = async () => {
    runs.push(clock.ms);
    work(runs.length);
  };
  const job = new BackgroundJob({ clock, log, name: 'work', everyMs: MINUTE_MS, run });
  const advance = async (ms: number) => {
    await nextTick();
    clock.jump(ms);
    await nextTick();
  };
  return { job, runs, levels, advance };
}

const failing = (): never => {
  throw new Error('the database is away');
};

test('a run that fails is repeated after a second, and after one that succeeds the job rests', async () => {
  const { job, runs, advance } = jobThat((count) => (count <= 2 ? failing() : undefined));
  job.wake();
  for (let i = 0; i < 5; i += 1) await advance(1_000);
  assert.deepEqual(runs, [1_000, 2_000, 3_000]);
  await advance(MINUTE_MS);
  assert.equal(runs.length, 4);
});

test('a wake does not wait for the second', async () => {
  const { job, runs, advance } = jobThat((count) => (count === 1 ? failing() : undefined));
  job.wake();
  await advance(10);
  job.wake();
  assert.deepEqual(runs, [1_000, 1_010]);
});

test('the twentieth failure in a row is a warning, once', async () => {
  const { job, levels, advance } = jobThat(failing);
  job.wake();
  for (let i = 0; i < 30; i += 1) await advance(1_000);
  const warned = levels.flatMap((level, at) => (level === 40 ? [at + 1] : []));
  assert.deepEqual([levels.length > 25, warned], [true, [20]]);
  job.stop();
});
