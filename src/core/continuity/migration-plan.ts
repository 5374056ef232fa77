/**
 * The plan of a live migration: what was found between two versions, and the verdict on it.
 */

import type { SemanticDiff } from '../../../schema/release.js';
import { compareText } from '../expression/bounds.js';

export const MIGRATION_VERDICTS = [
  'automatic',
  'approval_required',
  'pin',
  'incompatible',
] as const;
export type MigrationVerdict = (typeof MIGRATION_VERDICTS)[number];

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

/**
 * Sorted and distinct.
 *
 * @param removedOutputs blocks that have an output and are not in the target
 */
export function findingCodes(
  { entries }: Pick<SemanticDiff, 'entries'>,
  removedOutputs: Iterable<string>,
  hasReplayed: boolean,
): string[] {
  const codes = new Set(
    entries.map(({ category, severity }) => PREFIXES[severity] + category.toUpperCase()),
  );
  for (const block of removedOutputs) codes.add(OUTPUT_REMOVED + block);
  codes.add(hasReplayed ? REPLAY_PASS : REPLAY_FAIL);
  return [...codes].sort(compareText);
}

/**
 * | verdict           | exactly when, the first that holds                                       |
 * |-------------------|--------------------------------------------------------------------------|
 * | incompatible      | a finding is incompatible                                                |
 * | pin               | the replay failed                                                        |
 * | approval_required | there are transforms, a risk of side effects, or outputs without a block |
 * | automatic         | otherwise                                                                |
 */
export function verdictOn(codes: readonly string[], hasTransforms: boolean): MigrationVerdict {
  const has = (prefix: string) => codes.some((code) => code.startsWith(prefix));
  if (has(INCOMPATIBLE)) return 'incompatible';
  if (!codes.includes(REPLAY_PASS)) return 'pin';
  const isRisky = hasTransforms || has(SIDE_EFFECT_RISK) || has(OUTPUT_REMOVED);
  return isRisky ? 'approval_required' : 'automatic';
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
