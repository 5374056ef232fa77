/** Releases the effects of committed units, and reports uncommitted ones and defects to callers. */

import { AssertionError } from 'node:assert';
import { conflict, EngineError, UNKNOWN_OUTCOME, unavailable } from '../../src/base/errors.js';
import { refusedUnit } from '../../src/db/trouble.js';
import type { CommitLog, Settlement } from './commit-log.js';
import type { Effect } from './turn.js';

export interface CommitDeps {
  readonly commits: CommitLog;
  /** Performs effects whose unit, if any, is committed. */
  readonly release: (effects: readonly Effect[]) => void;
}

export const INTERNAL = new EngineError('ENG_INTERNAL', 'internal error');

/** The error returned for requests of a suspended tenant. */
export const TENANT_SUSPENDED = unavailable(
  'ENG_TENANT_MOVING',
  'the tenant is on its way to another resident; ask again',
);

/** Whether the error is a defect of the program: no database driver throws these. */
export function isDefect(error: unknown): boolean {
  const kinds = [TypeError, RangeError, SyntaxError, AssertionError];
  return kinds.some((kind) => error instanceof kind);
}

/**
 * Undefined for a committed unit.
 * @param noun names the unit in messages
 * @param exists the message when the gate of the unit found its row
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
    case 'suspended':
      return TENANT_SUSPENDED;
  }
}

/** Replaces the effects of a unit that was not committed, or whose outcome is unknown. */
export function failed(effects: readonly Effect[], error: EngineError): Effect[] {
  const replaced: Effect[] = [];
  for (const effect of effects) {
    if (effect.kind === 'reply' || effect.kind === 'error') {
      replaced.push({ kind: 'error', request: effect.request, error });
    } else if (effect.kind === 'changed') {
      const result = error === TENANT_SUSPENDED ? 'suspended' : 'failed';
      replaced.push({ ...effect, result, error: error.message });
    } else if (effect.kind === 'slot.settled') {
      replaced.push({ ...effect, outcome: error === UNKNOWN_OUTCOME ? 'unknown' : 'unused' });
    } else if (effect.kind === 'peer' && effect.message.kind === 'claimed') {
      // The claim was not committed: the queue offers the task again.
      replaced.push({ ...effect, message: { ...effect.message, epoch: -1, record: '' } });
    }
  }
  return replaced;
}
