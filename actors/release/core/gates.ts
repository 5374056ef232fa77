/**
 * The verdicts of a release's gates (docs/releases.md): whether the candidate's rate exceeds the baseline's by more
 * than a gate allows. Where the release routed too few instances to the baseline, its newest earlier runs count as
 * well. Pure.
 */

import type { EndedCounts, Gate, GateJudgement } from '../../../schema/release.js';
import type { GateMetric, GateVerdict } from '../../../schema/release-states.js';
import { isoTime } from '../../../src/base/time.js';
import type { ReleaseRow } from './record.js';

export interface Outcomes {
  readonly sequence_id: string;
  readonly state: string;
  readonly instances: number;
  /** Created before the canary. */
  readonly is_earlier: boolean;
}

export type { EndedCounts };
export type Judgement = GateJudgement;

export interface Evidence {
  readonly baseline: EndedCounts;
  /** The part of the baseline from before the canary. */
  readonly baseline_history?: EndedCounts;
  readonly candidate: EndedCounts;
  /** In the order of the release's gates. */
  readonly gates: Judgement[];
}

interface Versions {
  readonly baseline_sequence_id: string;
  readonly candidate_sequence_id: string;
}

export interface RunsToJudge {
  /** The start of the canary. */
  readonly since: string;
  readonly baseline: string;
  /** The maximum age of earlier runs. */
  readonly from: string;
  /** Earlier runs are read only while the baseline has fewer runs. */
  readonly sample: number;
}

/** Maximum age of baseline runs from before the canary. */
const HISTORY_MS = 30 * 86_400_000;
/** Upper bound of earlier runs read by one look. */
const HISTORY_RUNS_MAX = 100_000;

export function runsToJudge(
  release: Pick<ReleaseRow, 'gates' | 'baseline_sequence_id' | 'canary_started_at' | 'created_at'>,
): RunsToJudge {
  const since = release.canary_started_at ?? release.created_at;
  return {
    since,
    baseline: release.baseline_sequence_id,
    from: isoTime(Math.max(0, Date.parse(since) - HISTORY_MS)),
    sample: Math.min(largestSample(release.gates), HISTORY_RUNS_MAX),
  };
}

/** The largest sample that a gate wants of either version. */
export function largestSample(gates: readonly Gate[]): number {
  return Math.max(0, ...gates.map(leastOf));
}

/** Outcomes of versions other than the two are ignored. */
export function judge(
  gates: readonly Gate[],
  versions: Versions,
  outcomes: readonly Outcomes[],
): Evidence {
  const { baseline_sequence_id, candidate_sequence_id } = versions;
  const since = outcomes.filter(({ is_earlier }) => !is_earlier);
  const earlier = outcomes.filter(({ is_earlier }) => is_earlier);
  const baseline = countsOf(baseline_sequence_id, since);
  const candidate = countsOf(candidate_sequence_id, since);
  const baseline_history = countsOf(baseline_sequence_id, earlier);
  return {
    baseline,
    ...(baseline_history.total === 0 ? {} : { baseline_history }),
    candidate,
    gates: gates.map((gate) => {
      const sample = baselineOf(gate, { baseline, baseline_history });
      return {
        gate,
        ...(sample.total === 0 ? {} : { baseline_rate: rateOf(gate.metric, sample) }),
        ...(candidate.total === 0 ? {} : { candidate_rate: rateOf(gate.metric, candidate) }),
        verdict: verdictOf(gate, sample, candidate),
      };
    }),
  };
}

/** Baseline runs that a gate compares with: earlier ones only if there are too few. */
export function baselineOf(
  gate: Gate,
  { baseline, baseline_history }: Pick<Evidence, 'baseline' | 'baseline_history'>,
): EndedCounts {
  if (baseline_history === undefined || baseline.total >= leastOf(gate)) return baseline;
  return {
    total: baseline.total + baseline_history.total,
    completed: baseline.completed + baseline_history.completed,
    failed: baseline.failed + baseline_history.failed,
    cancelled: baseline.cancelled + baseline_history.cancelled,
  };
}

export function findVerdict(
  { gates }: Pick<Evidence, 'gates'>,
  verdict: GateVerdict,
): Judgement | undefined {
  return gates.find((judgement) => judgement.verdict === verdict);
}

/**
 * With too few baseline runs a candidate never passes, but it can fail: it is compared with a flawless baseline, so
 * that a broken candidate does not stay for want of a comparison.
 */
export function verdictOf(gate: Gate, baseline: EndedCounts, candidate: EndedCounts): GateVerdict {
  const least = leastOf(gate);
  if (candidate.total < least) return 'inconclusive';
  if (baseline.total >= least) return exceeds(gate, baseline, candidate) ? 'fail' : 'pass';
  const isFailing = gate.metric === 'error_rate' && exceeds(gate, FLAWLESS, candidate);
  return isFailing ? 'fail' : 'inconclusive';
}

const FLAWLESS: EndedCounts = { total: 1, completed: 1, failed: 0, cancelled: 0 };

/** A rate needs one run, also without a sample. */
function leastOf(gate: Gate): number {
  return Math.max(1, gate.min_sample);
}

/** The ended instances that the metric counts. */
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
 * candidate − baseline > max_regression, exactly: with doubles 0.4 − 0.1 exceeds 0.3, and a canary would be rolled back
 * for nothing. The limit is the decimal number that the caller wrote.
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
  // No difference of rates is above 1; a larger exponent would only cost memory.
  const [mantissa = '0', exponent = '0'] = String(Math.min(value, 2)).split('e');
  const [whole = '0', fraction = ''] = mantissa.split('.');
  const places = fraction.length - Number(exponent);
  return { digits: BigInt(whole + fraction), scale: 10n ** BigInt(places) };
}
