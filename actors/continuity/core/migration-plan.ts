/**
 * The plan of a live migration: what was found between two versions, and the verdict on it.
 */

import type { MigrationFinding, MigrationVerdict } from '../../../schema/continuity.js';
import type { SemanticDiff } from '../../../schema/release.js';
import { compareText } from '../../../src/base/bounds.js';
import {
  CLEANUP_REMOVED,
  findingsOfDiff,
  migrationFinding,
} from '../../../src/core/migration-findings.js';

const INCOMPATIBLE = 'INCOMPATIBLE:';
const SIDE_EFFECT_RISK = 'SIDE_EFFECT_RISK:';
const OUTPUT_REMOVED = 'CHECKPOINT_OUTPUT_REMOVED:';
export const REPLAY_PASS = 'HISTORICAL_REPLAY_PASS';
export const REPLAY_FAIL = 'HISTORICAL_REPLAY_FAIL';

/** What the two grave severities are marked by; the others stand for themselves. */
const PREFIXES: Readonly<Record<SemanticDiff['entries'][number]['severity'], string>> = {
  incompatible: INCOMPATIBLE,
  side_effect_risk: SIDE_EFFECT_RISK,
  behavioral: '',
  informational: '',
};

/** What the state of the instance says of the target, beside the replay. */
export interface Losses {
  /** Blocks that have an output and are not in the target. */
  readonly outputs: readonly string[];
  /** Clean-ups that the instance owes and that would be forgotten (`lost-clean-ups.ts`). */
  readonly cleanUps: readonly MigrationFinding[];
}

/** Sorted and distinct. */
export function findingCodes(
  { entries }: Pick<SemanticDiff, 'entries'>,
  { outputs: removedOutputs, cleanUps }: Losses,
  hasReplayed: boolean,
): string[] {
  const codes = new Set([...entries.map(codeOf), ...cleanUps.map(({ code }) => code)]);
  for (const block of removedOutputs) codes.add(OUTPUT_REMOVED + block);
  codes.add(hasReplayed ? REPLAY_PASS : REPLAY_FAIL);
  return [...codes].sort(compareText);
}

function codeOf({ category, severity }: SemanticDiff['entries'][number]): string {
  return PREFIXES[severity] + category.toUpperCase();
}

/** What the codes stand for, in words, as far as it keeps the migration from being automatic. */
export function findingsIn(
  { entries }: Pick<SemanticDiff, 'entries'>,
  { outputs: removedOutputs, cleanUps }: Losses,
  hasTransforms: boolean,
  replayed: readonly MigrationFinding[],
): MigrationFinding[] {
  return [
    ...findingsOfDiff(entries, codeOf),
    ...replayed,
    ...cleanUps,
    ...removedOutputs.map((block_id) => ({
      ...migrationFinding(
        'OUTPUT_REMOVED',
        `block ${block_id} has an output and is not in the target`,
        {
          block_id,
        },
      ),
      code: OUTPUT_REMOVED + block_id,
    })),
    ...(hasTransforms ? [migrationFinding('TRANSFORMS', 'the data are transformed')] : []),
  ];
}

/**
 * | verdict           | exactly when, the first that holds                                       |
 * |-------------------|--------------------------------------------------------------------------|
 * | incompatible      | a finding is incompatible                                                |
 * | pin               | the replay failed                                                        |
 * | approval_required | there are transforms, a risk of side effects, or outputs without a block,    |
 * |                   | or a clean-up that is owed would be forgotten                            |
 * | automatic         | otherwise                                                                |
 */
export function verdictOn(codes: readonly string[], hasTransforms: boolean): MigrationVerdict {
  const has = (prefix: string) => codes.some((code) => code.startsWith(prefix));
  if (has(INCOMPATIBLE)) return 'incompatible';
  if (!codes.includes(REPLAY_PASS)) return 'pin';
  const isRisky = [SIDE_EFFECT_RISK, OUTPUT_REMOVED, CLEANUP_REMOVED].some(has);
  return hasTransforms || isRisky ? 'approval_required' : 'automatic';
}

/** Nobody can approve of what is pinned or incompatible. */
export function mayApply(verdict: MigrationVerdict, isApproved: boolean): boolean {
  return verdict === 'automatic' || (verdict === 'approval_required' && isApproved);
}

const RETENTION_DEFAULT_S = 86_400;
const RETENTION_MIN_S = 60;
const RETENTION_MAX_S = 2_592_000;

/** How long a migration can be undone, in seconds. */
export function retentionSeconds(asked: number | null | undefined): number {
  const seconds = asked ?? RETENTION_DEFAULT_S;
  return Math.min(RETENTION_MAX_S, Math.max(RETENTION_MIN_S, seconds));
}
