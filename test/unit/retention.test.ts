/** The removal of instances in virtual time: the walk over ended ones, and deleted sequences. */

import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { pino } from 'pino';
import type { Clock } from '../../src/core/clock.js';
import { firstIdAt } from '../../src/core/ids.js';
import { type EndedPage, Retention } from '../../src/retention.js';
import { SequenceRemoval } from '../../src/sequence-removal.js';
import { column } from '../helpers/rows.js';

const NOW = Date.parse('2031-06-01T00:00:00.000Z');
const KEEP_MS = 30 * 86_400_000;
const PAGE_ROWS = 3;

interface Stored {
  readonly id: string;
  readonly isEnded: boolean;
}

let now: number;
let timers: { readonly at: number; readonly fn: () => void }[];
let table: Stored[];
/** Ids behind which a page was read. */
let asked: string[];
let removals: string[][];
let failures: number;
let busyMs: number;
/** Pauses that were asked for. */
let waits: number[];
let retention: Retention;

beforeEach(() => {
  now = NOW;
  timers = [];
  table = [];
  asked = [];
  removals = [];
  failures = 0;
  busyMs = 0;
  waits = [];
  retention = new Retention({
    clock,
    now: () => now,
    keepMs: KEEP_MS,
    log: pino({ level: 'silent' }),
    page,
    remove,
  });
});

const clock: Clock = {
  now: () => now,
  monotonic: () => now - NOW,
  setTimeout(fn, ms) {
    waits.push(ms);
    const timer = { at: now + ms, fn };
    timers.push(timer);
    return timer;
  },
  clearTimeout(handle) {
    timers = timers.filter((timer) => timer !== handle);
  },
};

async function page(after: string, before: number): Promise<EndedPage> {
  assert.equal(before, NOW - KEEP_MS);
  asked.push(after);
  work();
  const rows = table.filter(({ id }) => id > after).slice(0, PAGE_ROWS);
  const ids = rows.filter(({ isEnded }) => isEnded).map(({ id }) => id);
  return { ids, last: rows.length === PAGE_ROWS ? rows.at(-1)?.id : undefined };
}

async function remove(ids: readonly string[]): Promise<number> {
  work();
  removals.push([...ids]);
  table = table.filter(({ id }) => !ids.includes(id));
  return ids.length;
}

/** Takes its time, or fails. */
function work(): void {
  now += busyMs;
  if (failures === 0) return;
  failures -= 1;
  throw new Error('the database is away');
}

/** Lets time pass until the promise is settled. */
async function finish<T>(promise: Promise<T>): Promise<T> {
  let isOver = false;
  const over = promise.finally(() => {
    isOver = true;
  });
  over.catch(() => undefined);
  for (;;) {
    await new Promise(setImmediate);
    if (isOver) return over;
    const next = timers.shift();
    if (next === undefined) continue;
    now = Math.max(now, next.at);
    next.fn();
  }
}

/** An id of a creation so long ago. */
function idOf(agoMs: number, number = 0): string {
  return `${firstIdAt(NOW - agoMs).slice(0, -4)}${number.toString(16).padStart(4, '0')}`;
}

function old(count: number): Stored[] {
  return Array.from({ length: count }, (_, i) => ({
    id: idOf(2 * KEEP_MS, i),
    isEnded: i % 2 === 0,
  }));
}

test('walks the whole table by pages, and removes what has ended', async () => {
  table = old(10);
  assert.equal(await finish(retention.sweep()), 5);
  assert.deepEqual(column(table, 'isEnded'), [false, false, false, false, false]);
});

test('does not walk over what was created since: it cannot have ended before', async () => {
  const young = Array.from({ length: 30 }, (_, i) => ({
    id: idOf(1_000 * (30 - i)),
    isEnded: false,
  }));
  const keyed = { id: 'f0000000-0000-8000-8000-000000000001', isEnded: true };
  table = [...old(3), ...young, keyed];
  assert.equal(await finish(retention.sweep()), 3);
  assert.equal(asked.length, 3, 'the old ones, the first of the young, and what lies behind them');
  assert.equal(asked.at(-1), firstIdAt(NOW));
});

test('removes fifty at once at most', async () => {
  const ids = Array.from({ length: 120 }, (_, i) => idOf(2 * KEEP_MS, i));
  const wide = new Retention({
    clock,
    now: () => now,
    keepMs: KEEP_MS,
    log: pino({ level: 'silent' }),
    page: async () => ({ ids, last: undefined }),
    remove,
  });
  assert.equal(await finish(wide.sweep()), 120);
  assert.deepEqual(column(removals, 'length'), [50, 50, 20]);
});

test('pauses for as long as each piece of work took', async () => {
  table = old(2);
  busyMs = 40;
  await finish(retention.sweep());
  assert.deepEqual(waits, [40, 40]);
});

test('tries again when the database is away, and goes on where it was', async () => {
  table = old(10);
  failures = 4;
  assert.equal(await finish(retention.sweep()), 5);
});

test('begins soon after the start, then every hour after its end', async () => {
  table = old(1);
  retention.start();
  assert.equal(timers.length, 1);
  const [first] = timers;
  assert.ok(first !== undefined && first.at - now < 60_000);
  first.fn();
  await finish(Promise.resolve());
  while (removals.length === 0 || timers.every(({ at }) => at - now < 3_000_000)) {
    await new Promise(setImmediate);
    const soon = timers.find(({ at }) => at - now < 3_000_000);
    if (soon === undefined) continue;
    timers = timers.filter((timer) => timer !== soon);
    soon.fn();
  }
  assert.deepEqual(table, []);
  retention.stop();
  assert.equal(timers.length, 0);
});

test('ends in the middle when it is stopped', async () => {
  table = old(10);
  busyMs = 1;
  const sweep = retention.sweep();
  await new Promise(setImmediate);
  retention.stop();
  await finish(sweep);
  assert.ok(
    table.some(({ isEnded }) => isEnded),
    'it went on to the end',
  );
});

/** Instances by deleted sequence. */
type Tombstones = Map<string, string[]>;

function removalOf(tombstones: Tombstones, busy: ReadonlySet<string> = new Set()): SequenceRemoval {
  return new SequenceRemoval({
    clock,
    log: pino({ level: 'silent' }),
    orphans: async (rows) =>
      [...tombstones]
        .flatMap(([sequence, ids]) =>
          (ids.length === 0 ? [null] : ids).map((instance) => ({ sequence, instance })),
        )
        .slice(0, rows),
    async remove(ids) {
      work();
      removals.push([...ids]);
      const gone = ids.filter((id) => !busy.has(id));
      for (const [sequence, own] of tombstones) {
        tombstones.set(
          sequence,
          own.filter((id) => !gone.includes(id)),
        );
      }
      return gone.length;
    },
    async forget(sequence) {
      assert.deepEqual(tombstones.get(sequence), []);
      tombstones.delete(sequence);
    },
  });
}

test('deleted sequences lose their instances in small steps, then their tombstones', async () => {
  const tombstones: Tombstones = new Map([
    ['a', Array.from({ length: 2_100 }, (_, i) => `a${i}`)],
    ['b', []],
    ['c', ['c0']],
  ]);
  busyMs = 40;
  failures = 1;
  assert.equal(await finish(removalOf(tombstones).clear()), 2_101);
  assert.deepEqual([...tombstones], []);
  assert.ok(removals.every(({ length }) => length <= 50));
  assert.equal(waits.filter((ms) => ms === 40).length, removals.length, 'a rest after each');
});

test('an instance that something is under way with is left for the next run', async () => {
  const tombstones: Tombstones = new Map([['a', ['busy', 'idle']]]);
  const busy = new Set(['busy']);
  const removal = removalOf(tombstones, busy);
  assert.equal(await finish(removal.clear()), 1);
  assert.deepEqual([...tombstones], [['a', ['busy']]]);
  busy.clear();
  removal.wake();
  await finish(Promise.resolve());
  while (tombstones.size > 0) {
    timers.shift()?.fn();
    await new Promise(setImmediate);
  }
  removal.stop();
});
