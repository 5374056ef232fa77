/** Advances an instance by an event. This is the only module that changes an execution. */

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
  TryEvent,
} from '../../src/core/progress.js';
import type { FamilyMessage } from '../runtime/protocol.js';
import type { Turn } from '../runtime/turn.js';
import { type Found, putFirstTimer } from './creation.js';
import { recordEventWaits } from './event-waits.js';
import { type LiveInstance, nextId, type PlacedChild, stepKey } from './live-instance.js';
import { bytesBeyond, checkSize, type TaskStep } from './memory.js';
import { recordProgress, sendToPeer } from './progress.js';
import {
  type InstanceRecord,
  isKeyed,
  type NewInstance,
  nameIn,
  newRecord,
  offersTasks,
  permitStatus,
  wholeLine,
} from './record.js';
import { FAMILY_MESSAGE, INSTANCE } from './tables.js';

/** The actor of the rate limit decides whether a try must wait. */
const ALWAYS = (): boolean => true;

/** The environment of one evaluation. It refers to the actor, so that an event copies nothing. */
class Surroundings implements Env {
  readonly now: number;
  readonly random: () => number;
  readonly unpoliciedRetry: Env['unpoliciedRetry'];
  readonly stepBudget = LIMITS.stepsPerTurn;
  readonly outputBytesBudget = LIMITS.outputBytesPerTurn;
  readonly holdsPermit: boolean;
  readonly mayStart: boolean;
  readonly isRateLimited = ALWAYS;
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
    this.mayStart = event.kind === 'start.granted';
    this.#actor = actor;
  }

  isOver(): boolean {
    return this.#actor.env.monotonic() - this.began >= LIMITS.turnMs;
  }

  /** Extends the limit of a task that was not offered, or could not be reported; else undefined. */
  extendedUntil(step: TaskStep, queueTimeoutMs: number | null): UnixMs | undefined {
    const { tasks, record, env } = this.#actor;
    const task = tasks.lastOf(step);
    if (task === undefined) return undefined;
    const outageEnd = env.outageEnd();
    if (msOfTime(task.claimed_at ?? task.created_at) < outageEnd) {
      const graceEnd = outageEnd + Math.min(env.workerStaleMs, LIMITS.reportGraceMs);
      if (graceEnd > env.now()) return graceEnd;
    }
    if (task.state !== 'pending') return undefined;
    if (queueTimeoutMs === null || offersTasks(record)) return undefined;
    // The limit starts again when the task is offered again.
    return Math.max(record.snapshot.execution.h ?? 0, env.now()) + queueTimeoutMs;
  }

  fitsContext(data: JsonObject): boolean {
    const { env, record } = this.#actor;
    if (env.maxContextBytes === 0) return true;
    const context = { data, config: record.snapshot.config, audit: record.context_audit };
    return bytesBeyond(context, env.maxContextBytes) === undefined;
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
  countBlocks(actor, turn, progress);
  const seconds = (actor.env.monotonic() - env.began) / 1_000;
  actor.env.measures?.advanced(seconds, progress.counts.stepsInPlace);
  const all = progress.children === undefined ? progress : handleChildren(actor, turn, progress);
  return boundMemory(actor, turn, all);
}

/** Returns undefined when the try is no longer open; nothing has changed then. */
export function advanceTry(actor: LiveInstance, turn: Turn, event: TryEvent): Progress | undefined {
  const progress = advance(actor, turn, event);
  return progress.stale === true ? undefined : progress;
}

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

/** Events that continue an instance. The others are requests, which execute no steps. */
const TAKES_UP: ReadonlySet<EngineEvent['kind']> = new Set<EngineEvent['kind']>([
  'wake',
  'admitted',
  'start.granted',
  'step.outcome',
  'step.refused',
  'child.ended',
  'rate.granted',
  'event.arrived',
]);

export function beforeOf({ state, execution }: Snapshot) {
  return { isScheduled: state === 'scheduled', hasBegun: execution.t !== null };
}

/** An instance is claimed when it leaves `scheduled`, begins, or executes a step between delays. */
export function countProgress(
  turn: Turn,
  event: EngineEvent,
  before: Readonly<ReturnType<typeof beforeOf>>,
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

/** Dry runs skip the calls that take time. */
function countBlocks({ record, plan }: LiveInstance, turn: Turn, { ended }: Progress): void {
  if (ended === undefined || record.snapshot.runtime.dry_run === true) return;
  const { tenant_id: tenant } = record;
  turn.effects.push({ kind: 'ended', tenant, sequence: plan.sequenceId, blocks: ended });
}

/** Continues once the current unit is committed. The timer row covers the loss of this effect. */
export function continueAfter({ record }: LiveInstance, turn: Turn): void {
  const { id, priority } = record;
  turn.effects.push({ kind: 'continue', instance: id, rank: rankOf(priority) });
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

/** The parent's unit inserts a child, so that it exists if and only if the parent recorded it. */
function handleChildren(actor: LiveInstance, turn: Turn, progress: Progress): Progress {
  let all = progress;
  for (const order of progress.children ?? []) {
    switch (order.kind) {
      case 'start': {
        const next = startChild(actor, turn, order);
        if (next !== undefined) all = { ...next, audit: [...all.audit, ...next.audit] };
        break;
      }
      case 'cancel':
        actor.running.delete(stepKey(order));
        if (order.child !== undefined) putFamilyMessage(actor, turn, order.child, 'cancel');
        break;
      case 'retry':
      case 'clean_up':
        putFamilyMessage(actor, turn, order.child, order.kind);
        break;
      case 'look': {
        const { node, iteration, attempt, child } = order;
        const step = { node, iteration, attempt };
        actor.running.set(stepKey(step), step);
        turn.effects.push({ kind: 'child.look', instance: actor.record.id, child, step });
      }
    }
  }
  return all;
}

export function awaits(
  { record }: LiveInstance,
  { node, attempt, child }: Pick<ChildStart, 'node' | 'attempt' | 'child'>,
): boolean {
  const open = record.snapshot.execution.o[node] as StepRecord | undefined;
  // A second look-up, from before the instance was loaded again, may find the sequence after the child has ended.
  return open?.p === 'child' && open.a === attempt && open.c !== child;
}

/** Undefined while a look-up of the sequence runs, after which `child.found` continues. */
export function startChild(
  actor: LiveInstance,
  turn: Turn,
  start: ChildStart,
  found?: Found,
): Progress | undefined {
  const { node, iteration, attempt } = start;
  const step = { node, iteration, attempt };
  // Another child that ended in this turn may have withdrawn the try.
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
  let child: PlacedChild | undefined;
  let isLater = false;
  try {
    child = actor.env.placeChild(requested, found);
  } catch (error) {
    if (!(error instanceof EngineError)) throw error;
    if (error.status !== 503) return refuse('child_not_started', error.message);
    isLater = true;
  }
  if (child !== undefined) {
    const { instance, plan } = child;
    const record = newRecord(instance, actor.env.now(), plan);
    turn.put(INSTANCE.insertChild, record.id, wholeLine(record));
    sendToPeer(actor, turn, record.id, putFirstTimer(turn, record, plan));
    turn.count('engine_child_instances_total');
    const isPaused = actor.record.snapshot.state === 'paused';
    if (isPaused) putFamilyMessage(actor, turn, record.id, 'pause');
    return advance(actor, turn, { kind: 'child.made', ...step, child: record.id });
  }
  // Loading this instance repeats the look-up until the child exists.
  actor.running.set(stepKey(step), step);
  const name = nameIn(requested.body)!;
  turn.effects.push({ kind: 'child.find', instance: actor.record.id, start, name, isLater });
  return undefined;
}

/** Inherits all but the concurrency key: parent and child would wait for each other. */
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

/** The number of ancestors. Metadata that a caller sent does not count. */
function depthOf({ parent_instance_id, metadata }: InstanceRecord): number {
  const depth = metadata[DEPTH];
  return parent_instance_id !== null && typeof depth === 'number' ? depth : 0;
}

/** Stores a message to another instance, and sends a hint. */
export function putFamilyMessage(
  actor: LiveInstance,
  turn: Turn,
  to: string,
  word: FamilyMessage['word'],
): void {
  const id = nextId(actor);
  const from = actor.record.id;
  turn.put(FAMILY_MESSAGE.set, `${to}:${from}`, { to_id: to, from_id: from, id, word });
  sendToPeer(actor, turn, to, { kind: 'family.message', to, from, id, word });
}
