/** Placement: judges and scores the live runtimes of a tenant, and selects the best allowed one. */

import type { Execution } from '../../../schema/continuity.js';
import type {
  RuntimeCapabilities,
  PlacementDecision as SentDecision,
} from '../../../schema/handoff.js';
import { compareText } from '../../../src/base/bounds.js';
import type { UnixMs } from '../../../src/base/time.js';
import { isLive, negated, trustRank } from './capabilities.js';
import { compatibilityFindings } from './compatibility.js';
import { type Finding, type Outcome, outcomeOf } from './findings.js';
import { localityFindings } from './locality.js';
import type { LocalityPolicy, PlacementTerms, Requirements } from './requirements.js';

export const CANDIDATES_MAX = 1_000;

/** Candidates are sorted by score, the highest first, then by id; `policy` is absent when there is none. */
export interface PlacementDecision extends Omit<SentDecision, 'requirements' | 'policy'> {
  readonly requirements: Requirements;
  readonly policy?: LocalityPolicy;
}
type Candidate = PlacementDecision['candidates'][number];

export type PlacedExecution = Pick<
  Execution,
  'continuity_id' | 'tenant_id' | 'owner_runtime_id' | 'epoch'
>;

type Placement = Pick<PlacementDecision, 'candidates' | 'selected_runtime_id'>;

/** The most recently observed live runtimes. @param wanted id of one that is included if it is live */
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

/** @param runtimes as {@link liveCandidates} returns them */
export function placeExecution(
  runtimes: readonly RuntimeCapabilities[],
  terms: PlacementTerms,
  ownerRuntimeId: string,
  now: UnixMs,
): Placement {
  const battery = ranks(runtimes.map((one) => negated(one.battery_percent)));
  const cost = ranks(runtimes.map((one) => one.estimated_cost_microunits));
  const latency = ranks(runtimes.map((one) => one.estimated_latency_ms));
  const candidates = runtimes.map((one): Candidate => {
    const score_factors = {
      trust: 10 * trustRank(one.trust),
      current_runtime: one.runtime_id === ownerRuntimeId ? 5 : 0,
      offline_capable: one.offline_capable ? 3 : 0,
      battery_rank: rankIn(battery, negated(one.battery_percent)),
      cost_rank: rankIn(cost, one.estimated_cost_microunits),
      latency_rank: rankIn(latency, one.estimated_latency_ms),
    };
    const { outcome, findings } = judge(one, terms, now);
    const score = Object.values(score_factors).reduce((sum, factor) => sum + factor, 0);
    const finding_codes = [...new Set(findings.map(({ code }) => code))].sort(compareText);
    return { runtime_id: one.runtime_id, outcome, score, score_factors, finding_codes };
  });
  candidates.sort((a, b) => b.score - a.score || compareText(a.runtime_id, b.runtime_id));
  const selected = candidates.find(({ outcome }) => outcome === 'allow');
  return { candidates, selected_runtime_id: selected?.runtime_id ?? null };
}

/** Checks one runtime against the terms. */
export function judge(
  offered: RuntimeCapabilities,
  { requirements, policy, classification }: PlacementTerms,
  now: UnixMs,
): { readonly outcome: Outcome; readonly findings: readonly Finding[] } {
  const findings = [
    ...compatibilityFindings(offered, requirements, now),
    ...localityFindings(offered, classification, policy),
  ];
  return { outcome: outcomeOf(findings), findings };
}

export function placementDecision(
  made: Pick<PlacementDecision, 'id' | 'created_at'>,
  { tenant_id, continuity_id, epoch }: PlacedExecution,
  { requirements, policy, classification }: PlacementTerms,
  { selected_runtime_id, candidates }: Placement,
): PlacementDecision {
  return {
    ...made,
    tenant_id,
    continuity_id,
    epoch,
    selected_runtime_id,
    requirements,
    ...(policy && { policy }),
    classification,
    policy_version: policy?.version ?? null,
    candidates,
  };
}

export function termsOf(decision: PlacementDecision): PlacementTerms {
  const { requirements, policy, classification } = decision;
  return { requirements, policy: policy ?? null, classification };
}

/** The score of each value: ten for the lowest; equal values share the best score. */
function ranks(values: readonly (number | undefined)[]): ReadonlyMap<number, number> {
  const known = values.filter((value) => value !== undefined).sort((a, b) => a - b);
  const scores = new Map<number, number>();
  for (const [i, value] of known.entries()) {
    const score = Math.floor(((known.length - i) * 10) / known.length);
    if (!scores.has(value)) scores.set(value, score);
  }
  return scores;
}

function rankIn(scores: ReadonlyMap<number, number>, value: number | undefined): number {
  return value === undefined ? 0 : (scores.get(value) ?? 0);
}
