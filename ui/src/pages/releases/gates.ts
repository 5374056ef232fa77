/** Rates, limits and verdicts of gates in words. Pure. */

import type { Gate, GateReport } from 'durable-workflow-engine-client';
import { countOf, formatCount, wordsOf } from '../../lib/format.ts';
import { type NumberLimits, numberOf } from '../../lib/numbers.ts';

export type Judgement = GateReport['gates'][number];

export interface Sample {
  /**
   * Finished instances that the gate counts; for the baseline, including older ones if there are too few newer ones.
   */
  readonly total: number;
  readonly needed: number;
}

/** Which instances a gate compares (docs/releases.md). */
export function samplesOf(
  { min_sample }: Gate,
  { baseline, baseline_history: earlier, candidate }: Omit<GateReport, 'gates'>,
): { readonly baseline: Sample; readonly candidate: Sample } {
  const needed = Math.max(1, min_sample);
  const older = baseline.total >= needed ? 0 : (earlier?.total ?? 0);
  return {
    baseline: { total: baseline.total + older, needed },
    candidate: { total: candidate.total, needed },
  };
}

/** To a hundredth of a percent, so that a rate above the limit does not look equal to it. */
export function formatRate(share: number): string {
  return `${Number((share * 100).toFixed(2))} %`;
}

/** Such as `Error rate`. */
export function metricName({ metric }: Pick<Gate, 'metric'>): string {
  return wordsOf(metric);
}

/** Such as `at most 5 percentage points above the baseline, after 20 finished instances`. */
export function gateWords({ max_regression, min_sample }: Gate): string {
  const points = Number((max_regression * 100).toFixed(2));
  return `at most ${points} percentage ${points === 1 ? 'point' : 'points'} above the baseline, after ${countOf(Math.max(1, min_sample), 'finished instance')}`;
}

/** The rate above which the gate fails; undefined until the baseline has one. */
export function limitOf({ gate, baseline_rate }: Judgement): number | undefined {
  return baseline_rate === undefined ? undefined : Math.min(1, baseline_rate + gate.max_regression);
}

export function shortVerdict({ verdict }: Pick<Judgement, 'verdict'>): string {
  return { pass: 'passes', fail: 'fails', inconclusive: 'inconclusive' }[verdict];
}

/** The reason for the verdict. */
export function reasonOf(judgement: Judgement, report: Omit<GateReport, 'gates'>): string {
  const { gate, verdict, candidate_rate } = judgement;
  const samples = samplesOf(gate, report);
  const short = (['candidate', 'baseline'] as const)
    .filter((side) => samples[side].total < samples[side].needed)
    .map((side) => {
      const { total, needed } = samples[side];
      return `${side} ${formatCount(total)} of ${formatCount(needed)}`;
    });
  if (verdict === 'inconclusive') return `Too few finished instances: ${short.join(', ')}.`;
  const rate = formatRate(candidate_rate ?? 0);
  if (short.length > 0) {
    return `${rate} exceeds ${formatRate(gate.max_regression)}; the baseline has too few instances to compare with.`;
  }
  const limit = formatRate(limitOf(judgement) ?? gate.max_regression);
  return verdict === 'pass' ? `${rate} is within ${limit}.` : `${rate} exceeds ${limit}.`;
}

// ---------------------------------------------------------------- form

export const REGRESSION: NumberLimits = { min: 0 };
export const SAMPLE: NumberLimits = { isInteger: true, min: 0 };

/** A gate as text for the fields. */
export interface GateDraft {
  readonly metric: Gate['metric'];
  /** In percentage points. */
  readonly regression: string;
  readonly sample: string;
}

export const FIRST_GATE: GateDraft = { metric: 'error_rate', regression: '5', sample: '20' };

/** @throws RangeError that names the field that is not a number */
export function gateOf({ metric, regression, sample }: GateDraft): Gate {
  numberOf('The allowed increase', regression, REGRESSION);
  // Divided as a decimal: 0.7 / 100 would be another number.
  const [digits, exponent = 0] = regression.trim().toLowerCase().split('e');
  const max_regression = Number(`${digits}e${Number(exponent) - 2}`);
  const min_sample = numberOf('The minimum of finished instances', sample, SAMPLE);
  return { metric, max_regression, min_sample };
}
