/** Changes of many instances that go on behind their answer: what a job does, and after it was cut off. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { pino } from 'pino';
import type { BulkProgress } from '../../actors/bulk/jobs.js';
import { BulkJobs } from '../../src/bulk-jobs.js';
import { realClock } from '../../src/clock.js';
import type { BulkJobStanding } from '../../src/db/reads/bulk-job-reads.js';
import { EngineError, unavailable } from '../../src/errors.js';

type Row = { -readonly [K in keyof BulkJobStanding]: BulkJobStanding[K] };

function jobRow(id: string, tenant_id: string, given: Partial<Row> = {}): Row {
  return {
    id,
    tenant_id,
    operation: 'batch_action',
    request: JSON.stringify({ filter: {}, action: 'signal', signal_type: 'hi', limit: 10_000 }),
    state: 'running',
    matched: 0,
    applied: 0,
    skipped: 0,
    failed: 0,
    error: null,
    place: null,
    traceparent: null,
    created_at: '2025-01-01T00:00:00.000Z',
    updated_at: '2025-01-01T00:00:00.000Z',
    ended_at: null,
    uncounted: '[]',
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

  run(): BulkJobs {
    const place = (text: string | null) => Number(text ?? 0);
    return new BulkJobs({
      clock: realClock,
      log: pino({ level: 'silent' }),
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
        const found = ids.map((id) => ({ id, created_at: '', state: 'waiting' as const }));
        return { found, next: next < this.instances.length ? String(next) : undefined };
      },
      change: async (job, _tenant, ids) => {
        const { trouble } = this;
        this.trouble = undefined;
        trouble?.(job, ids);
        this.change(job, ids);
        return { applied: ids.length, skipped: 0, failed: 0 };
      },
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

  progress(id: string, { counts, from, place, settled, end, error }: BulkProgress): void {
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
    if (this.progressLost) {
      this.progressLost = false;
      throw unavailable('ENG_SHARD_RESTARTING', 'outcome unknown');
    }
  }
}

const counted = ({ state, matched, applied, skipped, failed }: Row) => ({
  state,
  matched,
  applied,
  skipped,
  failed,
});
const done = (matched: number) => ({
  state: 'completed',
  matched,
  applied: matched,
  skipped: 0,
  failed: 0,
});

function worldOf(instances: number, ...jobs: Row[]): World {
  const world = new World();
  world.instances = Array.from({ length: instances }, (_, n) => `i${n}`);
  for (const row of jobs) world.rows.set(row.id, row);
  return world;
}

function assertOnce(world: World, instances: number): void {
  assert.equal(world.changes.size, instances);
  for (const [id, times] of world.changes) assert.equal(times, 1, id);
  for (const marks of world.marks.values()) assert.equal(marks.size, 0);
}

test('a job ends with what became of every match', async () => {
  const world = worldOf(1_201, jobRow('j', 'a'));
  await world.run().work();
  assert.deepEqual(counted(world.rows.get('j')!), done(1_201));
  assertOnce(world, 1_201);
});

test('what was cut off goes on where it stood, and changes nothing twice', async () => {
  for (const reached of [0, 1, 50, 99, 100]) {
    const world = worldOf(1_201, jobRow('j', 'a'));
    world.trouble = (job, ids) => {
      world.change(job, ids.slice(0, reached));
      throw unavailable('ENG_SHARD_RESTARTING', 'cut off');
    };
    await world.run().work();
    assert.equal(world.rows.get('j')?.state, 'running');
    await world.run().work();
    assert.deepEqual(counted(world.rows.get('j')!), done(1_201), String(reached));
    assertOnce(world, 1_201);
  }
});

test('what was changed before a cut is counted although the filter no longer finds it', async () => {
  const world = worldOf(1_201, jobRow('j', 'a'));
  world.trouble = (job, ids) => {
    world.change(job, ids.slice(20, 60));
    world.instances = world.instances.filter((id) => !ids.slice(20, 60).includes(id));
    throw unavailable('ENG_SHARD_RESTARTING', 'cut off');
  };
  await world.run().work();
  await world.run().work();
  assert.deepEqual(counted(world.rows.get('j')!), done(1_201));
  assertOnce(world, 1_201);
});

test('what was changed before a cut is left alone although other matches push it behind the window', async () => {
  const world = worldOf(900, jobRow('j', 'a'));
  world.trouble = (job, ids) => {
    world.change(job, ids.slice(-3));
    world.instances.unshift(...Array.from({ length: 400 }, (_, n) => `new${n}`));
    throw unavailable('ENG_SHARD_RESTARTING', 'cut off');
  };
  await world.run().work();
  await world.run().work();
  assert.deepEqual(counted(world.rows.get('j')!), done(1_300));
  assertOnce(world, 1_300);
});

test('progress whose answer is lost is not counted again', async () => {
  const world = worldOf(1_201, jobRow('j', 'a'));
  world.progressLost = true;
  await world.run().work();
  await world.run().work();
  assert.deepEqual(counted(world.rows.get('j')!), done(1_201));
  assertOnce(world, 1_201);
});

test('a limit counts what an earlier try has changed', async () => {
  const request = JSON.stringify({ filter: {}, action: 'retry', limit: 150 });
  const world = worldOf(2_000, jobRow('j', 'a', { request }));
  world.trouble = (job, ids) => {
    world.change(job, ids.slice(0, 90));
    throw unavailable('ENG_SHARD_RESTARTING', 'cut off');
  };
  await world.run().work();
  await world.run().work();
  assert.deepEqual(counted(world.rows.get('j')!), done(150));
  assertOnce(world, 150);
});

test('a job that is to end counts what it has changed, and changes no more', async () => {
  const world = worldOf(2_000, jobRow('j', 'a'));
  world.trouble = (job, ids) => {
    world.change(job, ids.slice(0, 20));
    throw unavailable('ENG_SHARD_RESTARTING', 'cut off');
  };
  await world.run().work();
  world.rows.get('j')!.state = 'cancelling';
  await world.run().work();
  assert.deepEqual(counted(world.rows.get('j')!), { ...done(20), state: 'cancelled' });
  assertOnce(world, 20);
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

test('a dry run counts by states and changes nothing', async () => {
  const request = JSON.stringify({ filter: {}, action: 'retry', dry_run: true, limit: 10_000 });
  const world = worldOf(700, jobRow('j', 'a', { request }));
  await world.run().work();
  assert.deepEqual(counted(world.rows.get('j')!), { ...done(700), applied: 0, skipped: 700 });
  assert.equal(world.changes.size, 0);
});
