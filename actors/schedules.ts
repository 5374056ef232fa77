/**
 * The cron schedules of one shard. Those that are due within a horizon are in a heap, and the shard
 * sleeps until the first of them; a scan reads ahead, and finds again what no event has served.
 */

import type { CreateSchedule, CronSchedule, UpdateSchedule } from '../schema/cron.js';
import { LIMITS } from '../src/config.js';
import type { TimerHandle } from '../src/core/clock.js';
import { routeOf, shardOf } from '../src/core/ids.js';
import type { JsonObject } from '../src/core/json.js';
import { isoTime, type UnixMs } from '../src/core/time.js';
import { DATABASE_AWAY, type EngineError, notFound } from '../src/errors.js';
import { BatchedReads } from './batched-reads.js';
import { CronActor, type Found, nextFireOf, readExpression } from './cron.js';
import type { InstanceMessage } from './instance-messages.js';
import type { DueSchedule, ScheduleRow } from './loader.js';
import type { OwnRequests } from './own-requests.js';
import type { Plans } from './plans.js';
import type { Routing } from './routing.js';
import type { RowActorDeps } from './row-actor.js';
import { TimerHeap } from './timer-heap.js';

export interface SchedulesDeps extends RowActorDeps {
  readonly shard: number;
  readonly plans: Plans;
  readonly routing: Routing;
  readonly newId: () => string;
  readonly ownRequests: OwnRequests;
  /** Upper bound between two scans. */
  readonly cronTickMs: number;
  /** Hands a message to an instance of this shard. */
  readonly tellRun: (run: string, message: InstanceMessage) => void;
}

/** Schedules in memory; beyond it those that were not used for longest are let go. */
const SCHEDULES_MAX = 10_000;
/** How many are looked at for that in one turn. */
const EVICTION_TRIES = 64;
/** Those that fire in one turn, or in half of its time; a herd takes several, with requests between. */
const FIRES_PER_TURN = 250;
const PAGE_ROWS = 1_000;
/** A fire that its timer has not brought about by then was missed. */
const OVERDUE_MS = 1_000;
/** A run that an earlier one is waited for changes often: its end is looked for after a moment. */
const CHANGED_MS = 50;
/** How long fires wait while the writer is behind. */
const BEHIND_MS = 100;

const LAST_ID = 'ffffffff-ffff-ffff-ffff-ffffffffffff';

export class Schedules {
  readonly #deps: SchedulesDeps;
  /** In order of last use. */
  readonly #actors = new Map<string, CronActor>();
  /** Those that were told something in this turn. */
  readonly #touched = new Set<CronActor>();
  readonly #heap = new TimerHeap<string>();
  /** What is due up to here is in the heap. */
  #horizon: UnixMs = Number.NEGATIVE_INFINITY;
  /** Up to here it was read; behind the horizon when the database could not be asked. */
  #read: UnixMs = Number.NEGATIVE_INFINITY;
  readonly #rows: BatchedReads<ScheduleRow>;
  readonly #activeRuns: BatchedReads<string[]>;
  /** Runs that are waited for, with the schedules that wait. */
  readonly #awaited = new Map<string, string>();
  #wakeHandle: TimerHandle | undefined;
  /** What the shard sleeps for. */
  #sleepsUntil: UnixMs | undefined;
  #scanHandle: TimerHandle | undefined;
  #stopped = false;

  constructor(deps: SchedulesDeps) {
    this.#deps = deps;
    this.#rows = new BatchedReads((ids) => deps.loader.schedules(ids));
    this.#activeRuns = new BatchedReads((ids) => deps.loader.activeRuns(ids));
  }

  start(): void {
    this.#scan()
      .catch((error: unknown) => this.#deps.log.debug({ err: error }, 'schedules were not read'))
      .finally(() => {
        if (this.#stopped) return;
        this.#scanHandle = this.#deps.clock.setTimeout(() => this.start(), this.#deps.cronTickMs);
      });
  }

  stop(): void {
    this.#stopped = true;
    this.#deps.clock.clearTimeout(this.#wakeHandle);
    this.#deps.clock.clearTimeout(this.#scanHandle);
  }

  // ---------------------------------------------------------------- requests

  /**
   * @param body checked, and its tenant too
   * @throws EngineError 400 when the expression cannot be read
   */
  create(request: number, body: CreateSchedule): void {
    const { plans, schedule, release } = this.#deps;
    const row = this.#newRow(body);
    const { deletions } = plans;
    const fail = (error: EngineError) => release([{ kind: 'error', request, error }]);
    plans.load(row.sequence_id).then(
      (sequence) =>
        schedule(() => {
          if (sequence?.tenantId !== row.tenant_id) fail(notFound(`sequence ${row.sequence_id}`));
          else this.#actor(row.id).create(request, row, deletions);
        }),
      () => schedule(() => fail(DATABASE_AWAY)),
    );
  }

  #newRow(body: CreateSchedule): CronSchedule {
    const now = this.#deps.now();
    const times = { cron_expr: body.cron_expr, timezone: body.timezone ?? 'UTC' };
    return {
      id: this.#deps.newId(),
      tenant_id: body.tenant_id,
      namespace: body.namespace,
      sequence_id: body.sequence_id,
      ...times,
      enabled: body.enabled ?? true,
      metadata: (body.metadata ?? {}) as JsonObject,
      overlap_policy: body.overlap_policy ?? 'allow',
      skipped_fires: 0,
      last_skipped_at: null,
      last_triggered_at: null,
      next_fire_at: nextFireOf(times, now),
      last_error: null,
      created_at: isoTime(now),
      updated_at: isoTime(now),
    };
  }

  /** @throws EngineError 400 when the expression cannot be read */
  update(request: number, tenant: string, id: string, changes: UpdateSchedule): void {
    if (changes.cron_expr != null) readExpression(changes.cron_expr);
    this.#actor(id).update(request, tenant, changes);
  }

  delete(request: number, tenant: string, id: string): void {
    this.#actor(id).delete(request, tenant);
  }

  // ---------------------------------------------------------------- events

  /** The rows of the sequence and of its schedules are gone. */
  evictSequence(sequenceId: string): void {
    const own = [...this.#actors].filter(([, actor]) => actor.sequenceId === sequenceId);
    for (const [id] of own) this.#actor(id).rescan();
  }

  /** A unit of the instance was committed, or it was read again. */
  changed(instance: string): void {
    if (this.#awaited.size === 0) return;
    const id = this.#awaited.get(instance);
    if (id === undefined) return;
    this.#awaited.delete(instance);
    this.#heap.push(this.#deps.now() + CHANGED_MS, id);
  }

  /** The end of each turn of the shard. */
  endTurn(): void {
    for (const actor of this.#touched) actor.flush();
    this.#touched.clear();
    this.#rows.flush();
    this.#activeRuns.flush();
    this.#evict();
    this.#sleep();
  }

  #actor(id: string): CronActor {
    let actor = this.#actors.get(id);
    if (actor === undefined) actor = this.#newActor(id);
    else this.#actors.delete(id);
    this.#actors.set(id, actor);
    this.#touched.add(actor);
    return actor;
  }

  #newActor(id: string): CronActor {
    return new CronActor(id, {
      ...this.#deps,
      readRow: (schedule) => this.#rows.read(schedule),
      wakeAt: (schedule, at) => this.#wakeAt(schedule, at),
      look: (row, target) => this.#look(row, target),
      awaitRuns: (schedule, runs) => {
        for (const run of runs) this.#awaited.set(run, schedule);
      },
      resume: (schedule, work) => this.#deps.schedule(() => work(this.#actor(schedule))),
    });
  }

  #evict(): void {
    if (this.#actors.size <= SCHEDULES_MAX) return;
    let tries = EVICTION_TRIES;
    for (const [id, actor] of this.#actors) {
      if (tries-- === 0) return;
      this.#actors.delete(id);
      if (!actor.isPassive) this.#actors.set(id, actor);
    }
  }

  // ---------------------------------------------------------------- time

  /** What lies behind the horizon is read when its time comes. */
  #wakeAt(id: string, at: UnixMs): void {
    if (at <= this.#horizon) this.#heap.push(at, id);
  }

  #sleep(): void {
    const { clock, schedule, commits } = this.#deps;
    const at = this.#heap.nextAt;
    if (at === this.#sleepsUntil || this.#stopped) return;
    this.#sleepsUntil = at;
    clock.clearTimeout(this.#wakeHandle);
    if (at === undefined) return;
    const isBehind = commits.unackedUnits > LIMITS.unitsPerShardMax;
    const wait = Math.min(
      Math.max(isBehind ? BEHIND_MS : 0, at - clock.now()),
      LIMITS.timerHorizonMs,
    );
    this.#wakeHandle = clock.setTimeout(() => schedule(() => this.#tellDue()), wait);
  }

  #tellDue(): void {
    const { clock, commits } = this.#deps;
    this.#sleepsUntil = undefined;
    const began = clock.monotonic();
    for (let told = 0; told < FIRES_PER_TURN; told++) {
      if (commits.unackedUnits > LIMITS.unitsPerShardMax) return;
      if (clock.monotonic() - began > LIMITS.turnMs / 2) return;
      const id = this.#heap.popDue(clock.now());
      if (id === undefined) return;
      this.#actor(id).due();
    }
  }

  /** Raises the horizon, then reads below it: what is set meanwhile is pushed by who sets it. */
  async #scan(): Promise<void> {
    const { clock, cronTickMs } = this.#deps;
    const now = clock.now();
    const from = this.#read;
    this.#horizon = Math.max(this.#horizon, now + 2 * cronTickMs);
    const horizon = this.#horizon;
    await this.#pages(from, horizon, (id, at) => this.#heap.push(at, id));
    this.#read = horizon;
    if (from === Number.NEGATIVE_INFINITY) return;
    await this.#pages(Number.NEGATIVE_INFINITY, now - OVERDUE_MS, (id) => this.#actor(id).rescan());
  }

  async #pages(from: UnixMs, to: UnixMs, each: (id: string, at: UnixMs) => void): Promise<void> {
    const { loader, schedule, shard, shards } = this.#deps;
    const time = from === Number.NEGATIVE_INFINITY ? '-infinity' : isoTime(from);
    let after: DueSchedule = { next_fire_at: time, id: LAST_ID };
    for (;;) {
      const page = await loader.dueSchedules(after, to, PAGE_ROWS);
      if (this.#stopped) return;
      const own = page.filter(({ id }) => shardOf(routeOf(id), shards) === shard);
      schedule(() => {
        for (const { id, next_fire_at } of own) each(id, Date.parse(next_fire_at));
      });
      const last = page.at(-1);
      if (last === undefined || page.length < PAGE_ROWS) return;
      after = last;
    }
  }

  // ---------------------------------------------------------------- before a fire

  async #look(row: CronSchedule, target: string): Promise<Found> {
    const needsRuns = row.overlap_policy !== 'allow';
    const [sequence, runs = []] = await Promise.all([
      this.#deps.plans.load(target),
      needsRuns ? this.#activeRuns.read(row.id) : [],
    ]);
    if (row.overlap_policy === 'cancel_previous' && sequence !== undefined) {
      await Promise.all(runs.map((run) => this.#cancel(run, row.tenant_id)));
    }
    return { target, sequence, runs };
  }

  /** Resolves when the run has taken the signal, or has ended; rejects when that is not known. */
  #cancel(run: string, tenant: string): Promise<void> {
    const { schedule, tellRun, ownRequests } = this.#deps;
    const cancel = { signalType: 'cancel', payload: null, traceparent: undefined };
    return new Promise((resolve, reject) => {
      const request = ownRequests.open((answer) => {
        // One that has ended, or is gone, needs no signal.
        if (!('error' in answer) || answer.error.status < 500) resolve();
        else reject(answer.error);
      });
      schedule(() => tellRun(run, { kind: 'signal', request, tenant, ...cancel }));
    });
  }
}
