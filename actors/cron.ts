/**
 * One cron schedule (01 §7; 06 rows 24 and 25). A fire is one unit: the birth of the instance and
 * the schedule's row with its next fire. The instance's id follows from the schedule and the fire
 * time, so that no fire time can give two. `next_fire_at` is the fire that is next or under way:
 * while an earlier run is waited for it lies in the past, and what passed meanwhile is one fire.
 *
 *   idle ──due──► looking ──► fired or skipped, with the next fire time
 *     ▲              └─ an earlier run is waited for, or the database is away ─┐
 *     └─────────────── when the run changes, or some seconds later ────────────┘
 */

import type { CronSchedule, UpdateSchedule } from '../schema/cron.js';
import { nextFire } from '../src/core/cron.js';
import { type CronFields, parseCron } from '../src/core/cron-fields.js';
import { firedInstanceId } from '../src/core/ids.js';
import type { Route } from '../src/core/releases/routes.js';
import { priorityRank, rankOf } from '../src/core/states.js';
import { isoTime, isoTimeOrNull, type UnixMs } from '../src/core/time.js';
import { EngineError, invalid, notFound } from '../src/errors.js';
import { cohortKeyIn } from './attribution.js';
import type { PendingUnit, Settlement } from './commit-log.js';
import { newRecord, wholeRow } from './instance-record.js';
import type { ScheduleRow } from './loader.js';
import type { Plans, StoredSequence } from './plans.js';
import type { Routing } from './routing.js';
import { RowActor, type RowActorDeps } from './row-actor.js';

export interface CronActorDeps extends RowActorDeps {
  readonly plans: Plans;
  readonly routing: Routing;
  /** Reads rows of many schedules at once, at the end of the turn. */
  readonly readRow: (id: string) => Promise<ScheduleRow | undefined>;
  /** Has the actor told `due` at that time. */
  readonly wakeAt: (id: string, at: UnixMs) => void;
  /** Has the actor told `due` soon after one of the runs changes. */
  readonly awaitRuns: (id: string, runs: readonly string[]) => void;
  /** Asks whether the schedule may fire; a policy that cancels earlier runs has done so by then. */
  readonly look: (row: CronSchedule, target: string) => Promise<Found>;
  /** Runs the work in a turn, at whose end the actor is flushed. */
  readonly resume: (id: string, work: (actor: CronActor) => void) => void;
}

interface Loaded {
  readonly row: ScheduleRow | undefined;
  /** Of sequences, when the row was asked for; see `Plans`. */
  readonly deletions: number;
}

/** What the look before a fire found. */
export interface Found {
  /** Where a fire went by the routes of that time. */
  readonly target: string;
  /** Undefined when there is none (any more). */
  readonly sequence: StoredSequence | undefined;
  /** Earlier runs that have not ended; not looked for where they do not matter. */
  readonly runs: readonly string[];
}

/** How long an earlier run is waited for before it is looked at again (01 §7.4). */
const BUFFERED_AGAIN_MS = 5_000;
/** When the database could not be asked, or the sequence is about to be deleted. */
const LATER_MS = 1_000;
const NORMAL = priorityRank('normal');
const NO_RUNS: readonly string[] = [];

export class CronActor extends RowActor<Loaded> {
  readonly #id: string;
  readonly #deps: CronActorDeps;
  #row: CronSchedule | undefined;
  #deletions = 0;
  /** Units that are not settled: the next fire waits for them, so that a stall is caught up once. */
  #unsettled = 0;
  #hasChanged = false;
  /** The fire time of the unit under way that is a fire. */
  #firing: UnixMs | undefined;
  /** A fire time that cannot give an instance (any more), with the reason to show. */
  #spent: { readonly at: UnixMs; readonly error: string | null } | undefined;
  /** A sequence that was not found, of a row that may have gone with it. */
  #missing: string | undefined;
  /** Numbers the looks: one that was overtaken by a reload is ignored. */
  #looks = 0;
  #isLooking = false;

  constructor(id: string, deps: CronActorDeps) {
    super(`cron:${id}`, deps);
    this.#id = id;
    this.#deps = deps;
  }

  /** @param deletions as they were when the sequence was found to be there */
  create(request: number, schedule: CronSchedule, deletions: number): void {
    this.#heed(request, () => {
      this.#deps.plans.checkUsable(schedule.sequence_id, deletions);
      this.#put(schedule);
      const { id, next_fire_at } = schedule;
      this.turn.reply(request, 201, JSON.stringify({ id, next_fire_at }));
    });
  }

  /** @param tenant '' is any */
  update(request: number, tenant: string, changes: UpdateSchedule): void {
    this.#heed(request, () => {
      const row = this.#ownedBy(tenant);
      this.#deps.plans.checkUsable(row.sequence_id);
      const now = this.deps.now();
      const changed = {
        ...row,
        cron_expr: changes.cron_expr ?? row.cron_expr,
        timezone: changes.timezone ?? row.timezone,
        enabled: changes.enabled ?? row.enabled,
        metadata: changes.metadata ?? row.metadata,
        overlap_policy: changes.overlap_policy ?? row.overlap_policy,
        updated_at: isoTime(now),
      };
      const updated = { ...changed, next_fire_at: nextFireOf(changed, now) };
      this.#put(updated);
      this.turn.reply(request, 200, JSON.stringify(updated));
    });
  }

  delete(request: number, tenant: string): void {
    this.#heed(request, () => {
      this.#ownedBy(tenant);
      this.#row = undefined;
      this.#hasChanged = true;
      this.turn.put('cron.clear', this.#id, { id: this.#id });
      this.turn.reply(request, 204, '');
    });
  }

  /** The time has come, or something that was waited for has changed. */
  due(): void {
    this.tell(() => this.#due());
  }

  get sequenceId(): string | undefined {
    return this.#row?.sequence_id;
  }

  // ---------------------------------------------------------------- rows

  protected async read(): Promise<Loaded> {
    const { deletions } = this.#deps.plans;
    return { row: await this.#deps.readRow(this.#id), deletions };
  }

  protected restore({ row, deletions }: Loaded): void {
    this.#row =
      row === undefined
        ? undefined
        : { ...row, metadata: JSON.parse(row.metadata) as CronSchedule['metadata'] };
    this.#deletions = deletions;
    this.#looks += 1;
    this.#isLooking = false;
    this.#arm();
  }

  protected decide(): 'done' {
    if (this.#hasChanged) this.#unsettled += 1;
    this.#hasChanged = false;
    return 'done';
  }

  protected get isIdle(): boolean {
    return !this.#isLooking && this.#spent === undefined;
  }

  override settled(unit: PendingUnit, ack: Settlement): void {
    this.#unsettled -= 1;
    // A fire is made when nothing else is under way, so the first answer is its own.
    const at = this.#firing;
    this.#firing = undefined;
    if (at !== undefined && ack[1] === 'exists') this.#spent = { at, error: null };
    if (at !== undefined && ack[1] === 'refused') this.#spent = { at, error: ack[3] };
    super.settled(unit, ack);
    if (ack[1] === 'committed') this.#arm();
  }

  #put(row: CronSchedule): void {
    this.#row = row;
    this.#hasChanged = true;
    this.turn.put('cron.set', row.id, row);
  }

  #arm(): void {
    if (this.#row?.enabled !== true || this.#row.next_fire_at === null) return;
    this.#deps.wakeAt(this.#id, Date.parse(this.#row.next_fire_at));
  }

  // ---------------------------------------------------------------- requests

  /**
   * Answers with what the work throws. The row of a schedule goes with its sequence and must not be
   * written again then: after any deletion it is read before anything is made of it.
   */
  #heed(request: number, work: () => void): void {
    this.tell(() => {
      if (!this.#isFresh()) {
        this.#heed(request, work);
        return;
      }
      try {
        work();
      } catch (error) {
        if (!(error instanceof EngineError)) throw error;
        this.turn.fail(request, error);
      }
    }, request);
  }

  #isFresh(): boolean {
    if (this.#deletions === this.#deps.plans.deletions) return true;
    this.rescan();
    return false;
  }

  /** @throws EngineError 404 */
  #ownedBy(tenant: string): CronSchedule {
    const row = this.#row;
    if (row === undefined || (tenant !== '' && row.tenant_id !== tenant)) {
      throw notFound(`cron schedule ${this.#id}`);
    }
    return row;
  }

  // ---------------------------------------------------------------- firing

  #due(): void {
    const row = this.#row;
    if (this.#isLooking || this.#unsettled > 0 || row?.enabled !== true) return;
    if (row.next_fire_at === null || Date.parse(row.next_fire_at) > this.deps.now()) return;
    if (!this.#isFresh()) return;
    const { plans } = this.#deps;
    const target = this.#targetOf(row);
    if (plans.isBlocked(row.sequence_id) || plans.isBlocked(target)) {
      this.#later(LATER_MS);
      return;
    }
    const sequence = plans.get(target);
    if (sequence !== undefined && row.overlap_policy === 'allow') {
      this.#decideFire(row, { target, sequence, runs: NO_RUNS });
    } else this.#lookUp(row, target);
  }

  /** A release may route the fire (04 §8): each by itself, unless the schedule has a cohort key. */
  #routeOf({ id, sequence_id, tenant_id, metadata }: CronSchedule, at: UnixMs): Route | undefined {
    const keyOf = () => cohortKeyIn(metadata) ?? firedInstanceId(id, at);
    return this.#deps.routing.route(sequence_id, tenant_id, keyOf);
  }

  #targetOf(row: CronSchedule): string {
    return this.#routeOf(row, fireTimeOf(row))?.sequenceId ?? row.sequence_id;
  }

  #lookUp(row: CronSchedule, target: string): void {
    this.#isLooking = true;
    this.#looks += 1;
    const look = this.#looks;
    this.#deps.look(row, target).then(
      (found) => this.#resume(look, () => this.#decideFire(row, found)),
      (error: unknown) => {
        this.deps.log.debug({ actor: this.key, err: error }, 'a fire is put off');
        this.#resume(look, () => this.#later(LATER_MS));
      },
    );
  }

  #resume(look: number, work: () => void): void {
    this.#deps.resume(this.#id, (actor) => {
      // It was read again since: what it is about to do is decided anew.
      if (actor !== this || look !== this.#looks) return;
      this.#isLooking = false;
      work();
    });
  }

  #decideFire(row: CronSchedule, { target, sequence, runs }: Found): void {
    const { plans } = this.#deps;
    const isBlocked = plans.isBlocked(row.sequence_id) || plans.isBlocked(target);
    const isStale = this.#deletions !== plans.deletions || target !== this.#targetOf(row);
    if (this.#row !== row || this.#unsettled > 0 || isBlocked || isStale) {
      this.#later(0);
      return;
    }
    if (sequence === undefined && this.#missing !== target) {
      // The row may have gone with it: that is looked at first.
      this.#missing = target;
      this.rescan();
      return;
    }
    this.#missing = undefined;
    const { overlap_policy: policy } = row;
    if (policy === 'buffer_one' && runs.length > 0) {
      this.#deps.awaitRuns(this.#id, runs);
      this.#later(BUFFERED_AGAIN_MS);
    } else if (policy === 'skip' && runs.length > 0) {
      const at = isoTime(this.deps.now());
      this.#goOn(row, { skipped_fires: row.skipped_fires + 1, last_skipped_at: at });
    } else this.#fire(row, sequence);
  }

  #fire(row: CronSchedule, sequence: StoredSequence | undefined): void {
    const at = fireTimeOf(row);
    const spent = this.#spent?.at === at ? this.#spent : undefined;
    this.#spent = undefined;
    const problem = sequence === undefined ? 'is not found' : sequence.checkInput?.({});
    if (spent !== undefined || problem !== undefined) {
      const what = sequence === undefined ? `sequence ${row.sequence_id}` : 'context.data';
      const error = problem === undefined ? null : `${what} ${problem}`;
      this.#goOn(row, { last_error: error ?? spent?.error ?? null });
      return;
    }
    const now = this.deps.now();
    // Nothing else may hang on whether the instance is there already.
    this.flush();
    this.#bear(row, at, now);
    this.#goOn(row, { last_triggered_at: isoTime(now), last_error: null });
    this.#firing = at;
    this.flush();
  }

  #bear(row: CronSchedule, at: UnixMs, now: UnixMs): void {
    const id = firedInstanceId(row.id, at);
    const record = newRecord(
      {
        id,
        sequenceId: row.sequence_id,
        route: this.#routeOf(row, at),
        tenantId: row.tenant_id,
        namespace: row.namespace,
        priority: NORMAL,
        timezone: row.timezone,
        metadata: row.metadata,
        data: {},
        config: {},
        nextFireAt: now,
        concurrencyKey: null,
        maxConcurrency: null,
        idempotencyKey: `cron:${row.id}:${isoTime(at)}`,
        dryRun: false,
      },
      now,
    );
    const { turn } = this;
    const rank = rankOf(NORMAL);
    const columns = wholeRow(record).slice(1);
    turn.gate = 'exists';
    turn.put('instance.insert', id, `{"cron_schedule_id":"${row.id}",${columns}`);
    const timer = { instance_id: id, fire_at: isoTime(now), recover: false, rank };
    turn.put('timer.set', id, timer);
    turn.count('engine_cron_triggered_total');
    turn.effects.push({ kind: 'continue', instance: id, rank });
  }

  /** To the next fire: a missed stretch is over with this one. */
  #goOn(row: CronSchedule, changes: Partial<CronSchedule>): void {
    this.#put({ ...row, ...changes, next_fire_at: nextFireOf(row, this.deps.now()) });
  }

  #later(ms: number): void {
    this.#deps.wakeAt(this.#id, this.deps.now() + ms);
  }
}

/** The fire that is next or under way. */
function fireTimeOf({ next_fire_at }: CronSchedule): UnixMs {
  return Date.parse(next_fire_at ?? '');
}

/**
 * The first fire after an instant, as it is stored and shown.
 *
 * @throws EngineError 400 when the expression cannot be read
 */
export function nextFireOf(
  { cron_expr, timezone }: Pick<CronSchedule, 'cron_expr' | 'timezone'>,
  after: UnixMs,
): string | null {
  return isoTimeOrNull(nextFire(readExpression(cron_expr), timezone, after));
}

/** @throws EngineError 400 */
export function readExpression(expression: string): CronFields {
  const parsed = parseCron(expression);
  if (!parsed.ok) throw invalid(parsed.message);
  return parsed.fields;
}
