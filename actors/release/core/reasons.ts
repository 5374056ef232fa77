/** The reason texts of decisions about a release (docs/releases.md). Pure. */

import type { ValidationSummary } from '../../../schema/release.js';
import type { EndedCounts, Evidence, Judgement } from './gates.js';
import { baselineOf, countedBy } from './gates.js';

/** Who decided, unless it was a gate. */
export const OPERATOR = 'operator';
export const VALIDATION = 'validation';
export const DEPRECATION = 'deprecation';

export function gateActor({ gate }: Judgement): string {
  return `gate:${gate.metric}`;
}

export const REASONS = {
  created: 'release created',
  validationBegun: 'validation by a replay of ended runs began',
  validationSkipped: 'validation skipped',
  validationLost: 'the validation was cut off by a restart: it can be started again',
  paused: 'canary paused: new instances run the baseline',
  deprecated: 'the candidate was deprecated: new instances run the baseline',
  rolledBack: 'rolled back: new instances run the baseline',
} as const;

export function canaryReason(percent: number): string {
  return `canary at ${percent}% of new instances`;
}

export function promotionReason(force: boolean, evidence: Evidence): string {
  const { gates } = evidence;
  const basis = gates.length === 0 ? 'there are no gates' : 'every gate passed';
  return `${force ? 'promotion forced' : 'promoted'}: ${basis}`;
}

export function validationReason(evidence: Omit<ValidationSummary, 'validated_at'>): string {
  const { replayed, matches, diverged, inconclusive } = evidence;
  return `${replayed} replayed: ${matches} matched, ${diverged} diverged, ${inconclusive} inconclusive`;
}

/** Both rates, and the regression that the gate allows. */
export function gateReason({ gate }: Judgement, evidence: Evidence): string {
  const { metric, max_regression: budget, min_sample } = gate;
  const of = (counts: EndedCounts) => {
    const counted = countedBy(metric, counts);
    return `${counted / counts.total} (${counted} of ${counts.total})`;
  };
  const baseline = baselineOf(gate, evidence);
  const isEnough = baseline.total >= Math.max(1, min_sample);
  return (
    `${metric} of the candidate is ${of(evidence.candidate)}, of the baseline ` +
    `${isEnough ? of(baseline) : `taken as 0, for want of runs (${baseline.total})`}; ` +
    `it may be higher by ${budget}`
  );
}
