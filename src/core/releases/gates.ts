/**
 * The verdicts of a release's gates (docs/releases.md): how the instances ended that the release
 * routed, and whether the candidate's rate exceeds the baseline's by more than a gate allows. Pure.
 */

import type { EvaluationReport, Gate } from '../../../schema/release.js';
import type { GateMetric, GateVerdict } from './release.js';

/** How many instances of one version ended in a state. */
export interface Outcomes {
  readonly sequence_id: string;
  readonly state: string;
  readonly instances: number;
}

export type EndedCounts = EvaluationReport['baseline'];
export type Judgement = EvaluationReport['gates'][number];

export interface Evidence {
  readonly baseline: EndedCounts;
  readonly candidate: EndedCounts;
  /** In the order of the release's gates. */
  readonly gates: Judgement[];
}

/** What the outcomes say about gates; those of other versions than the two count for nothing. */
export function judge(
  gates: readonly Gate[],
  versions: { readonly baseline_sequence_id: string; readonly candidate_sequence_id: string },
  outcomes: readonly Outcomes[],
): Evidence {
  const baseline = countsOf(versions.baseline_sequence_id, outcomes);
  const candidate = countsOf(versions.candidate_sequence_id, outcomes);
  return {
    baseline,
    candidate,
    gates: gates.map((gate) => ({
      gate,
      ...(baseline.total === 0 ? {} : { baseline_rate: rateOf(gate.metric, baseline) }),
      ...(candidate.total === 0 ? {} : { candidate_rate: rateOf(gate.metric, candidate) }),
      verdict: verdictOf(gate, baseline, candidate),
    })),
  };
}

/** The first gate with this verdict. */
export function findVerdict(
  { gates }: Pick<Evidence, 'gates'>,
  verdict: GateVerdict,
): Judgement | undefined {
  return gates.find((judgement) => judgement.verdict === verdict);
}

export function verdictOf(gate: Gate, baseline: EndedCounts, candidate: EndedCounts): GateVerdict {
  const least = Math.max(1, gate.min_sample);
  if (baseline.total < least || candidate.total < least) return 'inconclusive';
  return exceeds(gate, baseline, candidate) ? 'fail' : 'pass';
}

/** Of the ended instances, those that the metric is about. */
export function countedBy(metric: GateMetric, counts: EndedCounts): number {
  return metric === 'error_rate' ? counts.failed : counts.cancelled;
}

function rateOf(metric: GateMetric, counts: EndedCounts): number {
  return countedBy(metric, counts) / counts.total;
}

function countsOf(sequence: string, outcomes: readonly Outcomes[]): EndedCounts {
  const counts = { total: 0, completed: 0, failed: 0, cancelled: 0 };
  for (const { sequence_id, state, instances } of outcomes) {
    if (sequence_id !== sequence) continue;
    if (state !== 'completed' && state !== 'failed' && state !== 'cancelled') continue;
    counts[state] += instances;
    counts.total += instances;
  }
  return counts;
}

/**
 * candidate − baseline > max_regression, exactly: as fractions of doubles 0.4 − 0.1 exceeds 0.3, and a
 * canary would be rolled back for nothing. The limit is the decimal number that the caller wrote.
 */
function exceeds(gate: Gate, baseline: EndedCounts, candidate: EndedCounts): boolean {
  const { digits, scale } = decimalOf(gate.max_regression);
  const baselineTotal = BigInt(baseline.total);
  const candidateTotal = BigInt(candidate.total);
  const difference =
    BigInt(countedBy(gate.metric, candidate)) * baselineTotal -
    BigInt(countedBy(gate.metric, baseline)) * candidateTotal;
  return difference * scale > digits * baselineTotal * candidateTotal;
}

/** The shortest decimal that means this double: `digits / scale`. */
function decimalOf(value: number): { readonly digits: bigint; readonly scale: bigint } {
  // No difference of rates is above 1, and a larger exponent would only cost memory.
  const [mantissa = '0', exponent = '0'] = String(Math.min(value, 2)).split('e');
  const [whole = '0', fraction = ''] = mantissa.split('.');
  const places = fraction.length - Number(exponent);
  return { digits: BigInt(whole + fraction), scale: 10n ** BigInt(places) };
}
