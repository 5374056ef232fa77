/** Jobs that go on behind their callers: the removal of ended instances, and changes of many. */

import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { pino } from 'pino';
import { BulkJobs } from '../../actors/bulk/front/jobs.js';
import type { BulkJobStanding } from '../../actors/bulk/front/room.js';
import type { BulkProgress } from '../../actors/bulk/jobs.js';
import { wireJob } from '../../actors/bulk/loads.js';
import {
  type EndedPage,
  Retention,
  type RetentionDeps,
  SequenceRemoval,
} from '../../actors/instance/front/removal.js';
import type { BulkJob } from '../../schema/bulk-job.js';
import { EngineError, unavailable } from '../../src/base/errors.js';
import { firstIdAt } from '../../src/base/ids.js';
import { realClock } from '../../src/base/real-clock.js';
import { column } from '../helpers/columns.js';
import { HandClock } from '../helpers/hand-clock.js';

const NOW = Date.parse('2031-06-01T00:00:00.000Z');
const KEEP_MS = 30 * 86_400_000;
const PAGE_ROWS = 3;
const HOUR_MS = 3_600_000;

type Stored = { readonly id: string; readonly isEnded: boolean };

let clock: HandClock;
let table: Stored[];
/** Ids behind which a page was read, and the times before which those of it have to have ended. */
let asked: string[];
let befores: number[];
let removals: string[][];
let failures: number;
let busyMs: number;
/** Pauses that were asked for. */
let waits: number[];
const log = pino({ level: 'silent' });

beforeEach(() => {
  clock = new HandClock(NOW);
  table = [];
  asked = [];
  befores = [];
  removals = [];
  failures = 0;
  busyMs = 0;
  waits = [];
  const { setTimeout } = clock;
  clock.setTimeout = (fn, ms) => {
    waits.push(ms);
    return setTimeout.call(clock, fn, ms);
  };
});

const retentionWith = (more: Partial<RetentionDeps> = {}) =>
  new Retention({ clock, now: clock.now, keepMs: KEEP_MS, log, page, remove, ...more });

async function page(after: string, before: number): Promise<EndedPage> {
  befores.push(before);
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
  clock.ms += busyMs;
  if (failures === 0) return;
  failures -= 1;
  throw new Error('the database is away');
}

/** Lets time pass until it is so. */
async function until(isSo: () => boolean): Promise<void> {
  for (let turns = 0; turns < 50_000; turns += 1) {
    await new Promise(setImmediate);
    if (isSo()) return;
    clock.step(Number.POSITIVE_INFINITY);
  }
  assert.fail('it never is');
}

async function finish<T>(promise: Promise<T>): Promise<T> {
  let isOver = false;
  const over = promise.finally(() => {
    isOver = true;
  });
  over.catch(() => undefined);
  await until(() => isOver);
  return over;
}

/** An id of a creation so long ago. */
const idOf = (agoMs: number, number = 0) =>
  `${firstIdAt(NOW - agoMs).slice(0, -4)}${number.toString(16).padStart(4, '0')}`;

const old = (count: number): Stored[] =>
  Array.from({ length: count }, (_, i) => ({ id: idOf(2 * KEEP_MS, i), isEnded: i % 2 === 0 }));

test('walks the whole table by pages, and removes what has ended, also when the database was away', async () => {
  for (const away of [0, 4]) {
    table = old(10);
    failures = away;
    assert.equal(await finish(retentionWith().sweep()), 5);
    assert.deepEqual(column(table, 'isEnded'), [false, false, false, false, false]);
  }
  assert.equal(befores[0], NOW - KEEP_MS);
});

test('does not walk over what was created since: it cannot have ended before', async () => {
  const young = Array.from({ length: 30 }, (_, i) => {
    return { id: idOf(1_000 * (30 - i)), isEnded: false };
  });
  table = [...old(3), ...young, { id: 'f0000000-0000-8000-8000-000000000001', isEnded: true }];
  assert.equal(await finish(retentionWith().sweep()), 3);
  assert.equal(asked.length, 3, 'the old ones, the first of the young, and what lies behind them');
  assert.equal(asked.at(-1), firstIdAt(NOW));
});

test('removes fifty at once at most, and pauses for as long as each piece of work took', async () => {
  const ids = Array.from({ length: 120 }, (_, i) => idOf(2 * KEEP_MS, i));
  const wide = retentionWith({ page: async () => ({ ids, last: undefined }) });
  busyMs = 40;
  assert.equal(await finish(wide.sweep()), 120);
  assert.deepEqual(column(removals, 'length'), [50, 50, 20]);
  assert.equal(waits.filter((ms) => ms === 40).length, 3);
});

test('begins soon after the start, then every hour after its end', async () => {
  table = old(1);
  const retention = retentionWith();
  retention.start();
  await until(() => removals.length === 1 && waits.at(-1) === HOUR_MS);
  assert.ok(waits[0]! < 60_000);
  assert.deepEqual(table, []);
  retention.stop();
  assert.equal(clock.waiting, 0);
});

test('ends in the middle when it is stopped', async () => {
  table = old(10);
  busyMs = 1;
  const retention = retentionWith();
  const sweep = retention.sweep();
  await new Promise(setImmediate);
  retention.stop();
  await finish(sweep);
  assert.ok(column(table, 'isEnded').includes(true), 'it went on to the end');
});

/** Instances by deleted sequence. */
type Tombstones = Map<string, string[]>;

function removalOf(tombstones: Tombstones, busy: ReadonlySet<string> = new Set()): SequenceRemoval {
  return new SequenceRemoval({
    clock,
    log,
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
        const left = own.filter((id) => !gone.includes(id));
        tombstones.set(sequence, left);
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
  const many = Array.from({ length: 2_100 }, (_, i) => `a${i}`);
  const tombstones = new Map(Object.entries({ a: many, b: [], c: ['c0'] }));
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
  await until(() => tombstones.size === 0);
  removal.stop();
});

type Row = { -readonly [K in keyof BulkJobStanding]: BulkJobStanding[K] };

function jobRow(id: string, tenant_id: string, given: Partial<Row> = {}): Row {
  return {
    id,
    tenant_id,
    operation: 'batch_action',
    request: JSON.stringify({ filter: {}, action: 'signal', signal_type: 'hi', limit: 10_000 }),
    ...{ state: 'running', matched: 0, applied: 0, skipped: 0, failed: 0, error: null },
    repeats_effects: 0,
    ...{ place: null, traceparent: null, asked_by: null, created_at: '2025-01-01T00:00:00.000Z' },
    ...{ updated_at: '2025-01-01T00:00:00.000Z', ended_at: null, next_at: null, uncounted: '[]' },
    ...given,
  };
}

/** Rows of jobs and instances in memory; a place is the number of instances that were looked at. */
class World {
  readonly rows = new Map<string, Row>();
  readonly marks = new Map<string, Set<string>>();
  /** How often each instance was changed. */
  readonly changes = new Map<string, number>();
  /** In which order the jobs came up. */
  readonly turns: string[] = [];
  instances: string[] = [];
  /** What a call comes to instead, once. */
  trouble: ((job: string, ids: readonly string[]) => void) | undefined;
  progressLost = false;
  /** Of a paced job: what was counted, and how long it rests afterwards. */
  readonly rests: (readonly [applied: number, ms: number])[] = [];

  run(): BulkJobs {
    const place = (text: string | null) => Number(text ?? 0);
    return new BulkJobs({
      clock: realClock,
      log: pino({ level: 'silent' }),
      now: () => NOW,
      nextAt: async () => undefined,
      open: async () => {
        const open = [...this.rows.values()].filter(({ ended_at }) => ended_at === null);
        const firsts = new Map(open.reverse().map((row) => [row.tenant_id, row]));
        return [...firsts.values()];
      },
      standing: async (id) => {
        this.turns.push(id);
        const row = this.rows.get(id);
        return row && { ...row, uncounted: JSON.stringify([...(this.marks.get(id) ?? [])]) };
      },
      candidates: async (_, limit, from) => {
        const ids = this.instances.slice(place(from), place(from) + limit);
        const next = place(from) + ids.length;
        const found = ids.map((id) => ({
          id,
          created_at: '',
          state: 'waiting' as const,
          parent_instance_id: null,
        }));
        return { found, next: next < this.instances.length ? String(next) : undefined };
      },
      change: async (job, _tenant, ids) => {
        const { trouble } = this;
        this.trouble = undefined;
        trouble?.(job, ids);
        this.change(job, ids);
        return { applied: ids.length, skipped: 0, failed: 0 };
      },
      repeating: async () => 0,
      orphans: async () => new Set<string>(),
      progress: async (id, progress) => this.progress(id, progress),
    });
  }

  change(job: string, ids: readonly string[]): void {
    const marks = this.marks.get(job) ?? new Set();
    this.marks.set(job, marks);
    for (const id of ids) {
      assert.ok(!marks.has(id), `${id} is changed while it is marked`);
      marks.add(id);
      this.changes.set(id, (this.changes.get(id) ?? 0) + 1);
    }
  }

  progress(
    id: string,
    { counts, from, place, settled, end, error, restMs = 0 }: BulkProgress,
  ): BulkJob {
    const row = this.rows.get(id);
    assert.ok(row);
    if (row.place !== from || row.ended_at !== null) {
      throw new EngineError('ENG_CONFLICT', 'conflict: stands elsewhere');
    }
    row.matched += counts.matched;
    row.applied += counts.applied;
    row.skipped += counts.skipped;
    row.failed += counts.failed;
    row.place = place;
    row.error = error;
    if (end !== undefined) Object.assign(row, { state: end, ended_at: 'now' });
    for (const instance of settled) this.marks.get(id)?.delete(instance);
    if (restMs > 0) this.rests.push([counts.applied, restMs]);
    if (this.progressLost) {
      this.progressLost = false;
      throw unavailable('ENG_SHARD_RESTARTING', 'outcome unknown');
    }
    return wireJob(row);
  }
}

function counted(world: World) {
  const { state, matched, applied, skipped, failed } = world.rows.get('j')!;
  return { state, matched, applied, skipped, failed };
}

const done = (matched: number) => {
  return { state: 'completed', matched, applied: matched, skipped: 0, failed: 0 };
};

function worldOf(instances: number, ...jobs: Row[]): World {
  const world = new World();
  world.instances = Array.from({ length: instances }, (_, n) => `i${n}`);
  for (const row of jobs) world.rows.set(row.id, row);
  return world;
}

/** The first change does this to its instances, and then its answer is lost. */
function cutOff(world: World, change: (ids: readonly string[]) => readonly string[]): void {
  world.trouble = (job, ids) => {
    world.change(job, change(ids));
    throw unavailable('ENG_SHARD_RESTARTING', 'cut off');
  };
}

/** Each of so many instances was changed once. */
function assertOnce(world: World, instances: number, expected: object = done(instances)): void {
  assert.deepEqual(counted(world), expected);
  assert.equal(world.changes.size, instances);
  for (const [id, times] of world.changes) assert.equal(times, 1, id);
  for (const marks of world.marks.values()) assert.equal(marks.size, 0);
}

test('a job ends with what became of every match', async () => {
  const world = worldOf(1_201, jobRow('j', 'a'));
  await world.run().work();
  assertOnce(world, 1_201);
});

test('what was cut off goes on where it stood, and changes nothing twice', async () => {
  for (const reached of [0, 1, 50, 99, 100]) {
    const world = worldOf(1_201, jobRow('j', 'a'));
    cutOff(world, (ids) => ids.slice(0, reached));
    await world.run().work();
    assert.equal(world.rows.get('j')?.state, 'running');
    await world.run().work();
    assertOnce(world, 1_201);
  }
});

const cases: readonly (readonly [
  title: string,
  instances: number,
  prepare: (world: World) => void,
  changed: number,
  request?: object,
])[] = [
  [
    'what was changed before a cut is counted although the filter no longer finds it',
    1_201,
    (world) =>
      cutOff(world, (ids) => {
        const changed = ids.slice(20, 60);
        world.instances = world.instances.filter((id) => !changed.includes(id));
        return changed;
      }),
    1_201,
  ],
  [
    'what was changed before a cut is left alone although others push it behind the window',
    900,
    (world) =>
      cutOff(world, (ids) => {
        world.instances.unshift(...Array.from({ length: 400 }, (_, n) => `new${n}`));
        return ids.slice(-3);
      }),
    1_300,
  ],
  [
    'progress whose answer is lost is not counted again',
    1_201,
    (world) => Object.assign(world, { progressLost: true }),
    1_201,
  ],
  [
    'a limit counts what an earlier try has changed',
    2_000,
    (world) => cutOff(world, (ids) => ids.slice(0, 90)),
    150,
    { filter: {}, action: 'retry', limit: 150 },
  ],
];
for (const [title, instances, prepare, changed, request] of cases) {
  test(title, async () => {
    const given = request === undefined ? {} : { request: JSON.stringify(request) };
    const world = worldOf(instances, jobRow('j', 'a', given));
    prepare(world);
    await world.run().work();
    await world.run().work();
    assertOnce(world, changed);
  });
}

test('a job that is to end counts what it has changed, and changes no more', async () => {
  const world = worldOf(2_000, jobRow('j', 'a'));
  cutOff(world, (ids) => ids.slice(0, 20));
  await world.run().work();
  world.rows.get('j')!.state = 'cancelling';
  await world.run().work();
  assertOnce(world, 20, { ...done(20), state: 'cancelled' });
});

test('jobs of tenants go on in turns, and one that is stuck holds up none', async () => {
  const world = worldOf(1_000, jobRow('a1', 'a'), jobRow('a2', 'a'), jobRow('b1', 'b'));
  world.trouble = () => {
    throw unavailable('ENG_SHARD_RESTARTING', 'cut off');
  };
  world.change = () => undefined;
  await world.run().work();
  assert.deepEqual([...world.turns.slice(0, 4)].sort(), ['a1', 'a1', 'b1', 'b1']);
  for (const id of ['a1', 'a2', 'b1']) assert.equal(world.rows.get(id)?.state, 'completed', id);
});

test('a job that can never go on fails, and says why', async () => {
  const world = worldOf(1_000, jobRow('j', 'a'));
  world.trouble = () => {
    throw new EngineError('ENG_VALIDATION', 'invalid argument: no such thing');
  };
  await world.run().work();
  assert.equal(world.rows.get('j')?.state, 'failed');
  assert.equal(world.rows.get('j')?.error, 'invalid argument: no such thing');
});

test('a paced job changes a share of its rate and rests for it, also after a cut', async () => {
  const retry = { filter: {}, action: 'retry', per_minute: 300 };
  const world = worldOf(12, jobRow('j', 'a', { request: JSON.stringify(retry) }));
  cutOff(world, (ids) => ids.slice(0, 3));
  const jobs = world.run();
  await jobs.work();
  assert.deepEqual(world.rests, []);
  await jobs.work();
  // The three of the interrupted window first.
  assert.deepEqual(world.rests, [
    [0, 600],
    [5, 400],
    [5, 1_000],
  ]);
  assertOnce(world, 12);
});

test('a dry run counts by states and changes nothing', async () => {
  const request = JSON.stringify({ filter: {}, action: 'retry', dry_run: true, limit: 10_000 });
  const world = worldOf(700, jobRow('j', 'a', { request }));
  await world.run().work();
  assert.deepEqual(counted(world), { ...done(700), applied: 0, skipped: 700 });
  assert.equal(world.changes.size, 0);
});
