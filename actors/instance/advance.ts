/**
 * Lets the evaluator go on with an instance, and records in the turn what came of it. All who have
 * something happen to an instance do so by this.
 */

import { isEnded, rankOf } from '../../schema/states.js';
import type { JsonObject, JsonValue } from '../../src/base/json.js';
import { LIMITS } from '../../src/base/limits.js';
import type { UnixMs } from '../../src/base/time.js';
import { advance as advancePlan } from '../../src/core/evaluator.js';
import { charactersKept } from '../../src/core/loop-items.js';
import type { EngineEvent, Env, Progress, Snapshot, TryEvent } from '../../src/core/progress.js';
import type { Turn } from '../runtime/turn.js';
import { askAboutChildren } from './children.js';
import { recordEventWaits } from './event-waits.js';
import type { LiveInstance } from './live-instance.js';
import { bytesBeyond, checkSize, type TaskStep } from './memory.js';
import { recordProgress } from './progress.js';
import { isKeyed, permitStatus } from './record.js';
import { extendedUntil } from './spared-limits.js';

/** Whether there is a limit for a key its actor knows. */
const ALWAYS = (): boolean => true;

/** One turn of the evaluator with one instance: made for every event, so nothing is copied for it. */
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

/** Lets the evaluator take in one event and records what it did. */
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
  if (progress.children === undefined) return boundMemory(actor, turn, progress);
  const goOn = (refused: EngineEvent) => advance(actor, turn, refused);
  return boundMemory(actor, turn, askAboutChildren(actor, turn, progress, goOn));
}

/** For an event about a try: undefined when that is not open, and nothing happened. */
export function advanceTry(actor: LiveInstance, turn: Turn, event: TryEvent): Progress | undefined {
  const progress = advance(actor, turn, event);
  return progress.stale === true ? undefined : progress;
}

/** Fails an instance that keeps more than it may; the progress of another one is as it was. */
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

/** By these the engine takes an instance up; the others are moves by request, which run nothing. */
const TAKES_UP: ReadonlySet<EngineEvent['kind']> = new Set<EngineEvent['kind']>([
  'wake',
  'admitted',
  'step.outcome',
  'step.refused',
  'child.ended',
  'rate.granted',
  'event.arrived',
]);

/** What has to be known from before the event. */
export interface Before {
  readonly isScheduled: boolean;
  readonly hasBegun: boolean;
}

export function beforeOf({ state, execution }: Snapshot): Before {
  return { isScheduled: state === 'scheduled', hasBegun: execution.t !== null };
}

/**
 * An instance is claimed each time that the engine goes on with it from `scheduled`: it leaves that
 * state, or begins, or gets a step done between two delays.
 */
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

/** Runs on after the present unit is committed; its timer row makes up for a lost message. */
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
