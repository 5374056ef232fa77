/**
 * Clean-ups that an instance owes and that would be forgotten when it goes over to another version of its
 * sequence: the block or its list is not in the target, has another id there, or stands where it is not reached.
 * Nobody would notice: a saga without its compensation fails as one with nothing to take back.
 */

import type { MigrationFinding } from '../../../schema/continuity.js';
import type { Execution } from '../../../schema/execution.js';
import { CLEANUP_REMOVED, migrationFinding } from '../../../src/core/migration-findings.js';
import type { Plan } from '../../../src/core/plan-nodes.js';
import { cleanUpLeaves, type OwedCleanUp, owedCleanUps } from './owed-clean-ups.js';

/** In words; more are counted. */
const LEAVES_NAMED = 5;

/**
 * @param carried the execution in the target; one that begins anew there comes to every block again
 */
export function lostCleanUps(
  source: Plan,
  execution: Execution,
  target: Plan,
  carried: Execution,
): readonly MigrationFinding[] {
  const owed = owedCleanUps(source, execution);
  if (owed.length === 0) return [];
  const kept = new Set(
    owedCleanUps(target, carried).flatMap(({ leaves }) => leaves.map(({ key }) => key)),
  );
  if (carried.t === null) for (const key of cleanUpLeaves(target)) kept.add(key);
  return owed.flatMap((cleanUp) => {
    const lost = cleanUp.leaves.filter(({ key }) => !kept.has(key)).map(({ id }) => id);
    return lost.length === 0 ? [] : [findingOf(cleanUp, [...new Set(lost)])];
  });
}

function findingOf(cleanUp: OwedCleanUp, lost: readonly string[]): MigrationFinding {
  const { kind, owner, path } = cleanUp;
  const more = lost.length > LEAVES_NAMED ? ` and ${lost.length - LEAVES_NAMED} more` : '';
  const named = lost.slice(0, LEAVES_NAMED).join(', ') + more;
  const about = kind === 'hook' ? {} : { block_id: owner, path };
  const finding = migrationFinding('CLEANUP_REMOVED', `${WORDS[kind](cleanUp, named)}`, about);
  return { ...finding, code: CLEANUP_REMOVED + owner };
}

const WORDS: Readonly<Record<OwedCleanUp['kind'], (owed: OwedCleanUp, named: string) => string>> = {
  compensation: ({ owner, step, isDue }, named) =>
    isDue
      ? `saga ${owner} still has to compensate its step ${step}: the target would not run ${named}`
      : `step ${step} of saga ${owner} has completed: if the saga fails, the target would not run its compensation ${named}`,
  finally: ({ owner }, named) =>
    `the finally list of ${owner} has yet to end: the target would not run ${named}`,
  catch: ({ owner }, named) =>
    `the catch list of ${owner} has yet to end: the target would not run ${named}`,
  hook: ({ owner }, named) =>
    `the hooks ${owner} have yet to end: the target would not run ${named}`,
};
