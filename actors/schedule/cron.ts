/**
 * One cron schedule. A fire is one unit: the creation of the instance and the schedule's row with its
 * next fire. The instance's id follows from the schedule and the fire time, so that no fire time can
 * give two. `next_fire_at` is the fire that is next or under way: while an earlier run is waited for
 * it lies in the past, and what passed meanwhile is one fire.
 *
 *   idle ──due──► looking ──► fired or skipped, with the next fire time
 *     ▲              └─ an earlier run is waited for, or the database is away ─┐
 *     └─────────────── when the run changes, or some seconds later ────────────┘
 */

import type { CronSchedule, UpdateSchedule } from '../../schema/cron.js';
import { nextFire } from '../../src/core/cron.js';
import { type CronFields, parseCron } from '../../src/core/cron-fields.js';
import { firedInstanceId } from '../../src/core/ids.js';
import type { Route } from '../../src/core/releases/routes.js';
import { priorityRank, rankOf } from '../../src/core/states.js';
import { isoTime, isoTimeOrNull, type UnixMs } from '../../src/core/time.js';
import { invalid, notFound } from '../../src/errors.js';
import type { Plans, StoredSequence } from '../catalog/plans.js';
import { newRecord, wholeRow } from '../instance/record.js';
import { cohortKeyIn } from '../release/attribution.js';
import type { Routing } from '../release/routing.js';
import type { ScheduleRow } from '../runtime/rows.js';
import type { Turn } from '../runtime/turn.js';

export interface CronDeps {
  readonly now: () => UnixMs;
  readonly plans: Pick<Plans, 'checkUsable' | 'deletions' | 'get' | 'isBlocked'>;
  readonly routing: Pick<Routing, 'route'>;
  /** Has the schedule told `due` at that time. */
  readonly wakeAt: (id: string, at: UnixMs) => void;
  /** Has the schedule told `due` soon after one of the runs changes. */
  readonly awaitRuns: (id: string, runs: readonly string[]) => void;
  /** Asks whether the schedule may fire; it is told `found` or `unknown` with the same row. */
  readonly look: (row: CronSchedule, target: string) => void;
  /** What is known of the schedule beside its row. */
  readonly memo: (id: string) => Memo;
  readonly remember: (id: string, changes: Memo) => void;
}

/** Outlives the state, which is read again when the database refuses a fire. */
export interface Memo {
  /** The fire time of the unit under way that is a fire. */
  readonly firing?: UnixMs | undefined;
  /** A fire time that cannot give an instance (any more), with the reason to show. */
  readonly spent?: { readonly at: UnixMs; readonly error: string | null } | undefined;
  /** A sequence that was not found, of a row that may have gone with it. */
  readonly missing?: string | undefined;
}

export interface CronRows {
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

/** How long an earlier run is waited for before it is looked at again. */
const BUFFERED_AGAIN_MS = 5_000;
/** When the database could not be asked, or the sequence is about to be deleted. */
const LATER_MS = 1_000;
const NORMAL = priorityRank('normal');

export class Cron {
  readonly #id: string;
  readonly #deps: CronDeps;
  #row: CronSchedule | undefined;
  readonly #deletions: number;
  /** Where the fire that is looked into would go. */
  #looking: string | undefined;

  constructor(id: string, deps: CronDeps, { row, deletions }: CronRows) {
    this.#id = id;
    this.#deps = deps;
    this.#deletions = deletions;
    this.#row =
      row === undefined
        ? undefined
        : { ...row, metadata: JSON.parse(row.metadata) as CronSchedule['metadata'] };
  }

  get sequenceId(): string | undefined {
    return this.#row?.sequence_id;
  }

  get isIdle(): boolean {
    return this.#looking === undefined;
  }

  /**
   * The row of a schedule goes with its sequence and must not be written again then: after any
   * deletion it is read before anything is made of it.
   */
  get isFresh(): boolean {
    return this.#deletions === this.#deps.plans.deletions;
  }

  arm(): void {
    if (this.#row?.enabled !== true || this.#row.next_fire_at === null) return;
    this.#deps.wakeAt(this.#id, Date.parse(this.#row.next_fire_at));
  }

  // ---------------------------------------------------------------- requests

  /** @param deletions as they were when the sequence was found to be there */
  create(turn: Turn, request: number, schedule: CronSchedule, deletions: number): void {
    this.#deps.plans.checkUsable(schedule.sequence_id, deletions);
    this.#put(turn, schedule);
    const { id, next_fire_at } = schedule;
    turn.reply(request, 201, JSON.stringify({ id, next_fire_at }));
  }

  /** @param tenant '' is any */
  update(turn: Turn, request: number, tenant: string, changes: UpdateSchedule): void {
    const row = this.#ownedBy(tenant);
    this.#deps.plans.checkUsable(row.sequence_id);
    const now = this.#deps.now();
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
    this.#put(turn, updated);
    turn.reply(request, 200, JSON.stringify(updated));
  }

  delete(turn: Turn, request: number, tenant: string): void {
    this.#ownedBy(tenant);
    this.#row = undefined;
    turn.put('cron.clear', this.#id, { id: this.#id });
    turn.reply(request, 204, '');
  }

  #put(turn: Turn, row: CronSchedule): void {
    this.#row = row;
    turn.put('cron.set', row.id, row);
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

  get isDue(): boolean {
    const row = this.#row;
    if (this.#looking !== undefined || row?.enabled !== true) return false;
    return row.next_fire_at !== null && Date.parse(row.next_fire_at) <= this.#deps.now();
  }

  /** The time has come, or something that was waited for has changed. */
  due(turn: Turn): void {
    const row = this.#row as CronSchedule;
    const { plans, look } = this.#deps;
    const target = this.#targetOf(row);
    if (plans.isBlocked(row.sequence_id) || plans.isBlocked(target)) {
      this.#later(LATER_MS);
      return;
    }
    const sequence = plans.get(target);
    if (sequence !== undefined && row.overlap_policy === 'allow') {
      this.#fire(turn, row, sequence);
      return;
    }
    this.#looking = target;
    look(row, target);
  }

  /** It could not be looked into. */
  unknown(): void {
    if (this.#looking === undefined) return;
    this.#looking = undefined;
    this.#later(LATER_MS);
  }

  /**
   * What it asked for is here.
   *
   * @param row as it was then
   * @param isSettled none of its units is under way: so that a stall is caught up once
   * @returns `reload` when the rows have to be read first
   */
  found(turn: Turn, row: CronSchedule, found: Found, isSettled: boolean): 'done' | 'reload' {
    const { plans, memo, remember } = this.#deps;
    const { target, sequence, runs } = found;
    if (this.#looking !== target) return 'done';
    this.#looking = undefined;
    const isBlocked = plans.isBlocked(row.sequence_id) || plans.isBlocked(target);
    if (this.#row !== row || !isSettled || isBlocked || target !== this.#targetOf(row)) {
      this.#later(0);
      return 'done';
    }
    const { missing } = memo(this.#id);
    if (sequence === undefined && missing !== target) {
      // The row may have gone with it: that is looked at first.
      remember(this.#id, { missing: target });
      return 'reload';
    }
    if (missing !== undefined) remember(this.#id, { missing: undefined });
    const { overlap_policy: policy } = row;
    if (policy === 'buffer_one' && runs.length > 0) {
      this.#deps.awaitRuns(this.#id, runs);
      this.#later(BUFFERED_AGAIN_MS);
    } else if (policy === 'skip' && runs.length > 0) {
      const at = isoTime(this.#deps.now());
      this.#goOn(turn, row, { skipped_fires: row.skipped_fires + 1, last_skipped_at: at });
    } else this.#fire(turn, row, sequence);
    return 'done';
  }

  /** A release may route the fire: each by itself, unless the schedule has a cohort key. */
  #routeOf({ id, sequence_id, tenant_id, metadata }: CronSchedule, at: UnixMs): Route | undefined {
    const keyOf = () => cohortKeyIn(metadata) ?? firedInstanceId(id, at);
    return this.#deps.routing.route(sequence_id, tenant_id, keyOf);
  }

  #targetOf(row: CronSchedule): string {
    return this.#routeOf(row, fireTimeOf(row))?.sequenceId ?? row.sequence_id;
  }

  #fire(turn: Turn, row: CronSchedule, sequence: StoredSequence | undefined): void {
    const at = fireTimeOf(row);
    const { memo, remember } = this.#deps;
    const { spent: last } = memo(this.#id);
    const spent = last?.at === at ? last : undefined;
    if (last !== undefined) remember(this.#id, { spent: undefined });
    const problem = sequence === undefined ? 'is not found' : sequence.checkInput?.({});
    if (spent !== undefined || problem !== undefined) {
      const what = sequence === undefined ? `sequence ${row.sequence_id}` : 'context.data';
      const error = problem === undefined ? null : `${what} ${problem}`;
      this.#goOn(turn, row, { last_error: error ?? spent?.error ?? null });
      return;
    }
    const now = this.#deps.now();
    this.#insertRun(turn, row, at, now);
    this.#goOn(turn, row, { last_triggered_at: isoTime(now), last_error: null });
    remember(this.#id, { firing: at });
  }

  #insertRun(turn: Turn, row: CronSchedule, at: UnixMs, now: UnixMs): void {
    const id = firedInstanceId(row.id, at);
    const { sequence_id, tenant_id, namespace, timezone, metadata } = row;
    const idempotency_key = `cron:${row.id}:${isoTime(at)}`;
    const body = { sequence_id, tenant_id, namespace, timezone, metadata, idempotency_key };
    const record = newRecord({ id, body, route: this.#routeOf(row, at) }, now);
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
  #goOn(turn: Turn, row: CronSchedule, changes: Partial<CronSchedule>): void {
    this.#put(turn, { ...row, ...changes, next_fire_at: nextFireOf(row, this.#deps.now()) });
  }

  #later(ms: number): void {
    this.#deps.wakeAt(this.#id, this.#deps.now() + ms);
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
