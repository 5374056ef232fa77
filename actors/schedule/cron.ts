/**
 * One cron schedule. A fire is one unit with the new instance and the schedule's next fire; the instance id derives from
 * schedule and fire time, so a fire time cannot create two instances. `next_fire_at` is the next or current fire: it is
 * in the past while the fire waits for an earlier run, and missed fires become one. An update keeps the current fire and
 * its lookup if possible, so that frequent updates cannot keep a schedule from firing.
 *
 *   idle ──due──► looking ──► fired or skipped, with the next fire time
 *     ▲              └─ waiting for an earlier run or for the database ───────┐
 *     └─────────────── when the run changes, or some seconds later ───────────┘
 */

import type { CronSchedule, UpdateSchedule } from '../../schema/cron.js';
import type { CreateInstance, InstanceCreated } from '../../schema/instance.js';
import { type Priority, rankOf } from '../../schema/states.js';
import { type EngineError, unavailable, unprocessable } from '../../src/base/errors.js';
import { firedInstanceId } from '../../src/base/ids.js';
import { isForeign, owned } from '../../src/base/tenancy.js';
import { isoTime, type UnixMs } from '../../src/base/time.js';
import { checkUnchanged, updatedAt } from '../../src/base/unchanged-since.js';
import { keyProblem } from '../../src/core/flow-limits.js';
import type { Plan } from '../../src/core/plan.js';
import { sequenceNotFound } from '../../src/core/sequence-not-found.js';
import type { Names } from '../catalog/names.js';
import type { Plans, StoredSequence } from '../catalog/plans.js';
import { putCancelWaits } from '../instance/cancel-waits.js';
import { startedData } from '../instance/collected.js';
import { cancelProblem } from '../instance/creation.js';
import { type InstanceRecord, nameIn, newRecord, wholeLine } from '../instance/record.js';
import { putSearchTerms } from '../instance/search-terms.js';
import { INSTANCE, TIMER } from '../instance/tables.js';
import { cohortKeyIn, isPinned } from '../release/attribution.js';
import type { Routing } from '../release/routing.js';
import type { PendingUnit } from '../runtime/commit-log.js';
import type { NamedId } from '../runtime/sequence-name.js';
import type { Turn } from '../runtime/turn.js';
import { type ScheduleRow, scheduleOf } from './loads.js';
import { fireTimeOf, nextAfterChange, nextFireOf, settingsOf } from './settings.js';
import { CRON } from './tables.js';

export interface CronDeps {
  readonly now: () => UnixMs;
  readonly plans: Pick<Plans, 'checkUsable' | 'deletions' | 'get' | 'isBlocked'>;
  readonly names: Pick<Names, 'get'>;
  readonly routing: Pick<Routing, 'route'>;
  readonly wakeAt: (id: string, at: UnixMs) => void;
  /** Sends `due` to the schedule soon after one of the runs changes. */
  readonly awaitRuns: (id: string, runs: readonly string[]) => void;
  /** Starts the lookup before a fire, which ends with `found` or `unknown`. */
  readonly look: (look: Look) => void;
  readonly memo: (id: string) => Memo;
  readonly remember: (id: string, changes: Memo) => void;
}

/** State beside the row, which survives a reload, such as after a refused fire. */
export interface Memo {
  /** A fire time that cannot create an instance, with the reason for `last_error`. */
  readonly spent?: { readonly at: UnixMs; readonly error: string | null } | undefined;
  /** A sequence that was not found; the row may have been deleted with it. */
  readonly missing?: string | undefined;
}

/** A new instance, whose timer is due at once. */
export interface CreatedRun {
  readonly record: InstanceRecord;
  readonly plan: Plan;
  /** The length of its row. */
  readonly characters: number;
}

/** The lookup before a fire. */
export interface Look {
  /** The schedule when the lookup began. */
  readonly row: CronSchedule;
  readonly run: Run;
  readonly target: string;
}

/** A unit in progress that creates an instance or sets the next fire. */
interface Step {
  readonly firing?: UnixMs;
  /** The instance of a fire. It is adopted at the commit, so that it need not be loaded. */
  readonly created?: CreatedRun | undefined;
}

export interface CronRows {
  readonly row: ScheduleRow | undefined;
  /** `Plans.deletions` before the row was read. */
  readonly deletions: number;
}

export interface Found {
  /** The resolved name of the schedule. */
  readonly named: NamedId;
  /** The sequence id by the names and routes at the lookup; '' for an unknown name. */
  readonly target: string;
  /** Undefined when the sequence does not exist. */
  readonly sequence: StoredSequence | undefined;
  /** Unfinished earlier runs; empty if the policy ignores them. */
  readonly runs: readonly string[];
  /** The sequence collects creations: the answer to that of the run, which is durable, or its refusal. */
  readonly collected?: InstanceCreated | undefined;
  readonly refusal?: EngineError | undefined;
}

export type Run = { readonly id: string; readonly idempotency_key: string | null };

/** A run on request, after its lookup. */
export interface RequestedRun extends Run {
  readonly target: string;
  readonly sequence: StoredSequence;
}

const BUFFERED_AGAIN_MS = 5_000;
/** Retry interval after a database failure or while the sequence is being deleted. */
const LATER_MS = 1_000;

export class Cron {
  readonly #id: string;
  readonly #deps: CronDeps;
  #row: CronSchedule | undefined;
  /** Undefined for a missing schedule. */
  tenant: string | undefined;
  readonly #deletions: number;
  #looking: Look | undefined;
  /** The step of the current turn. */
  #step: Step | undefined;
  /** The next fire waits for these units, so that missed fires become one and each fire sees earlier runs. */
  readonly #steps = new Map<PendingUnit, Step>();

  constructor(id: string, deps: CronDeps, { row, deletions }: CronRows) {
    this.#id = id;
    this.#deps = deps;
    this.#deletions = deletions;
    this.#row = row && scheduleOf(row);
    this.tenant = row?.tenant_id;
  }

  get sequenceId(): string | null | undefined {
    return this.#row?.sequence_id;
  }

  get isIdle(): boolean {
    return this.#looking === undefined;
  }

  get isThere(): boolean {
    return this.#row !== undefined;
  }

  /** True for a missing schedule. */
  isOf(tenant: string): boolean {
    return this.#row === undefined || !isForeign(this.#row, tenant);
  }

  /** False after any deletion of a sequence, which deletes its schedules: the row must be reloaded before a write. */
  get isFresh(): boolean {
    return this.#deletions === this.#deps.plans.deletions;
  }

  decided(unit: PendingUnit): void {
    if (this.#step !== undefined) this.#steps.set(unit, this.#step);
    this.#step = undefined;
  }

  committed(unit: PendingUnit): CreatedRun | undefined {
    const step = this.#steps.get(unit);
    this.#steps.delete(unit);
    return step?.created;
  }

  /** The fire will never create an instance. */
  spend(unit: PendingUnit, error: string | null): void {
    const at = this.#steps.get(unit)?.firing;
    if (at !== undefined) this.#deps.remember(this.#id, { spent: { at, error } });
  }

  arm(): void {
    if (this.#row?.enabled !== true || this.#row.next_fire_at === null) return;
    this.#deps.wakeAt(this.#id, Date.parse(this.#row.next_fire_at));
  }

  /** @param deletions `Plans.deletions` when the sequence was found */
  create(turn: Turn, request: number, schedule: CronSchedule, deletions: number): void {
    this.#checkUsable(schedule, deletions);
    this.tenant = schedule.tenant_id;
    this.#put(turn, schedule);
    const { id, next_fire_at } = schedule;
    turn.reply(request, 201, JSON.stringify({ id, next_fire_at }));
  }

  /** @param tenant '' is any */
  update(turn: Turn, request: number, tenant: string, changes: UpdateSchedule): void {
    const row = this.#ownedBy(tenant);
    checkUnchanged(changes.if_unchanged_since, row.updated_at);
    this.#checkUsable(row);
    const now = this.#deps.now();
    const cron_expr = changes.cron_expr ?? row.cron_expr;
    const changed = {
      ...row,
      cron_expr,
      ...settingsOf(changes, row),
      updated_at: updatedAt(now, row.updated_at),
    };
    const updated = { ...changed, next_fire_at: nextAfterChange(row, changed, now) };
    if (!isSameFire(row, updated)) this.#looking = undefined;
    this.#put(turn, updated);
    turn.reply(request, 200, JSON.stringify(updated));
  }

  delete(turn: Turn, request: number, tenant: string): void {
    this.#ownedBy(tenant);
    this.#row = undefined;
    this.#looking = undefined;
    turn.put(CRON.clear, this.#id, { id: this.#id });
    turn.reply(request, 204, '');
  }

  /** A schedule by name does not depend on one version, so only an id is checked. */
  #checkUsable({ sequence_id }: CronSchedule, deletions?: number): void {
    if (sequence_id !== null) this.#deps.plans.checkUsable(sequence_id, deletions);
  }

  /**
   * Creates an instance on request, without effect on the fires. The answer is null when the target has changed.
   * @param run does not exist yet, and no earlier run prevents it
   */
  run(turn: Turn, request: number, tenant: string, run: RequestedRun): void {
    const row = this.#ownedBy(tenant);
    const { id, target, sequence, idempotency_key } = run;
    if (this.#targetOf(row, id) !== target) {
      turn.reply(request, 200, 'null');
      return;
    }
    if (this.#deps.plans.isBlocked(sequence.id)) {
      throw unavailable('ENG_OVERLOADED', `sequence ${sequence.id} is being deleted`);
    }
    const problem = inputProblem(row, id, sequence);
    if (problem !== null) {
      throw unprocessable(problem.replace('context.data', 'context.data of the schedule'));
    }
    const now = this.#deps.now();
    this.#insertRun(turn, row, { id, idempotency_key }, now, sequence.plan);
    this.#step = {};
    // A lookup in progress does not include this run.
    this.#looking = undefined;
    this.#put(turn, { ...row, last_triggered_at: isoTime(now), last_error: null });
    const created = { id, deduplicated: false, instance_id: id };
    turn.reply(request, 201, JSON.stringify(created));
  }

  #put(turn: Turn, row: CronSchedule): void {
    this.#row = row;
    turn.put(CRON.set, row.id, row);
  }

  #ownedBy(tenant: string): CronSchedule {
    return owned(this.#row, tenant, `cron schedule ${this.#id}`);
  }

  get isDue(): boolean {
    const row = this.#row;
    if (this.#looking !== undefined || this.#steps.size > 0 || row?.enabled !== true) return false;
    return row.next_fire_at !== null && Date.parse(row.next_fire_at) <= this.#deps.now();
  }

  /** Called when the fire time has come, or an awaited run has changed. */
  due(turn: Turn): void {
    const row = this.#row as CronSchedule;
    const { plans, look } = this.#deps;
    const run = firedRun(row);
    const target = this.#targetOf(row, run.id);
    if (this.#isBlocked(row, target)) {
      this.#later(LATER_MS);
      return;
    }
    const sequence = plans.get(target);
    const isCollected = sequence?.collecting !== undefined;
    if (sequence !== undefined && row.overlap_policy === 'allow' && !isCollected) {
      this.#fire(turn, row, sequence);
      return;
    }
    this.#looking = { row, run, target };
    look(this.#looking);
  }

  unknown(look: Look): void {
    if (this.#looking !== look) return;
    this.#looking = undefined;
    this.#later(LATER_MS);
  }

  /** The lookup is void if the schedule has changed. @returns `reload` when the row must be read again first */
  found(turn: Turn, look: Look, found: Found): 'done' | 'reload' {
    const { memo, remember } = this.#deps;
    const { named, target, sequence, runs } = found;
    if (this.#looking !== look) return 'done';
    this.#looking = undefined;
    const row = this.#row as CronSchedule;
    const isElsewhere = target !== this.#targetOf(row, look.run.id);
    if (isElsewhere || this.#isBlocked(row, target)) {
      this.#later(0);
      return 'done';
    }
    const { missing } = memo(this.#id);
    if (sequence === undefined && missing !== target) {
      // The row may have been deleted with the sequence, so it is reloaded first.
      remember(this.#id, { missing: target });
      return 'reload';
    }
    if (missing !== undefined) remember(this.#id, { missing: undefined });
    const { overlap_policy: policy } = row;
    if (found.refusal !== undefined) this.#goOn(turn, row, { last_error: found.refusal.message });
    else if (found.collected !== undefined) {
      this.#goOn(turn, row, { last_triggered_at: isoTime(this.#deps.now()), last_error: null });
    } else if (policy === 'buffer_one' && runs.length > 0) {
      this.#deps.awaitRuns(this.#id, runs);
      this.#later(BUFFERED_AGAIN_MS);
    } else if (policy === 'skip' && runs.length > 0) {
      const at = isoTime(this.#deps.now());
      this.#goOn(turn, row, { skipped_fires: row.skipped_fires + 1, last_skipped_at: at });
    } else this.#fire(turn, row, sequence, named);
    return 'done';
  }

  #targetOf(row: CronSchedule, run: string): string {
    return aimOf(this.#deps, row, run).target;
  }

  #isBlocked({ sequence_id }: CronSchedule, target: string): boolean {
    const { plans } = this.#deps;
    return plans.isBlocked(target) || (sequence_id !== null && plans.isBlocked(sequence_id));
  }

  #fire(turn: Turn, row: CronSchedule, sequence: StoredSequence | undefined, named?: NamedId) {
    const at = fireTimeOf(row);
    const { memo, remember } = this.#deps;
    const { spent: last } = memo(this.#id);
    const spent = last?.at === at ? last : undefined;
    if (last !== undefined) remember(this.#id, { spent: undefined });
    const id = firedInstanceId(row.id, at);
    const error =
      sequence === undefined ? missingText(row, named) : inputProblem(row, id, sequence);
    if (spent !== undefined || error !== null) {
      this.#goOn(turn, row, { last_error: error ?? spent?.error ?? null });
      return;
    }
    const now = this.#deps.now();
    turn.gate = 'exists';
    const run = firedRun(row);
    const inserted = this.#insertRun(turn, row, run, now, sequence?.plan);
    this.#goOn(turn, row, { last_triggered_at: isoTime(now), last_error: null });
    this.#step = { firing: at, created: sequence && { ...inserted, plan: sequence.plan } };
  }

  #insertRun(turn: Turn, row: CronSchedule, run: Run, now: UnixMs, plan: Plan | undefined) {
    const { id } = run;
    const { tenant_id } = row;
    const { asked: sequence_id, route } = aimOf(this.#deps, row, id);
    const body = { ...bodyOf(row, run), sequence_id };
    const record = newRecord({ id, body, route }, now, plan);
    const rank = rankOf(record.priority);
    const line = wholeLine(record, [], row.id);
    turn.put(INSTANCE.insert, id, line);
    const timer = { instance_id: id, fire_at: isoTime(now), recover: false, rank };
    turn.put(TIMER.set, id, timer);
    putCancelWaits(record, turn);
    putSearchTerms(turn, record, plan?.searchable);
    turn.count('engine_cron_triggered_total');
    turn.effects.push({ kind: 'counted', tenant: tenant_id, change: 'created' });
    turn.effects.push({ kind: 'continue', instance: id, rank });
    return { record, characters: line.length };
  }

  /** Sets the next fire after now, which skips missed fires. */
  #goOn(turn: Turn, row: CronSchedule, changes: Partial<CronSchedule>): void {
    this.#step = {};
    this.#put(turn, { ...row, ...changes, next_fire_at: nextFireOf(row, this.#deps.now()) });
  }

  #later(ms: number): void {
    this.#deps.wakeAt(this.#id, this.#deps.now() + ms);
  }
}

/** The run of the current fire. */
function firedRun(row: CronSchedule): Run {
  const at = fireTimeOf(row);
  const idempotency_key = `cron:${row.id}:${isoTime(at)}`;
  return { id: firedInstanceId(row.id, at), idempotency_key };
}

/** The creation of a run as a request. */
export function bodyOf(row: CronSchedule, { idempotency_key }: Run): CreateInstance {
  const { tenant_id, namespace, sequence_id, sequence, version } = row;
  const { timezone, metadata, context, timeout } = row;
  const priority = row.priority.toLowerCase() as Priority;
  const started = { timezone, metadata, context, priority, timeout, idempotency_key };
  return { tenant_id, namespace, sequence_id, sequence, version, ...started };
}

/** `last_error` of a fire whose sequence is missing. */
function missingText(row: CronSchedule, named: NamedId): string {
  const what = sequenceNotFound(row.sequence_id, nameIn(row), named);
  return named === null ? what : `${what} is not found`;
}

/** Why the sequence does not accept the context of the schedule; null when it does. */
export function inputProblem(
  { context, namespace }: CronSchedule,
  id: string,
  sequence: StoredSequence,
): string | null {
  const { checkInput, plan } = sequence;
  const problem = checkInput?.(context.data);
  if (problem !== undefined) return `context.data ${problem}`;
  const { config = {} } = context;
  const data = startedData(context.data, sequence);
  const limit = plan.flow && keyProblem(plan.flow, plan.name, { id, namespace, data, config });
  return limit ?? cancelProblem(sequence, { id, data, config }) ?? null;
}

/**
 * The requested sequence id, '' when unknown, and the target: a release may route the instance unless its version is
 * pinned. Without a cohort key each instance is routed separately.
 */
export function aimOf(
  { names, routing }: Pick<CronDeps, 'names' | 'routing'>,
  row: CronSchedule,
  run: string,
) {
  const name = nameIn(row);
  const asked = row.sequence_id ?? (name && names.get(name)) ?? '';
  const keyOf = () => cohortKeyIn(row.metadata) ?? run;
  const route = isPinned(row) ? undefined : routing.route(asked, row.tenant_id, keyOf);
  return { asked, route, target: route?.sequenceId ?? asked };
}

/** Whether a lookup for one is valid for the other. */
function isSameFire(a: CronSchedule, b: CronSchedule): boolean {
  return (
    a.enabled === b.enabled &&
    a.next_fire_at === b.next_fire_at &&
    a.overlap_policy === b.overlap_policy &&
    a.context === b.context
  );
}
