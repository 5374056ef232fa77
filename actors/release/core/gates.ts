/**
 * The verdicts of a release's gates, and the reason texts of decisions (docs/releases.md). A gate fails when the
 * candidate's rate exceeds the baseline's by more than the limit. If the release routed too few instances to the
 * baseline, the newest earlier runs of the baseline count as well. Pure.
 */

import type {
  EndedCounts,
  Gate,
  GateJudgement,
  GateReport,
  ValidationSummary,
} from '../../../schema/release.js';
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

/** Maximum age of baseline runs from before the canary. */
const HISTORY_MS = 30 * 86_400_000;
const HISTORY_RUNS_MAX = 100_000;

export function runsToJudge(
  release: Pick<ReleaseRow, 'gates' | 'baseline_sequence_id' | 'canary_started_at' | 'created_at'>,
) {
  const since = release.canary_started_at ?? release.created_at;
  return {
    since,
    baseline: release.baseline_sequence_id,
    from: isoTime(Math.max(0, Date.parse(since) - HISTORY_MS)),
    // Earlier runs are read only if the baseline has fewer runs than this.
    sample: Math.min(Math.max(0, ...release.gates.map(leastOf)), HISTORY_RUNS_MAX),
  };
}

export type RunsToJudge = ReturnType<typeof runsToJudge>;

export function judge(
  gates: readonly Gate[],
  release: Pick<ReleaseRow, 'baseline_sequence_id' | 'candidate_sequence_id'>,
  outcomes: readonly Outcomes[],
): GateReport {
  const since = outcomes.filter(({ is_earlier }) => !is_earlier);
  const earlier = outcomes.filter(({ is_earlier }) => is_earlier);
  const baseline = countsOf(release.baseline_sequence_id, since);
  const candidate = countsOf(release.candidate_sequence_id, since);
  const baseline_history = countsOf(release.baseline_sequence_id, earlier);
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

/** The baseline runs for a gate. Earlier runs are added only if there are too few. */
function baselineOf(
  gate: Gate,
  { baseline, baseline_history }: Pick<GateReport, 'baseline' | 'baseline_history'>,
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
  { gates }: Pick<GateReport, 'gates'>,
  verdict: GateVerdict,
): GateJudgement | undefined {
  return gates.find((judgement) => judgement.verdict === verdict);
}

/**
 * With too few baseline runs a candidate never passes, but it can fail: it is compared with a flawless baseline, so
 * that a broken candidate is rolled back even without a sample.
 */
export function verdictOf(gate: Gate, baseline: EndedCounts, candidate: EndedCounts): GateVerdict {
  const least = leastOf(gate);
  if (candidate.total < least) return 'inconclusive';
  if (baseline.total >= least) return exceeds(gate, baseline, candidate) ? 'fail' : 'pass';
  const isFailing = gate.metric === 'error_rate' && exceeds(gate, FLAWLESS, candidate);
  return isFailing ? 'fail' : 'inconclusive';
}

const FLAWLESS: EndedCounts = { total: 1, completed: 1, failed: 0, cancelled: 0 };

/** A rate needs at least one run, even if the gate requires no sample. */
function leastOf(gate: Gate): number {
  return Math.max(1, gate.min_sample);
}

function countedBy(metric: GateMetric, counts: EndedCounts): number {
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
 * candidate − baseline > max_regression, in exact arithmetic: with doubles 0.4 − 0.1 exceeds 0.3, and a canary would be
 * rolled back by mistake. The limit is the decimal number that the caller sent.
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

/** The shortest decimal representation of the double: `digits / scale`. */
function decimalOf(value: number): { readonly digits: bigint; readonly scale: bigint } {
  // A difference of rates is at most 1; a large exponent would only cost memory.
  const [mantissa = '0', exponent = '0'] = String(Math.min(value, 2)).split('e');
  const [whole = '0', fraction = ''] = mantissa.split('.');
  const places = fraction.length - Number(exponent);
  return { digits: BigInt(whole + fraction), scale: 10n ** BigInt(places) };
}

/** Actors of decisions, beside the gates. */
export const OPERATOR = 'operator';
export const VALIDATION = 'validation';
export const DEPRECATION = 'deprecation';

export function gateActor({ gate }: GateJudgement): string {
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

export function promotionReason(force: boolean, { gates }: GateReport): string {
  const basis = gates.length === 0 ? 'there are no gates' : 'every gate passed';
  return `${force ? 'promotion forced' : 'promoted'}: ${basis}`;
}

export function validationReason(evidence: Omit<ValidationSummary, 'validated_at'>): string {
  const { replayed, matches, diverged, inconclusive } = evidence;
  return `${replayed} replayed: ${matches} matched, ${diverged} diverged, ${inconclusive} inconclusive`;
}

export function gateReason({ gate }: GateJudgement, evidence: GateReport): string {
  const { metric, max_regression: budget } = gate;
  const of = (counts: EndedCounts) => {
    const counted = countedBy(metric, counts);
    return `${counted / counts.total} (${counted} of ${counts.total})`;
  };
  const baseline = baselineOf(gate, evidence);
  const isEnough = baseline.total >= leastOf(gate);
  return (
    `${metric} of the candidate is ${of(evidence.candidate)}, of the baseline ` +
    `${isEnough ? of(baseline) : `taken as 0, for want of runs (${baseline.total})`}; ` +
    `it may be higher by ${budget}`
  );
}
