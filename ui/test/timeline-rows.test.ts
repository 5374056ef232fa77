/** Rows and bars of a timeline, and its axis. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { outlineOf } from '../src/flow/outline.ts';
import type { RunFacts } from '../src/flow/run-states.ts';
import { marksOf, panned, ticksOf, zoomed } from '../src/flow/time-axis.ts';
import { barText } from '../src/flow/timeline-bars.tsx';
import {
  attemptsOf,
  type Bar,
  pagesText,
  type Row,
  type RowChoice,
  rowsOf,
  timelineOf,
} from '../src/flow/timeline-rows.ts';
import { at, attempt, done, OUTLINE, open, RUN, step, T0, treeOf, wait } from './flow-samples.ts';

const NOW = T0 + 60_000;
const NOTHING: RowChoice = { order: 'number', open: new Map(), pages: new Map() };

const rowsIn = (run: RunFacts, choice = NOTHING) => rowsOf(timelineOf(OUTLINE, run, NOW), choice);

function barsOf(rows: readonly Row[], key: string): readonly Bar[] {
  const row = rows.find((each) => each.key === key);
  assert.ok(row !== undefined && row.kind !== 'pages', `no row ${key}`);
  return row.bars;
}

/** Such as `queued 0–400, running 400–1900`. */
const parts = ({ segments }: Bar) =>
  segments.map(({ kind, from, to }) => `${kind} ${from - T0}–${to - T0}`).join(', ');

test('each attempt is a bar with the times that it was queued, ran and backed off', () => {
  const bars = barsOf(rowsIn(RUN), 'charge');
  assert.deepEqual(bars.map(parts), [
    'queued 0–400, running 400–1900, backoff 1900–3000',
    'queued 3000–3200, running 3200–4800, backoff 4800–7000',
    'queued 7000–8100, running 8100–9000',
  ]);
  assert.deepEqual(
    bars.map(({ state }) => state),
    ['retrying', 'retrying', 'completed'],
  );
});

test('a attempt that nobody has claimed is queued until now, a claimed one runs until now', () => {
  const rows = rowsIn(RUN);
  assert.deepEqual(barsOf(rows, 'prepare/label').map(parts), ['queued 14000–60000']);
  assert.deepEqual(barsOf(rows, 'prepare/pack').map(parts), [
    'queued 14000–15000, running 15000–60000',
  ]);
});

for (const [state, drawn] of Object.entries({
  pending: 'waiting',
  claimed: 'running',
  completed: 'completed',
  failed: 'failed',
  timed_out: 'failed',
  cancelled: 'cancelled',
})) {
  test(`a attempt that is ${state} has a bar that is ${drawn}`, () => {
    const tried = attempt('charge', { state: state as 'pending' });
    const [bar] = barsOf(rowsIn({ tree: [], attempts: [tried] }), 'charge');
    assert.equal(bar?.state, drawn);
  });
}

test('a attempt that only has its end began when the one before it ended, or when its step did', () => {
  const own = { queued_at: null, started_at: null, source: 'process' as const };
  const attempts = [
    attempt('ask_provider', { ...own, state: 'failed', ended_at: at(9_100) }),
    attempt('ask_provider', { ...own, attempt: 1, ended_at: at(9_240) }),
  ];
  const rows = rowsIn({ tree: treeOf(OUTLINE, { ask_provider: done(9_000, 9_240) }), attempts });
  assert.deepEqual(barsOf(rows, 'ask_provider').map(parts), [
    'running 9000–9100',
    'running 9100–9240',
  ]);
});

test('what a step waits for inside the engine is a bar until now', () => {
  const rows = rowsIn(RUN);
  assert.deepEqual(barsOf(rows, 'approve').map(parts), ['waiting 12000–60000']);
  const tree = treeOf(OUTLINE, { charge: open(0, 'waiting') });
  const waits = [wait('charge', 'retry', { since: at(3_000), attempt: 1 })];
  const attempts = [attempt('charge', { state: 'failed' })];
  assert.deepEqual(barsOf(rowsIn({ tree, waits, attempts }), 'charge').map(parts), [
    'queued 0–1000, running 1000–3000',
    'backoff 3000–60000',
  ]);
});

test('a bar that goes on ends by itself, also while the browser waits for the news of it', () => {
  const tree = treeOf(OUTLINE, { cool_down: open(0, 'waiting') });
  const waits = [wait('cool_down', 'sleep', { since: at(0), until: at(10_000) })];
  const [bar] = barsOf(rowsIn({ tree, waits, attempts: [] }), 'cool_down');
  assert.equal(bar && parts(bar), 'waiting 0–10000');
  const [mark] = marksOf([bar!], { from: T0, to: NOW }, NOW, 10);
  assert.deepEqual(barText(mark!, NOW), ['sleeps', 'waited 10 s']);
});

test('a step without a attempt of its own has the time between its begin and its end', () => {
  const tree = treeOf(OUTLINE, { cool_down: done(0, 500), charge: done(500, 600) });
  const rows = rowsIn({ tree, attempts: [] });
  assert.deepEqual(barsOf(rows, 'cool_down').map(parts), ['waiting 0–500']);
  assert.deepEqual(barsOf(rows, 'charge').map(parts), ['running 500–600']);
});

test('blocks that nothing is known of have no row', () => {
  const keys = rowsIn({ tree: treeOf(OUTLINE), attempts: [attempt('pick')] }).map(({ key }) => key);
  assert.deepEqual(keys, ['prepare', 'prepare/pick']);
});

test('a group spans what is in it, and closes over it', () => {
  const run = { tree: [], attempts: [attempt('pick'), attempt('label', { ended_at: at(9_000) })] };
  const rows = rowsIn(run);
  assert.deepEqual(barsOf(rows, 'prepare').map(parts), ['span 0–9000']);
  const closed = rowsIn(run, { ...NOTHING, open: new Map([['prepare', false]]) });
  assert.deepEqual(
    closed.map(({ key }) => key),
    ['prepare'],
  );
});

test('a run that is read in part says so of its iterations', () => {
  const attempts = Array.from({ length: 60 }, (_, item) =>
    attempt('ship', { iteration: `${7_000 + item}.0` }),
  );
  const page = rowsIn({ tree: [], attempts }).find(({ kind }) => kind === 'pages');
  assert.ok(page?.kind === 'pages' && page.isCut);
  assert.equal(pagesText(page), 'iterations 7,001–7,050, of 60 that are read');
  assert.equal(pagesText({ ...page, first: 1, last: 50, isCut: false }), '1–50 of 60 iterations');
});

test('items are rows of their own, fifty at a time, and open to the blocks in them', () => {
  const rows = rowsIn(RUN);
  const first = rows.findIndex(({ key }) => key === 'items');
  const pages = rows[first + 1]!;
  assert.ok(pages.kind === 'pages');
  assert.deepEqual(
    [pages.page, pages.pages, pages.total, pages.first, pages.last],
    [0, 3, 121, 1, 50],
  );
  const iterations = rows.filter(
    ({ kind, key }) => kind === 'iteration' && /^items\[\d+\]$/.test(key),
  );
  assert.equal(iterations.length, 50);
  const choice: RowChoice = {
    ...NOTHING,
    open: new Map([['items[100]', true]]),
    pages: new Map([['items', 2]]),
  };
  const keys = rowsIn(RUN, choice).map(({ key }) => key);
  assert.ok(keys.includes('items[100]/items/retry_item'));
  assert.ok(keys.includes('items[100]/items/retry_item[0]'));
  assert.ok(keys.includes('items[100]/items/retry_item[0]/items/retry_item/ship'));
  assert.ok(!keys.includes('items[99]'));
});

test('iterations are ordered by number, the failed or the slowest first', () => {
  const ship = (item: number, ms: number, state: 'completed' | 'failed' = 'completed') =>
    attempt('ship', { iteration: `${item}.0`, state, ended_at: at(1_000 + ms) });
  const attempts = Array.from({ length: 60 }, (_, item) => ship(item, 10));
  attempts[7] = ship(7, 900);
  attempts[41] = ship(41, 20, 'failed');
  const run = { tree: [], attempts };
  const itemsBy = (order: RowChoice['order']) => {
    const rows = rowsIn(run, { ...NOTHING, order });
    const items = rows.filter(
      ({ kind, key }) => kind === 'iteration' && /^items\[\d+\]$/.test(key),
    );
    return items.slice(0, 2).map(({ key }) => key);
  };
  assert.deepEqual(itemsBy('number'), ['items[0]', 'items[1]']);
  assert.deepEqual(itemsBy('failed'), ['items[41]', 'items[0]']);
  assert.deepEqual(itemsBy('slowest'), ['items[7]', 'items[41]']);
  const page = rowsIn(run, { ...NOTHING, order: 'slowest' }).find(({ kind }) => kind === 'pages');
  assert.ok(page?.kind === 'pages');
  assert.equal(pagesText(page), 'slowest first, 1–50 of 60 iterations');
});

test('an item in which a step failed for good says so, and one that was tried again does not', () => {
  const failed = attempt('check', { iteration: '0', state: 'failed' });
  const again = attempt('check', { iteration: '0', attempt: 1, queued_at: at(5_000) });
  const stateOf = (attempts: RunFacts['attempts'] & object) =>
    barsOf(rowsIn({ tree: [], attempts }), 'poll[0]')[0]?.state;
  assert.equal(stateOf([failed]), 'failed');
  assert.equal(stateOf([failed, again]), 'completed');
});

test('an item whose failure was caught has not failed, and one whose catch list failed has', () => {
  const guarded = { type: 'try_catch', id: 'guarded' } as const;
  const caught = { ...guarded, try_block: [step('call')], catch_block: [step('note')] };
  const loop = { type: 'loop' as const, id: 'poll', condition: 'more', body: [caught] };
  const attempts = [
    attempt('call', { iteration: '0', state: 'failed' }),
    attempt('note', { iteration: '0' }),
    attempt('call', { iteration: '1', state: 'failed' }),
    attempt('note', { iteration: '1', state: 'failed' }),
  ];
  const index = timelineOf(outlineOf({ blocks: [loop] }), { tree: [], attempts }, NOW);
  const keys = ['poll', 'poll[0]', 'poll[0]/poll/guarded', 'poll[1]', 'poll[1]/poll/guarded'];
  const states = keys.map((key) => barsOf(rowsOf(index, NOTHING), key)[0]?.state);
  assert.deepEqual(states, ['failed', 'completed', 'completed', 'failed', 'failed']);
  const failedFirst = rowsOf(index, { ...NOTHING, order: 'failed' });
  assert.equal(failedFirst.find(({ kind }) => kind === 'iteration')?.key, 'poll[1]');
});

test('items within a saga are told apart, since its runs are counted, too', () => {
  const body = [step('book')];
  const rooms = { type: 'for_each' as const, id: 'rooms', collection: 'rooms', body };
  const saga = { type: 'saga' as const, id: 'trip', steps: [{ id: 'hotel', action: [rooms] }] };
  const outline = outlineOf({ blocks: [saga] });
  const attempts = [0, 1].map((item) => attempt('book', { iteration: `0.${item}` }));
  const waits = [wait('book', 'event', { path: 'trip[0]/rooms[2]/book' })];
  const rows = rowsOf(timelineOf(outline, { tree: [], attempts, waits }, NOW), NOTHING);
  const items = rows.flatMap((row) => (row.kind === 'iteration' ? [row.iteration] : []));
  assert.deepEqual(items, [0, 1, 2]);
});

test('a hundred thousand iterations are folded into as few rows as two hundred', () => {
  const loop = { type: 'loop' as const, id: 'poll', condition: 'more', body: [step('check')] };
  const outline = outlineOf({ blocks: [loop] });
  const rowsFor = (count: number) => {
    const attempts = Array.from({ length: count }, (_, i) =>
      attempt('check', { iteration: `${i}` }),
    );
    return rowsOf(timelineOf(outline, { tree: [], attempts }, NOW), NOTHING).length;
  };
  assert.equal(rowsFor(100_000), rowsFor(200));
});

const tableOf = (run: RunFacts) =>
  attemptsOf(timelineOf(OUTLINE, run, NOW)).map((one) => {
    const { path, iteration, bar, tookMs, ...times } = one;
    const since = [times.queuedAt, times.startedAt, times.endedAt].map((ms) => ms && ms - T0);
    return [path, iteration, bar.attempt, ...since, tookMs];
  });

test('the table has all attempts, oldest first, also of blocks that the definition has no more', () => {
  const attempts = [
    attempt('pick', { queued_at: at(9_000) }),
    attempt('gone', { queued_at: at(500) }),
    attempt('ship', { iteration: '2.0', queued_at: at(100) }),
    attempt('charge'),
  ];
  assert.deepEqual(
    tableOf({ tree: [], attempts }).map(([path, iteration]) => [path, iteration]),
    [
      ['charge', ''],
      ['items/retry_item/ship', '2.0'],
      ['gone', ''],
      ['prepare/pick', ''],
    ],
  );
});

test('the table tells when steps of the engine itself began and ended, as far as that is known', () => {
  const own = { queued_at: null, started_at: null, source: 'process' as const };
  const tree = treeOf(OUTLINE, {
    cool_down: done(0, 500),
    approve: open(700, 'waiting'),
    ask_provider: done(800, 1_000),
  });
  const waits = [wait('approve', 'approval', { since: at(700) })];
  const attempts = [
    attempt('ask_provider', { ...own, ended_at: at(1_000) }),
    attempt('check', { ...own, iteration: '3', ended_at: at(1_200) }),
  ];
  assert.deepEqual(tableOf({ tree, waits, attempts }), [
    ['cool_down', '', undefined, undefined, 0, 500, 500],
    ['approve', '', undefined, undefined, 700, undefined, undefined],
    ['ask_provider', '', 0, undefined, 800, 1_000, 200],
    ['poll/check', '3', 0, undefined, undefined, 1_200, undefined],
  ]);
});

test('a bar tells its attempt, its parts, its worker and its error', () => {
  const [first] = barsOf(rowsIn(RUN), 'charge');
  assert.deepEqual(barText({ bars: [first!], shown: first! }, NOW), [
    'attempt 1',
    'failed, retried',
    'queued 400 ms',
    'ran 1.5 s',
    'retry delay 1.1 s',
    'worker worker-7',
    'card network timed out',
  ]);
});

test('more bars than a row can show are put together, and the gravest is what they show', () => {
  const run = {
    tree: [],
    attempts: Array.from({ length: 1_000 }, (_, i) =>
      attempt('charge', {
        ...{ attempt: i, queued_at: null, started_at: at(i * 10), ended_at: at(i * 10 + 5) },
        ...(i === 999 ? { state: 'failed' as const } : {}),
      }),
    ),
  };
  const bars = barsOf(rowsIn(run), 'charge');
  const marks = marksOf(bars, { from: T0, to: T0 + 10_000 }, NOW, 100);
  assert.ok(marks.length <= 101);
  assert.equal(
    marks.reduce((sum, mark) => sum + mark.bars.length, 0),
    1_000,
  );
  assert.equal(marks.at(-1)!.shown.state, 'failed');
  assert.deepEqual(barText(marks.at(-1)!, NOW), ['10 attempts', 'worst: failed']);
  assert.ok(marksOf(bars, { from: T0, to: T0 + 100 }, NOW, 100).length <= 11);
});

test('the axis has round times, about as many as there is room for', () => {
  for (const length of [40, 900, 60_000, 3_600_000, 86_400_000, 40 * 86_400_000]) {
    const { step: apart, ticks } = ticksOf(T0, T0 + length, 8);
    assert.ok(ticks.length >= 3 && ticks.length <= 9, `${length}: ${ticks.length}`);
    assert.ok(ticks.every((tick) => tick % apart === 0));
  }
});

test('zooming stays within the whole, and keeps what it zooms at in its place', () => {
  const whole = { from: 0, to: 1_000 };
  assert.deepEqual(zoomed(whole, whole, 0.5, 500), { from: 250, to: 750 });
  assert.deepEqual(zoomed({ from: 0, to: 500 }, whole, 2, 0), whole);
  assert.deepEqual(zoomed(whole, whole, 4, 500), whole);
  assert.deepEqual(panned({ from: 0, to: 500 }, whole, 0.5), { from: 250, to: 750 });
  assert.deepEqual(panned({ from: 0, to: 500 }, whole, -1), { from: 0, to: 500 });
  assert.deepEqual(panned({ from: 400, to: 900 }, whole, 1), { from: 500, to: 1_000 });
});
