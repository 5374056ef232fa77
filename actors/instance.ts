/**
 * The state machine of one instance (specification: 'Instance states'). Owns its row, context,
 * outputs, signals, worker tasks and audit. A message goes in, a Turn comes out: no I/O, no waiting.
 * What a message changes in memory is ahead of the database until its unit is acknowledged; if the
 * unit is refused, the whole actor is discarded and rebuilt from rows.
 */

import { LIMITS } from '../src/config.js';
import type { TurnEnv } from '../src/core/evaluation.js';
import { advance, treeOf } from '../src/core/evaluator.js';
import type { IdGenerator } from '../src/core/ids.js';
import { routeOf } from '../src/core/ids.js';
import type { JsonObject, JsonValue } from '../src/core/json.js';
import type { Plan } from '../src/core/plan.js';
import type { EngineEvent, Progress } from '../src/core/progress.js';
import { canPatch, type InstanceState, isEnded, isTerminal, rankOf } from '../src/core/states.js';
import { isoTime, type UnixMs } from '../src/core/time.js';
import { EngineError, notFound, tooLarge } from '../src/errors.js';
import { noteOutcome } from './attribution.js';
import { type Change, concerns } from './change-many.js';
import { beforeOf, countProgress } from './instance-counts.js';
import * as limits from './instance-limits.js';
import { failedEffect } from './instance-lines.js';
import { boundMemory, KeptValues } from './instance-memory.js';
import type { InstanceMessage, InstanceRequest } from './instance-messages.js';
import * as notes from './instance-notes.js';
import { askDesk } from './instance-ownership.js';
import { recordBatchAction, recordProgress, recordTransition } from './instance-progress.js';
import {
  changingRow,
  contextOf,
  contextRow,
  type InstanceRecord,
  wholeRow,
  wireInstance,
} from './instance-record.js';
import * as signals from './instance-signals.js';
import * as tasks from './instance-tasks.js';
import type { Measures } from './measures.js';
import type { Operation } from './preparation.js';
import { TaskShelf } from './task-shelf.js';
import type { StepRef } from './turn.js';
import { Turn } from './turn.js';
import { noteEnd } from './webhook-notes.js';

/** What an instance's actor is handed: settings, time, randomness, ids. */
export interface InstanceEnv {
  readonly now: () => UnixMs;
  /** The time of audit entries: never earlier than what a reader of the change feed has seen. */
  readonly stamp: () => UnixMs;
  readonly random: () => number;
  readonly ids: IdGenerator;
  readonly shards: number;
  readonly unpoliciedRetry: 'redispatch' | 'fail';
  readonly requireClaimEpoch: boolean;
  readonly workerStaleMs: number;
  readonly maxContextBytes: number;
  /** Whom to tell of its end. */
  readonly webhookUrls: readonly string[];
  /** Heartbeat silence counts from here at the earliest: while the engine was away none could come. */
  readonly readySince: () => UnixMs;
  /** Milliseconds from an arbitrary origin. */
  readonly monotonic: () => number;
  /** Absent: nobody measures. */
  readonly measures?: Measures;
}

/** What a message may change about an instance that has rows elsewhere. */
interface Standing {
  readonly state: InstanceState;
  readonly permit: limits.PermitStatus;
}

/** Whether there is a limit for a key its actor knows. */
const ALWAYS = (): boolean => true;

/** The row of the instance in `timers`, as last written; undefined when there is none. */
export interface StoredTimer {
  readonly fireAt: UnixMs | null;
  readonly recover: boolean;
}

export class InstanceActor {
  readonly record: InstanceRecord;
  /** Of its sequence and of the blocks that are its own. */
  plan: Plan;
  readonly env: InstanceEnv;
  /** Open tasks, and those that ended lately; the others are in their table. */
  readonly tasks = new TaskShelf();
  readonly kept: KeptValues;
  /** In-process steps whose outcome has not come back, by node and iteration. */
  readonly running = new Map<string, StepRef>();
  /** When the latest grants of rate limits were used: one that comes twice is not taken for unused. */
  readonly usedGrants = new Map<number, UnixMs>();
  timer: StoredTimer | undefined;
  /** Collects the audit of the unit that creates the instance, which its row carries. */
  birthAudit: object[] | undefined;
  readonly #route: number;

  constructor(record: InstanceRecord, plan: Plan, env: InstanceEnv) {
    this.record = record;
    this.plan = plan;
    this.env = env;
    this.kept = new KeptValues(record.snapshot);
    this.#route = routeOf(record.id);
  }

  /** The shard may drop the actor from memory: its rows say everything. */
  get isPassive(): boolean {
    return this.running.size === 0;
  }

  get wakeAt(): UnixMs | null {
    return this.timer?.fireAt ?? null;
  }

  nextId(): string {
    return this.env.ids.next(this.#route);
  }

  /**
   * The unit that creates the instance, advanced as far as it goes without the outside world
   * (eager start): creation and that progress are one commit.
   *
   * @param gated the id comes from an idempotency key, so that the row may be there already
   */
  create(request: number, gated: boolean): Turn {
    const turn = this.bear((birth) => this.advance(birth, { kind: 'wake' }));
    turn.gate = gated ? 'exists' : 'none';
    turn.reply(request, 201, `{"id":"${this.record.id}","deduplicated":false}`);
    return turn;
  }

  /** The unit that creates the instance, with all that it does before its first commit. */
  bear(begin: (birth: Turn) => Progress): Turn {
    const turn = new Turn();
    this.birthAudit = [];
    const { record } = this;
    const { createdAt: begunAt, snapshot } = record;
    record.createdAt = this.env.stamp();
    this.#touch();
    const before = this.#standing();
    const progress = begin(turn);
    // The stamp may be later than the clock: nothing is due before it was created.
    if (snapshot.nextFireAt === begunAt) snapshot.nextFireAt = record.createdAt;
    this.#settle(turn, progress, before);
    notes.putLines(this, turn);
    turn.put('instance.insert', this.record.id, wholeRow(this.record, this.birthAudit));
    this.birthAudit = undefined;
    return turn;
  }

  /** Whether the caller may know of this instance. */
  isSeenBy(tenant: string): boolean {
    return tenant === '' || tenant === this.record.tenantId;
  }

  /**
   * @param operation what the message does, if that was prepared (`preparation.ts`)
   * @throws nothing for a wrong request: its error is an effect of the Turn
   */
  handle(message: InstanceMessage, operation?: Operation): Turn {
    const turn = new Turn();
    const before = this.#standing();
    try {
      if ('tenant' in message) this.#checkTenant(message);
      const progress = operation === undefined ? this.#apply(turn, message) : operation(turn);
      if (progress !== undefined) this.#write(turn, progress, before);
      notes.putLines(this, turn);
    } catch (error) {
      if (!(error instanceof EngineError) || !('request' in message)) throw error;
      // Every check comes before the first change, so an answer with an error is all there is.
      const refusal = new Turn();
      refusal.fail(message.request, error);
      return refusal;
    }
    return turn;
  }

  /** @returns what the evaluator did, `'touched'` when only the row changed, undefined for neither */
  #apply(turn: Turn, message: InstanceMessage): Progress | 'touched' | undefined {
    switch (message.kind) {
      case 'get':
        turn.reply(message.request, 200, JSON.stringify(wireInstance(this.record)));
        return undefined;
      case 'tree':
        turn.reply(
          message.request,
          200,
          JSON.stringify(treeOf(this.plan, this.record.snapshot.execution, this.record.id)),
        );
        return undefined;
      case 'patchState':
        return this.#patchState(turn, message.request, message.state, message.nextFireAt);
      case 'patchContext':
        return this.#patchContext(turn, message);
      case 'signal':
        return signals.signal(this, turn, message);
      case 'retry':
        return this.#retry(turn, message.request);
      case 'change':
        return this.#change(turn, message.group, message.change);
      case 'checkpoint.save':
        return notes.saveCheckpoint(this, turn, message);
      case 'look':
        turn.reply(
          message.request,
          200,
          `{"state":"${this.record.snapshot.state}","version":${message.version}}`,
        );
        return undefined;
      case 'wake':
        return this.#wake(turn, message.recovered);
      case 'permit.granted':
        return limits.permitGranted(this, turn, message.number);
      case 'rate.granted':
        return limits.rateGranted(this, turn, message);
      case 'rate.deferred':
        return limits.rateDeferred(this, turn, message);
      case 'rate.changed':
        return limits.rateChanged(this, turn, message);
      case 'step.outcome':
        return this.#outcome(turn, message.step, message.outcome);
      case 'unit.refused':
        return this.#refused(turn, message.step, message.reason);
      case 'task.complete':
        return tasks.complete(this, turn, message);
      case 'task.fail':
        return tasks.fail(this, turn, message);
      case 'task.heartbeat':
        return tasks.heartbeat(this, turn, message);
      case 'claim':
        tasks.claim(this, turn, message);
        return undefined;
      case 'unclaim':
        tasks.unclaim(this, turn, message.task, message.epoch);
        return undefined;
      case 'reap':
        tasks.reap(this, turn, message.task);
        return undefined;
      case 'injectBlocks':
      case 'resumeFrom':
      case 'fork':
      case 'migrate':
      case 'order':
      case 'checkpoint.prune':
        throw new Error(`${message.kind} has to be prepared`);
    }
  }

  /** Lets the evaluator take in one event and records what it did. */
  advance(turn: Turn, event: EngineEvent): Progress {
    const { now, random, unpoliciedRetry, monotonic } = this.env;
    const began = monotonic();
    const env: TurnEnv = {
      now: now(),
      random,
      unpoliciedRetry,
      stepBudget: LIMITS.stepsPerTurn,
      outputBytesBudget: LIMITS.outputBytesPerTurn,
      isOver: () => monotonic() - began >= LIMITS.turnMs,
      isRateLimited: ALWAYS,
    };
    const holdsPermit =
      !limits.isKeyed(this.record) ||
      event.kind === 'admitted' ||
      limits.permitStatus(this.record) === 'held';
    const { snapshot } = this.record;
    const before = beforeOf(snapshot);
    const progress = advance(this.plan, snapshot, event, { ...env, holdsPermit });
    recordProgress(this, turn, progress);
    countProgress(turn, event, before, snapshot, progress);
    const seconds = (monotonic() - began) / 1_000;
    this.env.measures?.advanced(seconds, progress.counts.stepsInPlace);
    return boundMemory(this, turn, progress);
  }

  #checkTenant(message: InstanceRequest): void {
    if (this.isSeenBy(message.tenant)) return;
    throw notFound(
      'task' in message ? `worker task ${message.task}` : `instance ${this.record.id}`,
    );
  }

  // -------------------------------------------------------------- state and context

  #patchState(turn: Turn, request: number, to: InstanceState, at: UnixMs | null): Progress {
    const from = this.record.snapshot.state;
    if (!canPatch(from, to)) {
      throw new EngineError(
        'ENG_INVALID_TRANSITION',
        `invalid argument: state cannot go from ${from} to ${to}`,
      );
    }
    const progress = this.#moveTo(turn, to, at);
    this.#touch();
    turn.reply(request, 200, JSON.stringify(wireInstance(this.record)));
    return progress;
  }

  /** One of a change of many (spec/01 §5.7 and §5.8). */
  #change(turn: Turn, group: number, change: Change): Progress | 'touched' | undefined {
    const { state, nextFireAt } = this.record.snapshot;
    const result = concerns(change, state) ? 'applied' : 'skipped';
    turn.effects.push({ kind: 'changed', group, result });
    if (result === 'skipped') return undefined;
    switch (change.kind) {
      case 'state':
        return this.#moveTo(turn, change.state, null);
      case 'reschedule': {
        const at = (nextFireAt ?? this.env.now()) + change.offsetMs;
        return this.#moveTo(turn, 'scheduled', Math.min(Math.max(at, 0), FIRE_AT_MAX));
      }
      case 'retry':
        recordBatchAction(this, turn, { action: 'retry' });
        return this.#moveTo(turn, 'scheduled', null);
      case 'signal': {
        recordBatchAction(this, turn, actionOf(change.signalType));
        const progress = signals.deliverSignal(this, turn, change);
        signals.storeSignal(this, turn, change);
        return progress;
      }
    }
  }

  /** What a requested state means (spec/06 rows 44 and 72). */
  #moveTo(turn: Turn, to: InstanceState, at: UnixMs | null): Progress {
    const now = this.env.now();
    switch (to) {
      case 'scheduled': {
        const retry = this.record.snapshot.state === 'failed';
        const fireAt = at ?? now;
        const progress = this.advance(
          turn,
          retry ? { kind: 'retry' } : { kind: 'reschedule', at: fireAt },
        );
        if (retry && fireAt > now) return this.advance(turn, { kind: 'reschedule', at: fireAt });
        if (fireAt <= now) this.continueAfter(turn);
        return progress;
      }
      case 'running':
        if (this.record.snapshot.state === 'failed') return this.#moveTo(turn, 'scheduled', null);
        return this.#runNow(turn, this.#needsPermit());
      case 'waiting':
        // One that needs a slot first cannot be parked: it would hold one that nobody gave it.
        return this.#needsPermit()
          ? this.#runNow(turn, true)
          : this.advance(turn, { kind: 'park' });
      case 'paused':
        return this.advance(turn, { kind: 'pause' });
      case 'completed':
      case 'failed':
      case 'cancelled':
        return this.advance(turn, { kind: 'stop', state: to });
    }
  }

  #needsPermit(): boolean {
    const { record } = this;
    const isKeyed = limits.isKeyed(record) && !isEnded(record.snapshot.state);
    return isKeyed && limits.permitStatus(record) !== 'held';
  }

  /** @param asScheduled a slot of the concurrency key comes first, so that it stays scheduled */
  #runNow(turn: Turn, asScheduled: boolean): Progress {
    const progress = this.advance(turn, { kind: 'reschedule', at: null });
    const { snapshot } = this.record;
    if (!asScheduled) {
      recordTransition(this, turn, snapshot.state, 'running');
      turn.count('engine_instances_claimed_total');
      snapshot.state = 'running';
      snapshot.nextFireAt = null;
    }
    this.continueAfter(turn);
    return progress;
  }

  #patchContext(
    turn: Turn,
    message: Extract<InstanceRequest, { kind: 'patchContext' }>,
  ): 'touched' {
    const { snapshot } = this.record;
    const data = message.data ?? snapshot.data;
    const config = message.config ?? snapshot.config;
    const audit = message.audit ?? this.record.contextAudit;
    this.checkContextSize(data, config, audit);
    snapshot.data = data;
    snapshot.config = config;
    this.record.contextAudit = audit;
    this.touchContext(turn);
    turn.reply(message.request, 200, JSON.stringify({ context: contextOf(this.record) }));
    return 'touched';
  }

  /** @throws EngineError 413 when the sections together are larger than ENGINE_MAX_CONTEXT_BYTES */
  checkContextSize(data: JsonObject, config: JsonObject, audit: JsonValue[]): void {
    const max = this.env.maxContextBytes;
    if (max === 0) return;
    const bytes = Buffer.byteLength(JSON.stringify({ data, config, audit }));
    if (bytes > max) throw tooLarge(`context is ${bytes} bytes, the limit is ${max}`);
  }

  touchContext(turn: Turn): void {
    turn.put('instance.context', this.record.id, contextRow(this.record));
  }

  #retry(turn: Turn, request: number): Progress {
    if (this.record.snapshot.state !== 'failed') {
      throw new EngineError(
        'ENG_INVALID_TRANSITION',
        `invalid argument: only a failed instance can be retried, this one is ${this.record.snapshot.state}`,
      );
    }
    const progress = this.#moveTo(turn, 'scheduled', null);
    turn.reply(request, 200, `{"id":"${this.record.id}","state":"scheduled"}`);
    return progress;
  }

  // -------------------------------------------------------------- the engine's own messages

  #wake(turn: Turn, recovered: boolean): Progress | undefined {
    const { snapshot } = this.record;
    if (this.record.fence !== null) {
      askDesk(this, turn);
      return undefined;
    }
    // A hint that came late: what has ended stays as it is, to its last column.
    if (isEnded(snapshot.state) && !recovered) return undefined;
    if (recovered) {
      // The outcomes of these steps can never arrive: their process or thread is gone.
      this.running.clear();
    } else if (snapshot.state === 'scheduled' && (snapshot.nextFireAt ?? 0) > this.env.now()) {
      // Before its start only the time-out of an open task is due.
      if ((this.wakeAt ?? Number.POSITIVE_INFINITY) > this.env.now()) return undefined;
    }
    return this.advance(turn, recovered ? { kind: 'wake', recovered: true } : { kind: 'wake' });
  }

  #outcome(
    turn: Turn,
    step: StepRef,
    outcome: Extract<InstanceMessage, { kind: 'step.outcome' }>['outcome'],
  ): Progress | undefined {
    const key = stepKey(step);
    if (this.running.get(key)?.attempt === step.attempt) this.running.delete(key);
    const progress = this.advance(turn, {
      kind: 'step.outcome',
      ...step,
      outcome,
      external: false,
    });
    turn.origin = step;
    return progress.stale === true ? undefined : progress;
  }

  #refused(turn: Turn, step: StepRef | undefined, reason: string): Progress | undefined {
    if (isTerminal(this.record.snapshot.state)) return undefined;
    return step === undefined
      ? this.advance(turn, { kind: 'stop', state: 'failed', reason })
      : this.advance(turn, { kind: 'step.refused', ...step, message: reason });
  }

  /** Runs on after the present unit is committed; its timer row makes up for a lost message. */
  continueAfter(turn: Turn): void {
    const { id, priority } = this.record;
    turn.effects.push({ kind: 'continue', instance: id, rank: rankOf(priority) });
  }

  // -------------------------------------------------------------- rows

  #standing(): Standing {
    return { state: this.record.snapshot.state, permit: limits.permitStatus(this.record) };
  }

  #touch(): void {
    this.record.updatedAt = Math.max(this.env.now(), this.record.createdAt);
  }

  #write(turn: Turn, progress: Progress | 'touched', before: Standing): void {
    this.#touch();
    if (progress !== 'touched') {
      if (progress.dataChanged) this.touchContext(turn);
      this.#settle(turn, progress, before);
    }
    turn.put('instance.update', this.record.id, changingRow(this.record));
  }

  /** Everything beside the instance's own row that follows from its new state. */
  #settle(turn: Turn, progress: Progress, before: Standing): void {
    limits.recordPermit(this, turn, before.permit);
    this.#writeTimer(turn, progress);
    this.#writeDeadLetter(turn, progress, before.state);
    if (progress.more) this.continueAfter(turn);
  }

  /**
   * Keeps the row in `timers` equal to what the instance waits for. A continuation and an
   * in-process step have no due time of their own: `recover` finds them after a crash.
   */
  #writeTimer(turn: Turn, progress: Progress): void {
    const { id, priority } = this.record;
    const rank = rankOf(priority);
    const continues = turn.effects.some((effect) => effect.kind === 'continue');
    const recover = this.running.size > 0 || progress.more || continues;
    const fireAt = progress.wakeAt;
    if (fireAt === null && !recover) {
      if (this.timer === undefined) return;
      this.timer = undefined;
      turn.put('timer.clear', id, { instance_id: id });
      return;
    }
    if (fireAt !== null) turn.effects.push({ kind: 'timer', instance: id, at: fireAt, rank });
    if (this.timer?.fireAt === fireAt && this.timer.recover === recover) return;
    this.timer = { fireAt, recover };
    turn.put('timer.set', id, {
      instance_id: id,
      fire_at: fireAt === null ? null : isoTime(fireAt),
      recover,
      rank,
    });
  }

  #writeDeadLetter(turn: Turn, progress: Progress, before: InstanceState): void {
    const { id, tenantId, createdAt, snapshot } = this.record;
    if (snapshot.state === before) return;
    if (this.env.webhookUrls.length > 0) noteEnd(this, turn, progress);
    noteOutcome(this.record, turn, before);
    if (snapshot.state === 'completed') turn.count('engine_instances_completed_total');
    if (snapshot.state === 'failed') {
      turn.count('engine_instances_failed_total');
      turn.effects.push(failedEffect(this.record, progress.audit));
      turn.put('deadLetter.set', id, {
        instance_id: id,
        tenant_id: tenantId,
        created_at: isoTime(createdAt),
        failed_at: isoTime(this.env.now()),
        reason: progress.failure ?? 'failed by request',
      });
    } else if (before === 'failed') {
      turn.put('deadLetter.clear', id, { instance_id: id });
    }
  }
}

/** The last instant whose year has four digits, as everywhere in the API. */
const FIRE_AT_MAX = Date.UTC(9999, 11, 31, 23, 59, 59, 999);

const CUSTOM = 'custom:';

/** A batch action as its request named it. */
function actionOf(signalType: string): JsonObject {
  return signalType.startsWith(CUSTOM)
    ? { action: 'signal', signal_type: signalType.slice(CUSTOM.length) }
    : { action: signalType };
}

export function stepKey(step: { readonly node: number; readonly iteration: string }): string {
  return `${step.node}/${step.iteration}`;
}

/** A call about a task that its worker does not hold: 404 without an epoch, 409 with one (row 5). */
export function lostClaim(task: string, epoch: number | undefined): EngineError {
  return epoch === undefined
    ? notFound(`worker task ${task}`)
    : new EngineError('ENG_STALE_EPOCH', `conflict: the claim on worker task ${task} is not held`);
}
