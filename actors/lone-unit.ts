/**
 * Units that stand for themselves: what was read for one is not used again, so that a refusal says
 * nothing about any other. Whoever decides in a promise commits in this way.
 */

import { conflict, type EngineError, refusedUnit, UNKNOWN_OUTCOME } from '../src/errors.js';
import type { CommitLog, PendingUnit, Settlement, UnitOwner } from './commit-log.js';
import type { Effect, Turn } from './turn.js';

export interface LoneUnitDeps {
  readonly commits: CommitLog;
  readonly release: (effects: readonly Effect[]) => void;
  readonly schedule: (work: () => void) => void;
}

/**
 * Resolves when the unit is durable and its effects are released.
 *
 * @param subject what the unit is about, for the log
 * @param check what is looked at in the very turn in which the unit is made; throws the refusal
 * @throws EngineError as the check does; 409 or 400 when the database refuses the unit, 503 when its
 *   outcome is unknown
 */
export function commitAlone(
  { commits, release, schedule }: LoneUnitDeps,
  subject: string,
  turn: Turn,
  check?: () => void,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const settled = ({ effects }: PendingUnit, ack: Settlement) => {
      const error = refusalOf(ack);
      if (error !== undefined) {
        reject(error);
        return;
      }
      release(effects);
      resolve();
    };
    schedule(() => {
      try {
        check?.();
      } catch (error) {
        reject(error);
        return;
      }
      commits.append(ownerOf(subject, commits.nextIncarnation(), settled), turn);
    });
  });
}

/** Its incarnation is its own, so that the writer refuses nothing else along with it. */
function ownerOf(key: string, incarnation: number, settled: UnitOwner['settled']): UnitOwner {
  return { key, incarnation, settled };
}

/** Undefined for a unit that was committed. */
function refusalOf(ack: Settlement): EngineError | undefined {
  if (ack[1] === 'committed' || ack[1] === 'born') return undefined;
  if (ack[1] === 'exists') return conflict('there is one with this id already');
  return ack[1] === 'refused' ? refusedUnit(ack[2], ack[3]) : UNKNOWN_OUTCOME;
}
