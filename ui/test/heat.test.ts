/** Statistics of blocks: what is hot, and in which words. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { StepStatistics } from 'durable-workflow-engine-client';
import {
  hottestOf,
  isFailing,
  shareText,
  statisticLines,
  statisticsOf,
  statisticText,
} from '../src/flow/heat.ts';
import { outlineOf } from '../src/flow/outline.ts';
import { step } from './flow-samples.ts';

const OUTLINE = outlineOf({
  blocks: [step('first'), { type: 'parallel', id: 'both', branches: [[step('a')], [step('b')]] }],
});

function counted(block_id: string, more: Partial<StepStatistics> = {}): StepStatistics {
  const durations = { duration_p50_ms: 1_200, duration_p95_ms: 4_500, total_ms: 5_000 };
  return { block_id, runs: 10, failures: 0, ...durations, share: 0, here_now: 0, ...more };
}

const STEPS = [
  counted('first', { share: 0.2 }),
  counted('both', { share: 0.8 }),
  counted('a', { share: 0.8, failures: 1 }),
  counted('b', { runs: 0, here_now: 3 }),
  counted('gone', { share: 0.1 }),
];

test('the step that takes most of the time is the hottest, and a group is as hot as its steps', () => {
  const heats = [...statisticsOf(OUTLINE, STEPS)].map(([path, { heat }]) => [path, heat]);
  assert.deepEqual(heats, [
    ['first', 0.25],
    ['both', 1],
    ['both/a', 1],
    ['both/b', 0],
  ]);
});

test('steps are listed by their share of the time, without groups and what has not run', () => {
  const hottest = hottestOf(OUTLINE, [...STEPS, counted('idle', { runs: 0 })]);
  assert.deepEqual(
    hottest.map(({ block_id }) => block_id),
    ['a', 'first', 'gone', 'b'],
  );
});

test('a block is failing if more than one run in twenty fails', () => {
  assert.equal(isFailing(counted('a', { runs: 100, failures: 5 })), false);
  assert.equal(isFailing(counted('a', { runs: 100, failures: 6 })), true);
  assert.equal(isFailing(counted('a', { runs: 0 })), false);
});

test('statistics are told in a few words, and in full for screen readers', () => {
  const step = counted('a', { runs: 1_234, failures: 12, share: 0.384, here_now: 7 });
  assert.deepEqual(statisticLines(step), {
    runs: '1.2K runs',
    failures: '12 failed',
    durations: 'p50 1.2 s · p95 4.5 s',
    here: '7 here',
  });
  const full = '1,234 runs, 12 failed, p50 1.2 s · p95 4.5 s, 38 % of the time, 7 here now';
  assert.equal(statisticText(step), full);
  const idle = { duration_p50_ms: null, duration_p95_ms: null, runs: 0 };
  assert.equal(statisticText(counted('a', idle)), '0 runs');
  assert.deepEqual([0, 0.004, 0.126, 1].map(shareText), ['0 %', '<1 %', '13 %', '100 %']);
});
