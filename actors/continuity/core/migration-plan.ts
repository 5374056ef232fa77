/** The plan of a live migration: the findings between two versions, and the verdict. */

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

const PREFIXES: Readonly<Record<SemanticDiff['entries'][number]['severity'], string>> = {
  incompatible: INCOMPATIBLE,
  side_effect_risk: SIDE_EFFECT_RISK,
  behavioral: '',
  informational: '',
};

/** What the instance would lose in the target. */
interface Losses {
  /** Blocks that have an output and are not in the target. */
  readonly outputs: readonly string[];
  /** Pending clean-ups that the target would not run (`lost-clean-ups.ts`). */
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

/** The findings that keep the migration from being automatic. */
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
      ...migrationFinding('OUTPUT_REMOVED', removedSummary(block_id), { block_id }),
      code: OUTPUT_REMOVED + block_id,
    })),
    ...(hasTransforms ? [migrationFinding('TRANSFORMS', 'the data are transformed')] : []),
  ];
}

const removedSummary = (block: string) => `block ${block} has an output and is not in the target`;

/**
 * | verdict           | the first condition that holds                                             |
 * |-------------------|----------------------------------------------------------------------------|
 * | incompatible      | a finding is incompatible                                                  |
 * | pin               | the replay failed                                                          |
 * | approval_required | transforms, a risk of side effects, outputs without a block, lost clean-ups |
 * | automatic         | otherwise                                                                  |
 */
export function verdictOn(codes: readonly string[], hasTransforms: boolean): MigrationVerdict {
  const has = (prefix: string) => codes.some((code) => code.startsWith(prefix));
  if (has(INCOMPATIBLE)) return 'incompatible';
  if (!codes.includes(REPLAY_PASS)) return 'pin';
  const isRisky = [SIDE_EFFECT_RISK, OUTPUT_REMOVED, CLEANUP_REMOVED].some(has);
  return hasTransforms || isRisky ? 'approval_required' : 'automatic';
}

/** Pinned and incompatible migrations cannot be approved. */
export function mayApply(verdict: MigrationVerdict, isApproved: boolean): boolean {
  return verdict === 'automatic' || (verdict === 'approval_required' && isApproved);
}

const RETENTION_DEFAULT_S = 86_400;
const RETENTION_MIN_S = 60;
const RETENTION_MAX_S = 2_592_000;

/** How long a migration can be rolled back, in seconds. */
export function retentionSeconds(asked: number | null | undefined): number {
  const seconds = asked ?? RETENTION_DEFAULT_S;
  return Math.min(RETENTION_MAX_S, Math.max(RETENTION_MIN_S, seconds));
}
