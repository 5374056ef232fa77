/** What the verdicts of gates mean: rates, limits, and what a verdict still waits for. Pure. */

import type { Gate, GateReport } from 'durable-workflow-engine-client';
import { formatCount, wordsOf } from '../../lib/format.ts';
import { type NumberLimits, numberOf } from '../../lib/numbers.ts';

export type Judgement = GateReport['gates'][number];

export interface Sample {
  /** Ended instances that the gate counts; of the baseline, older ones among them where it lacks newer ones. */
  readonly total: number;
  readonly needed: number;
}

/** Which runs a gate compares (docs/releases.md). */
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

/** To a hundredth of a percent: what exceeds a limit must not look like it. */
export function formatRate(share: number): string {
  return `${Number((share * 100).toFixed(2))} %`;
}

/** Such as `Error rate`. */
export function metricName({ metric }: Pick<Gate, 'metric'>): string {
  return wordsOf(metric);
}

/** Such as `at most 5 percentage points above the baseline, from 20 ended on`. */
export function gateWords({ max_regression, min_sample }: Gate): string {
  const points = Number((max_regression * 100).toFixed(2));
  return `at most ${points} percentage ${points === 1 ? 'point' : 'points'} above the baseline, from ${formatCount(Math.max(1, min_sample))} ended on`;
}

/** The rate above which the gate fails; undefined while the baseline has none. */
export function limitOf({ gate, baseline_rate }: Judgement): number | undefined {
  return baseline_rate === undefined ? undefined : Math.min(1, baseline_rate + gate.max_regression);
}

export function shortVerdict({ verdict }: Pick<Judgement, 'verdict'>): string {
  return { pass: 'passes', fail: 'fails', inconclusive: 'too few yet' }[verdict];
}

/** Why the verdict is what it is. */
export function reasonOf(judgement: Judgement, report: Omit<GateReport, 'gates'>): string {
  const { gate, verdict, candidate_rate } = judgement;
  const samples = samplesOf(gate, report);
  const short = (['candidate', 'baseline'] as const)
    .filter((side) => samples[side].total < samples[side].needed)
    .map((side) => {
      const { total, needed } = samples[side];
      return `${side} ${formatCount(total)} of ${formatCount(needed)}`;
    });
  if (verdict === 'inconclusive') return `Too few have ended: ${short.join(', ')}.`;
  const rate = formatRate(candidate_rate ?? 0);
  if (short.length > 0) {
    return `${rate} exceeds ${formatRate(gate.max_regression)}; the baseline has too few runs to compare with.`;
  }
  const limit = formatRate(limitOf(judgement) ?? gate.max_regression);
  return verdict === 'pass' ? `${rate} is within ${limit}.` : `${rate} exceeds ${limit}.`;
}

// ---------------------------------------------------------------- what is typed

export const REGRESSION: NumberLimits = { min: 0 };
export const SAMPLE: NumberLimits = { isInteger: true, min: 0 };

/** A gate as it is typed. */
export interface GateDraft {
  readonly metric: Gate['metric'];
  /** In percentage points. */
  readonly regression: string;
  readonly sample: string;
}

export const FIRST_GATE: GateDraft = { metric: 'error_rate', regression: '5', sample: '20' };

/** @throws RangeError that names what is no number */
export function gateOf({ metric, regression, sample }: GateDraft): Gate {
  numberOf('How much worse it may be', regression, REGRESSION);
  // The decimal number that was typed: 0.7 / 100 is another one.
  const [digits, exponent = 0] = regression.trim().toLowerCase().split('e');
  const max_regression = Number(`${digits}e${Number(exponent) - 2}`);
  const min_sample = numberOf('The sample of a gate', sample, SAMPLE);
  return { metric, max_regression, min_sample };
}
