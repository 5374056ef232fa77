/**
 * Lets the evaluator go on with an instance, and records in the turn what came of it. All who have
 * something happen to an instance do so by this.
 */

import { LIMITS } from '../../src/config.js';
import type { TurnEnv } from '../../src/core/evaluation.js';
import { advance as advancePlan } from '../../src/core/evaluator.js';
import type { JsonObject, JsonValue } from '../../src/core/json.js';
import type { EngineEvent, Progress } from '../../src/core/progress.js';
import { isEnded, rankOf } from '../../src/core/states.js';
import { tooLarge } from '../../src/errors.js';
import type { Turn } from '../runtime/turn.js';
import { beforeOf, countProgress } from './counts.js';
import * as limits from './limits.js';
import type { LiveInstance } from './live-instance.js';
import { recordProgress } from './progress.js';
import { contextRow } from './record.js';

/** Whether there is a limit for a key its actor knows. */
const ALWAYS = (): boolean => true;

/** Lets the evaluator take in one event and records what it did. */
export function advance(actor: LiveInstance, turn: Turn, event: EngineEvent): Progress {
  const { now, random, unpoliciedRetry, monotonic } = actor.env;
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
    !limits.isKeyed(actor.record) ||
    event.kind === 'admitted' ||
    limits.permitStatus(actor.record) === 'held';
  const { snapshot } = actor.record;
  const before = beforeOf(snapshot);
  const progress = advancePlan(actor.plan, snapshot, event, { ...env, holdsPermit });
  recordProgress(actor, turn, progress);
  countProgress(turn, event, before, snapshot, progress);
  const seconds = (monotonic() - began) / 1_000;
  actor.env.measures?.advanced(seconds, progress.counts.stepsInPlace);
  return boundMemory(actor, turn, progress);
}

/** Fails an instance that keeps more than it may; the progress of another one is as it was. */
function boundMemory(actor: LiveInstance, turn: Turn, progress: Progress): Progress {
  const { kept, tasks, record } = actor;
  if (
    kept.characters + tasks.characters <= LIMITS.keptCharactersMax ||
    isEnded(record.snapshot.state)
  )
    return progress;
  kept.count(record.snapshot);
  if (kept.characters + tasks.characters <= LIMITS.keptCharactersMax) return progress;
  const stopped = advance(actor, turn, { kind: 'stop', state: 'failed', reason: TOO_MUCH });
  return { ...stopped, dataChanged: progress.dataChanged || stopped.dataChanged };
}

const TOO_MUCH =
  'the outputs that expressions read, the items of for_each blocks and the parameters of open ' +
  `tasks are together larger than ${LIMITS.keptCharactersMax / 1024 / 1024} MiB`;

/** Runs on after the present unit is committed; its timer row makes up for a lost message. */
export function continueAfter({ record }: LiveInstance, turn: Turn): void {
  const { id, priority } = record;
  turn.effects.push({ kind: 'continue', instance: id, rank: rankOf(priority) });
}

/** @throws EngineError 413 when the sections together are larger than ENGINE_MAX_CONTEXT_BYTES */
export function checkContextSize(
  { env }: LiveInstance,
  data: JsonObject,
  config: JsonObject,
  audit: JsonValue[],
): void {
  const max = env.maxContextBytes;
  if (max === 0) return;
  const bytes = Buffer.byteLength(JSON.stringify({ data, config, audit }));
  if (bytes > max) throw tooLarge(`context is ${bytes} bytes, the limit is ${max}`);
}

export function touchContext({ record }: LiveInstance, turn: Turn): void {
  turn.put('instance.context', record.id, contextRow(record));
}
