/** Advances an instance by an event, and records the progress in the turn. Every change of an execution is made here. */

import type { StepRecord } from '../../schema/execution.js';
import type { FailureCode } from '../../schema/failure.js';
import { isEnded, PRIORITIES, rankOf } from '../../schema/states.js';
import { EngineError } from '../../src/base/errors.js';
import type { JsonObject, JsonValue } from '../../src/base/json.js';
import { LIMITS } from '../../src/base/limits.js';
import { msOfTime, type UnixMs } from '../../src/base/time.js';
import { advance as advancePlan } from '../../src/core/evaluator.js';
import { charactersKept } from '../../src/core/loop-items.js';
import type {
  ChildStart,
  EngineEvent,
  Env,
  Progress,
  Snapshot,
  StepTry,
  TryEvent,
} from '../../src/core/progress.js';
import type { FamilyMessage } from '../runtime/protocol.js';
import type { Turn } from '../runtime/turn.js';
import { type Found, putFirstTimer } from './creation.js';
import { recordEventWaits } from './event-waits.js';
import { type LiveInstance, nextId, stepKey } from './live-instance.js';
import { bytesBeyond, checkSize, type TaskStep } from './memory.js';
import { recordProgress, tellPeer } from './progress.js';
import {
  type InstanceRecord,
  isKeyed,
  type NewInstance,
  nameIn,
  newRecord,
  offersTasks,
  permitStatus,
  wholeRow,
} from './record.js';
import { FAMILY_MESSAGE, INSTANCE } from './tables.js';
import type { WorkerTaskRecord } from './worker-task.js';

/** The actor of the key decides. */
const ALWAYS = (): boolean => true;

/** One turn of the evaluator, made for every event, so that nothing is copied. */
class Surroundings implements Env {
  readonly now: number;
  readonly random: () => number;
  readonly unpoliciedRetry: Env['unpoliciedRetry'];
  readonly stepBudget = LIMITS.stepsPerTurn;
  readonly outputBytesBudget = LIMITS.outputBytesPerTurn;
  readonly holdsPermit: boolean;
  readonly isRateLimited = ALWAYS;
  /** By the monotonic clock. */
  readonly began: number;
  readonly #actor: LiveInstance;

  constructor(actor: LiveInstance, event: EngineEvent) {
    const { now, random, unpoliciedRetry, monotonic } = actor.env;
    this.began = monotonic();
    this.now = now();
    this.random = random;
    this.unpoliciedRetry = unpoliciedRetry;
    this.holdsPermit =
      !isKeyed(actor.record) || event.kind === 'admitted' || permitStatus(actor.record) === 'held';
    this.#actor = actor;
  }

  isOver(): boolean {
    return this.#actor.env.monotonic() - this.began >= LIMITS.turnMs;
  }

  extendedUntil(step: TaskStep, queueTimeoutMs: number | null): UnixMs | undefined {
    return extendedUntil(this.#actor, step, queueTimeoutMs);
  }

  fitsContext(data: JsonObject): boolean {
    return fitsContext(this.#actor, data);
  }
}

export function advance(actor: LiveInstance, turn: Turn, event: EngineEvent): Progress {
  const env = new Surroundings(actor, event);
  const { snapshot } = actor.record;
  const before = beforeOf(snapshot);
  const progress = advancePlan(actor.plan, snapshot, event, env);
  recordProgress(actor, turn, progress);
  if (progress.opensEventWait === true || actor.eventWaits.size > 0) recordEventWaits(actor, turn);
  countProgress(turn, event, before, snapshot, progress);
  const seconds = (actor.env.monotonic() - env.began) / 1_000;
  actor.env.measures?.advanced(seconds, progress.counts.stepsInPlace);
  const all = progress.children === undefined ? progress : handleChildren(actor, turn, progress);
  return boundMemory(actor, turn, all);
}

/** For an event of a try: undefined when the try is not open, and nothing happened. */
export function advanceTry(actor: LiveInstance, turn: Turn, event: TryEvent): Progress | undefined {
  const progress = advance(actor, turn, event);
  return progress.stale === true ? undefined : progress;
}

/** Fails an instance that keeps too much in memory. */
function boundMemory(actor: LiveInstance, turn: Turn, progress: Progress): Progress {
  const { kept, tasks, record } = actor;
  const ofItems = charactersKept(record.snapshot.items) + tasks.characters;
  if (kept.characters + ofItems <= LIMITS.keptCharactersMax || isEnded(record.snapshot.state)) {
    return progress;
  }
  kept.count(record.snapshot);
  if (kept.characters + ofItems <= LIMITS.keptCharactersMax) return progress;
  return advance(actor, turn, { kind: 'stop', state: 'failed', failure: TOO_MUCH });
}

const TOO_MUCH = {
  code: 'memory_limit',
  message:
    'the outputs that expressions read, the items of for_each blocks and the parameters of open ' +
    `tasks are together larger than ${LIMITS.keptCharactersMax / 1024 / 1024} MiB`,
} as const;

/** Events by which the engine continues an instance; the others are requests, which run nothing. */
const TAKES_UP: ReadonlySet<EngineEvent['kind']> = new Set<EngineEvent['kind']>([
  'wake',
  'admitted',
  'step.outcome',
  'step.refused',
  'child.ended',
  'rate.granted',
  'event.arrived',
]);

export interface Before {
  readonly isScheduled: boolean;
  readonly hasBegun: boolean;
}

export function beforeOf({ state, execution }: Snapshot): Before {
  return { isScheduled: state === 'scheduled', hasBegun: execution.t !== null };
}

/** An instance counts as claimed when it leaves `scheduled`, begins, or executes a step between two delays. */
export function countProgress(
  turn: Turn,
  event: EngineEvent,
  before: Before,
  snapshot: Snapshot,
  { counts }: Progress,
): void {
  if (before.isScheduled && TAKES_UP.has(event.kind)) {
    const { isScheduled, hasBegun } = beforeOf(snapshot);
    if (!isScheduled || hasBegun !== before.hasBegun || counts.stepsExecuted > 0) {
      turn.count('engine_instances_claimed_total');
    }
  }
  turn.count('engine_steps_executed_total', counts.stepsExecuted);
  turn.count('engine_steps_failed_total', counts.stepsFailed);
  turn.count('engine_steps_retried_total', counts.stepsRetried);
  turn.count('engine_timeouts_total', counts.timeouts);
  turn.count('engine_deadlines_breached_total', counts.breaches);
}

/** Continues after the present unit is committed; its timer row replaces a lost message. */
export function continueAfter({ record }: LiveInstance, turn: Turn): void {
  const { id, priority } = record;
  turn.effects.push({ kind: 'continue', instance: id, rank: rankOf(priority) });
}

function fitsContext(
  { env: { maxContextBytes }, record }: LiveInstance,
  data: JsonObject,
): boolean {
  const { snapshot, context_audit } = record;
  if (maxContextBytes === 0) return true;
  const context = { data, config: snapshot.config, audit: context_audit };
  return bytesBeyond(context, maxContextBytes) === undefined;
}

/** @throws EngineError 413 when the sections together are larger than ENGINE_MAX_CONTEXT_BYTES */
export function checkContextSize(
  { env: { maxContextBytes } }: LiveInstance,
  data: JsonObject,
  config: JsonObject,
  audit: JsonValue[],
): void {
  if (maxContextBytes === 0) return;
  checkSize('context is', { data, config, audit }, maxContextBytes);
}

/**
 * A time limit of a task is extended when a worker's report could not arrive, or the task was not offered
 * (docs/reference/steps.md).
 *
 * @param queueTimeoutMs the limit of the wait for a worker; null: there is none
 * @returns until when; undefined: the limit has passed
 */
function extendedUntil(
  actor: LiveInstance,
  step: TaskStep,
  queueTimeoutMs: number | null,
): UnixMs | undefined {
  const task = actor.tasks.lastOf(step);
  if (task === undefined) return undefined;
  const unheard = unheardUntil(actor, task);
  if (unheard !== undefined || task.state !== 'pending') return unheard;
  if (queueTimeoutMs === null || offersTasks(actor.record)) return undefined;
  // Its time begins when it is offered again.
  const { h } = actor.record.snapshot.execution;
  return Math.max(h ?? 0, actor.env.now()) + queueTimeoutMs;
}

/** After an outage workers have some time for the reports that could not arrive. */
function unheardUntil(
  { env }: LiveInstance,
  { claimed_at, created_at }: WorkerTaskRecord,
): UnixMs | undefined {
  const end = env.outageEnd();
  if (msOfTime(claimed_at ?? created_at) >= end) return undefined;
  const until = end + Math.min(env.workerStaleMs, LIMITS.reportGraceMs);
  return until > env.now() ? until : undefined;
}

// ---------------------------------------------------------------- children

/**
 * Carries out what blocks request of children, which are instances that they start. The parent's unit inserts the
 * child in its first state, so that it exists if and only if the parent knows of it.
 *
 * @returns the progress of all of it
 */
function handleChildren(actor: LiveInstance, turn: Turn, progress: Progress): Progress {
  let came = progress;
  for (const order of progress.children ?? []) {
    switch (order.kind) {
      case 'start': {
        const next = startChild(actor, turn, order);
        if (next !== undefined) came = joined(came, next);
        break;
      }
      case 'cancel':
        actor.running.delete(stepKey(order));
        if (order.child !== undefined) putNote(actor, turn, order.child, 'cancel');
        break;
      case 'retry':
      case 'clean_up':
        putNote(actor, turn, order.child, order.kind);
        break;
      case 'look': {
        const { node, iteration, attempt, child } = order;
        const step = { node, iteration, attempt };
        actor.running.set(stepKey(step), step);
        turn.effects.push({ kind: 'child.look', instance: actor.record.id, child, step });
      }
    }
  }
  return came;
}

/** The progress of two evaluations of one message. */
function joined(first: Progress, last: Progress): Progress {
  return { ...last, audit: [...first.audit, ...last.audit] };
}

/** Whether the block still waits for this child. */
export function awaits({ record }: LiveInstance, { node, attempt }: StepTry): boolean {
  const open = record.snapshot.execution.o[node] as StepRecord | undefined;
  return open?.p === 'child' && open.a === attempt;
}

/**
 * Creates the child, or requests its place, which follows by `child.found`.
 *
 * @param found what was read for it
 * @returns the progress after the creation or its failure; undefined: neither yet
 */
export function startChild(
  actor: LiveInstance,
  turn: Turn,
  start: ChildStart,
  found?: Found,
): Progress | undefined {
  const { node, iteration, attempt } = start;
  const step = { node, iteration, attempt };
  // The end of another child of this turn may have cut it off.
  if (!awaits(actor, start)) return undefined;
  const refuse = (code: FailureCode, message: string) => {
    const end = { kind: 'failed', code, message } as const;
    return advance(actor, turn, { kind: 'child.ended', ...step, end });
  };
  const depth = depthOf(actor.record) + 1;
  if (depth > LIMITS.childDepthMax) {
    return refuse('child_too_deep', `children nest at most ${LIMITS.childDepthMax} deep`);
  }
  const requested = requestOf(actor, start, depth);
  let child: NewInstance | undefined;
  let isLater = false;
  try {
    child = actor.env.placeChild(requested, found);
  } catch (error) {
    if (!(error instanceof EngineError)) throw error;
    if (error.status !== 503) return refuse('child_not_started', error.message);
    isLater = true;
  }
  if (child !== undefined) {
    putChild(actor, turn, child);
    return advance(actor, turn, { kind: 'child.made', ...step, child: child.id });
  }
  // Until it is created, loading this instance requests the place again.
  actor.running.set(stepKey(step), step);
  const name = nameIn(requested.body)!;
  turn.effects.push({ kind: 'child.find', instance: actor.record.id, start, name, isLater });
  return undefined;
}

/** Inherits from its parent, but no concurrency key: the two would wait for each other. */
function requestOf({ record }: LiveInstance, start: ChildStart, depth: number): NewInstance {
  const { id, tenant_id, namespace, priority, traceparent, snapshot } = record;
  return {
    id: start.child,
    parent: id,
    traceparent: traceparent ?? undefined,
    body: {
      tenant_id,
      namespace,
      sequence: start.sequence,
      version: start.version,
      priority: PRIORITIES[priority] ?? null,
      timezone: snapshot.timezone,
      metadata: { _parent_block_id: start.blockId, [DEPTH]: depth },
      context: { data: start.input, config: snapshot.config },
      dry_run: snapshot.runtime.dry_run === true,
      dry_run_auto_approve: snapshot.runtime.dry_run_auto_approve === true,
    },
  };
}

const DEPTH = '_sub_sequence_depth';

/** How many ancestors the instance has; metadata of callers does not count. */
function depthOf({ parent_instance_id, metadata }: InstanceRecord): number {
  const depth = metadata[DEPTH];
  return parent_instance_id !== null && typeof depth === 'number' ? depth : 0;
}

function putChild(actor: LiveInstance, turn: Turn, child: NewInstance): void {
  const { id } = child;
  const record = newRecord(child, actor.env.now());
  turn.put(INSTANCE.insertChild, id, wholeRow(record));
  tellPeer(actor, turn, id, putFirstTimer(turn, record));
  turn.count('engine_child_instances_total');
  if (actor.record.snapshot.state === 'paused') putNote(actor, turn, id, 'pause');
}

/** A message to another instance: a row, and its hint. */
export function putNote(
  actor: LiveInstance,
  turn: Turn,
  to: string,
  word: FamilyMessage['word'],
): void {
  const id = nextId(actor);
  const from = actor.record.id;
  turn.put(FAMILY_MESSAGE.set, `${to}:${from}`, { to_id: to, from_id: from, id, word });
  tellPeer(actor, turn, to, { kind: 'family.message', to, from, id, word });
}
