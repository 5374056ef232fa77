/** What becomes of the effects of a unit, and what callers are told of one that was not committed. */

import { conflict, EngineError, UNKNOWN_OUTCOME, unavailable } from '../../src/base/errors.js';
import { refusedUnit } from '../../src/db/trouble.js';
import type { CommitLog, Settlement } from './commit-log.js';
import { TENANT_SUSPENDED } from './suspended-tenants.js';
import type { Effect } from './turn.js';

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
      return TENANT_SUSPENDED;
  }
}

/** What is told in place of these effects when nothing of their unit happened, or nobody knows. */
export function failed(effects: readonly Effect[], error: EngineError): Effect[] {
  const told: Effect[] = [];
  for (const effect of effects) {
    if (effect.kind === 'reply' || effect.kind === 'error') {
      told.push({ kind: 'error', request: effect.request, error });
    } else if (effect.kind === 'changed') {
      const result = error === TENANT_SUSPENDED ? 'held' : 'failed';
      told.push({ ...effect, result, error: error.message });
    } else if (effect.kind === 'peer' && effect.message.kind === 'claimed') {
      // A claim that was not committed: the queue offers the task again.
      told.push({ ...effect, message: { ...effect.message, epoch: -1, record: '' } });
    }
  }
  return told;
}
