/**
 * From a turn to its answers, written once: its unit is appended, its effects leave when that is
 * durable, and whoever waits for a unit that was not committed is told why.
 */

import {
  conflict,
  EngineError,
  refusedUnit,
  UNKNOWN_OUTCOME,
  unavailable,
} from '../../src/base/errors.js';
import type { Logger } from '../../src/base/log.js';
import type { CommitLog, Settlement } from './commit-log.js';
import { TENANT_HELD } from './held-tenants.js';
import type { Effect, Turn } from './turn.js';

export interface CommitDeps {
  readonly commits: CommitLog;
  /** Performs effects whose unit, if any, is committed. */
  readonly release: (effects: readonly Effect[]) => void;
}

/** What a caller is told of a defect; the log has the rest. */
export const INTERNAL = new EngineError('ENG_INTERNAL', 'internal error');

/**
 * Undefined for a unit that was committed.
 *
 * @param noun what it is a unit of
 * @param exists what is told when the gate of the unit found its row
 */
export function failureOf(
  ack: Settlement,
  noun: string,
  exists = 'there is one with this id already',
): EngineError | undefined {
  switch (ack.outcome) {
    case 'committed':
    case 'inserted':
      return undefined;
    case 'exists':
      return conflict(exists);
    case 'refused':
      return refusedUnit(ack.sqlState, ack.reason);
    case 'suffix':
      return unavailable(
        'ENG_SHARD_RESTARTING',
        `an earlier change of the same ${noun} was refused; nothing of this one happened`,
      );
    case 'lost':
      return UNKNOWN_OUTCOME;
    case 'held':
      return TENANT_HELD;
  }
}

/** What is told in place of these effects when nothing of their unit happened, or nobody knows. */
export function failed(effects: readonly Effect[], error: EngineError): Effect[] {
  const told: Effect[] = [];
  for (const effect of effects) {
    if (effect.kind === 'reply' || effect.kind === 'error') {
      told.push({ kind: 'error', request: effect.request, error });
    } else if (effect.kind === 'changed') {
      const result = error === TENANT_HELD ? 'held' : 'failed';
      told.push({ ...effect, result, error: error.message });
    } else if (effect.kind === 'peer' && effect.message.kind === 'claimed') {
      // A claim that was not committed: the queue offers the task again.
      told.push({ ...effect, message: { ...effect.message, epoch: -1, record: '' } });
    }
  }
  return told;
}

/**
 * Commits a turn that stands for itself: what was known for it is not used again, so that a refusal
 * says nothing about any other. The units of one key are committed in order.
 *
 * @param settled told why it was not committed, after its effects or answers were released
 * @param exists see `failureOf`
 */
export function commitUnit(
  { commits, release }: CommitDeps,
  key: string,
  turn: Turn,
  settled?: (error: EngineError | undefined, ack: Settlement) => void,
  exists?: string,
): void {
  const owner = {
    key,
    // Its own, so that the writer refuses nothing else along with it.
    incarnation: commits.nextIncarnation(),
    settled({ effects }: { readonly effects: readonly Effect[] }, ack: Settlement) {
      const error = failureOf(ack, key, exists);
      release(error === undefined ? effects : failed(effects, error));
      settled?.(error, ack);
    },
  };
  commits.append(owner, turn);
}

export interface ScheduledCommitDeps extends CommitDeps {
  readonly schedule: (work: () => void) => void;
}

/**
 * The same for who decides in a promise: resolves when the unit is durable and its effects are
 * released.
 *
 * @param check what is looked at in the very turn in which the unit is made; throws the refusal
 * @param exists see `failureOf`
 * @throws EngineError as the check does; 409 or 400 when the database refuses the unit, 503 when its
 *   outcome is unknown
 */
export function commitAlone(
  deps: ScheduledCommitDeps,
  key: string,
  turn: Turn,
  check?: () => void,
  exists?: string,
): Promise<void> {
  return new Promise((resolve, reject) => {
    deps.schedule(() => {
      try {
        check?.();
        const settled = (error: EngineError | undefined) => {
          if (error === undefined) resolve();
          else reject(error);
        };
        commitUnit(deps, key, turn, settled, exists);
      } catch (error) {
        reject(error);
      }
    });
  });
}

/**
 * The same for a change of what every shard knows by heart.
 *
 * @param behind resolves when they know of it. Where the outcome of the unit is unknown they are told, too
 */
export async function commitTold(
  deps: ScheduledCommitDeps & { readonly whenWriterKnown: (then: () => void) => void },
  key: string,
  turn: Turn,
  behind: () => Promise<void>,
  exists?: string,
): Promise<void> {
  try {
    await commitAlone(deps, key, turn, undefined, exists);
  } catch (error) {
    // Whoever asked is told so; what cannot be told now, a new life of the actor tells.
    const tell = () => void behind().catch(() => undefined);
    if (error === UNKNOWN_OUTCOME) deps.whenWriterKnown(tell);
    throw error;
  }
  await behind();
}

export interface AnswerDeps {
  readonly log: Logger;
  readonly release: (effects: readonly Effect[]) => void;
  readonly schedule: (work: () => void) => void;
}

/**
 * Answers a request with what the work resolves to, in a turn of the shard.
 *
 * @param work resolves with undefined for an answer without a body; rejects with the EngineError that is the answer; anything else is a defect: 500
 */
export function answerLater(
  { log, release, schedule }: AnswerDeps,
  request: number,
  status: number,
  work: () => Promise<object | undefined>,
): void {
  const answered = work().then((body): Effect => {
    return { kind: 'reply', request, status, body: body === undefined ? '' : JSON.stringify(body) };
  });
  answered
    .catch((error: unknown): Effect => {
      if (error instanceof EngineError) return { kind: 'error', request, error };
      log.error({ err: error }, 'defect');
      return { kind: 'error', request, error: INTERNAL };
    })
    .then((effect) => schedule(() => release([effect])));
}
