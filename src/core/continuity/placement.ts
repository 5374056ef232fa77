/**
 * Where an execution could go: every live runtime of its tenant judged and scored, and the best of
 * those that are allowed.
 */

import type { RuntimeCapabilities } from '../../../schema/handoff.js';
import { compareText } from '../expression/bounds.js';
import type { UnixMs } from '../time.js';
import { isLive, trustRank } from './capabilities.js';
import { compatibilityFindings } from './compatibility.js';
import { type Finding, type Outcome, outcomeOf } from './findings.js';
import { localityFindings } from './locality.js';
import type {
  Classification,
  LocalityPolicy,
  PlacementTerms,
  Requirements,
} from './requirements.js';

export const CANDIDATES_MAX = 1_000;

export interface ScoreFactors {
  readonly trust: number;
  readonly current_runtime: number;
  readonly offline_capable: number;
  readonly battery_rank: number;
  readonly cost_rank: number;
  readonly latency_rank: number;
}

export interface PlacementCandidate {
  readonly runtime_id: string;
  readonly outcome: Outcome;
  readonly score: number;
  readonly score_factors: ScoreFactors;
  /** Sorted, each once. */
  readonly finding_codes: readonly string[];
}

/** `policy` is left out when there is none. */
export interface PlacementDecision {
  readonly id: string;
  readonly tenant_id: string;
  readonly continuity_id: string;
  readonly epoch: number;
  readonly selected_runtime_id: string | null;
  readonly requirements: Requirements;
  readonly policy?: LocalityPolicy;
  readonly classification: Classification;
  readonly policy_version: number | null;
  /** The highest score first, then by runtime id. */
  readonly candidates: readonly PlacementCandidate[];
  readonly created_at: string;
}

/** The execution to be placed, as it is now. */
export interface PlacedExecution {
  readonly continuity_id: string;
  readonly tenant_id: string;
  readonly owner_runtime_id: string;
  readonly epoch: number;
}

export interface Placement {
  readonly candidates: readonly PlacementCandidate[];
  readonly selected_runtime_id: string | null;
}

/**
 * The runtimes that are judged: of those that are live, the thousand most recently observed.
 *
 * @param wanted the id of one that is judged in any case if it is live
 */
export function liveCandidates(
  runtimes: readonly RuntimeCapabilities[],
  now: UnixMs,
  wanted?: string,
): RuntimeCapabilities[] {
  const isWanted = (one: RuntimeCapabilities) => (one.runtime_id === wanted ? 0 : 1);
  return runtimes
    .filter((one) => isLive(one, now))
    .sort(
      (a, b) =>
        isWanted(a) - isWanted(b) ||
        compareText(b.observed_at, a.observed_at) ||
        compareText(a.runtime_id, b.runtime_id),
    )
    .slice(0, CANDIDATES_MAX);
}

/** @param runtimes those to be judged, as {@link liveCandidates} gives them */
export function placeExecution(
  runtimes: readonly RuntimeCapabilities[],
  terms: PlacementTerms,
  ownerRuntimeId: string,
  now: UnixMs,
): Placement {
  const battery = ranks(runtimes.map((one) => negated(one.battery_percent)));
  const cost = ranks(runtimes.map((one) => one.estimated_cost_microunits));
  const latency = ranks(runtimes.map((one) => one.estimated_latency_ms));
  const candidates = runtimes.map((one): PlacementCandidate => {
    const score_factors: ScoreFactors = {
      trust: 10 * trustRank(one.trust),
      current_runtime: one.runtime_id === ownerRuntimeId ? 5 : 0,
      offline_capable: one.offline_capable ? 3 : 0,
      battery_rank: rankIn(battery, negated(one.battery_percent)),
      cost_rank: rankIn(cost, one.estimated_cost_microunits),
      latency_rank: rankIn(latency, one.estimated_latency_ms),
    };
    const { outcome, findings } = judge(one, terms, now);
    const score = Object.values(score_factors).reduce((sum: number, factor) => sum + factor, 0);
    const finding_codes = [...new Set(findings.map(({ code }) => code))].sort(compareText);
    return { runtime_id: one.runtime_id, outcome, score, score_factors, finding_codes };
  });
  candidates.sort((a, b) => b.score - a.score || compareText(a.runtime_id, b.runtime_id));
  const selected = candidates.find(({ outcome }) => outcome === 'allow');
  return { candidates, selected_runtime_id: selected?.runtime_id ?? null };
}

export interface Judgement {
  readonly outcome: Outcome;
  /** Of compatibility first, then of locality. */
  readonly findings: readonly Finding[];
}

/** One runtime against the terms. */
export function judge(
  offered: RuntimeCapabilities,
  { requirements, policy, classification }: PlacementTerms,
  now: UnixMs,
): Judgement {
  const findings = [
    ...compatibilityFindings(offered, requirements, now),
    ...localityFindings(offered, classification, policy),
  ];
  return { outcome: outcomeOf(findings), findings };
}

/** The record of a placement, as it is stored. */
export function placementDecision(
  made: { readonly id: string; readonly created_at: string },
  { tenant_id, continuity_id, epoch }: PlacedExecution,
  { requirements, policy, classification }: PlacementTerms,
  { selected_runtime_id, candidates }: Placement,
): PlacementDecision {
  return {
    id: made.id,
    tenant_id,
    continuity_id,
    epoch,
    selected_runtime_id,
    requirements,
    ...(policy === null ? {} : { policy }),
    classification,
    policy_version: policy?.version ?? null,
    candidates,
    created_at: made.created_at,
  };
}

/** The terms under which a stored decision was made. */
export function termsOf(decision: PlacementDecision): PlacementTerms {
  const { requirements, policy, classification } = decision;
  return { requirements, policy: policy ?? null, classification };
}

/** The score of each value that is known: ten for the lowest, equal values share the first place. */
function ranks(values: readonly (number | undefined)[]): ReadonlyMap<number, number> {
  const known = values.filter((value) => value !== undefined).sort((a, b) => a - b);
  const scores = new Map<number, number>();
  for (const [i, value] of known.entries()) {
    const score = Math.floor(((known.length - i) * 10) / known.length);
    if (!scores.has(value)) scores.set(value, score);
  }
  return scores;
}

/** What is unknown scores nothing. */
function rankIn(scores: ReadonlyMap<number, number>, value: number | undefined): number {
  return value === undefined ? 0 : (scores.get(value) ?? 0);
}

/** The highest value becomes the lowest. */
function negated(value: number | undefined): number | undefined {
  return value === undefined ? undefined : -value;
}
