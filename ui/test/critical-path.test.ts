/** What a run waited for, and the rows that stay while it is scrolled. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { criticalPath } from '../src/flow/critical-path.ts';
import { outlineOf } from '../src/flow/outline.ts';
import { headsAt, rowsAround } from '../src/flow/timeline-heads.ts';
import { attemptsOf, rowsOf, timelineOf } from '../src/flow/timeline-rows.ts';
import { at, attempt, step, T0 } from './flow-samples.ts';

const OUTLINE = outlineOf({
  blocks: [
    step('first'),
    { type: 'parallel', id: 'both', branches: [[step('fast')], [step('slow')]] },
    { type: 'for_each', id: 'items', collection: 'data.items', body: [step('ship')] },
  ],
});
const NOW = T0 + 60_000;

const ran = (id: string, from: number, to: number, iteration = '') =>
  attempt(id, { queued_at: at(from), started_at: at(from), ended_at: at(to), iteration });

function pathOf(attempts: ReturnType<typeof ran>[]) {
  const index = timelineOf(OUTLINE, { tree: [], attempts }, NOW);
  return { index, ...criticalPath(OUTLINE, attemptsOf(index), NOW) };
}

test('the critical path leads back from the last end, over what ended just before each start', () => {
  const { attempts, ms, wholeMs, rows, index } = pathOf([
    ran('first', 0, 1_000),
    ran('fast', 1_000, 2_000),
    ran('slow', 1_000, 5_000),
    ran('ship', 5_100, 6_000, '0'),
    ran('ship', 5_100, 7_100, '1'),
  ]);
  const found = attempts.map(({ path, iteration }) => `${path} ${iteration}`.trim());
  assert.deepEqual(found, ['first', 'both/slow', 'items/ship 1']);
  assert.deepEqual([ms, wholeMs], [7_000, 7_100]);
  const shown = rowsOf(index, { order: 'number', open: new Map(), pages: new Map() });
  const critical = shown.filter(({ key }) => rows.has(key)).map(({ key }) => key);
  const loop = ['items', 'items[1]', 'items[1]/items/ship'];
  assert.deepEqual(critical, ['first', 'both', 'both/slow', ...loop]);
});

test('what is open ends now, and the delay before a retry is no work', () => {
  const failed = { error: { message: 'no', retryable: true }, state: 'failed' } as const;
  const { attempts, ms, wholeMs } = pathOf([
    { ...ran('first', 0, 1_000), ...failed },
    { ...ran('first', 4_000, 5_000), attempt: 1 },
    { ...ran('slow', 5_000, 5_000), ended_at: null, state: 'claimed' },
  ]);
  assert.deepEqual(
    attempts.map(({ bar }) => bar.attempt),
    [0, 1, 0],
  );
  assert.deepEqual([ms, wholeMs], [57_000, 60_000]);
  assert.deepEqual(pathOf([]).attempts, []);
});

test('the rows around the first visible one stay at the top, each at its place', () => {
  //           a  b  c  d  e  f
  const around = rowsAround([0, 1, 2, 2, 1, 0]);
  assert.deepEqual(around, [-1, 0, 1, 1, 0, -1]);
  assert.deepEqual(headsAt(around, 0), []);
  assert.deepEqual(headsAt(around, 1), [0, 1]);
  assert.deepEqual(headsAt(around, 4), []);
  const deep = rowsAround([0, 1, 2, 3, 4, 5, 6, 7]);
  assert.deepEqual(headsAt(deep, 5), [0, 1, 2]);
});
