/**
 * Placement: judges and scores the live runtimes of a tenant, and selects the best allowed one. A
 * handoff is bound to the hash of its preview, which covers the execution, the terms and the
 * capabilities of the destination, but no other runtimes and no times of registration.
 */

import type { EffectReceipt, Execution, MigrationFinding } from '../../../schema/continuity.js';
import { isEffectInDoubt } from '../../../schema/continuity-words.js';
import type {
  RuntimeCapabilities,
  PlacementDecision as SentDecision,
  HandoffPreview as SentPreview,
} from '../../../schema/handoff.js';
import { compareText } from '../../../src/base/bounds.js';
import type { UnixMs } from '../../../src/base/time.js';
import { canonicalSha256 } from '../../../src/core/sealing/canonical-json.js';
import {
  compatibilityFindings,
  type Finding,
  isLive,
  type LocalityPolicy,
  localityFindings,
  type Outcome,
  outcomeOf,
  type PlacementTerms,
  type Requirements,
  trustRank,
} from './runtimes.js';

export const CANDIDATES_MAX = 1_000;

/** Candidates are sorted by descending score, then by id. */
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

/** The latest observed live runtimes, and `wanted` if it is live. */
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

export function placeExecution(
  runtimes: readonly RuntimeCapabilities[],
  terms: PlacementTerms,
  ownerRuntimeId: string,
  now: UnixMs,
): Placement {
  const battery = ranking(runtimes.map(drainOf));
  const cost = ranking(runtimes.map((one) => one.estimated_cost_microunits));
  const latency = ranking(runtimes.map((one) => one.estimated_latency_ms));
  const candidates = runtimes.map((one): Candidate => {
    const score_factors = {
      trust: 10 * trustRank(one.trust),
      current_runtime: one.runtime_id === ownerRuntimeId ? 5 : 0,
      offline_capable: one.offline_capable ? 3 : 0,
      battery_rank: battery(drainOf(one)),
      cost_rank: cost(one.estimated_cost_microunits),
      latency_rank: latency(one.estimated_latency_ms),
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

/** The lowest is the fullest battery. */
const drainOf = ({ battery_percent }: RuntimeCapabilities) =>
  battery_percent === undefined ? undefined : -battery_percent;

/** 10 for the lowest value, 0 for an unknown one; equal values share the best score. */
function ranking(values: readonly (number | undefined)[]) {
  const known = values.filter((value) => value !== undefined).sort((a, b) => a - b);
  const scores = new Map<number | undefined, number>();
  for (const [i, value] of known.entries()) {
    const score = Math.floor(((known.length - i) * 10) / known.length);
    if (!scores.has(value)) scores.set(value, score);
  }
  return (value: number | undefined) => scores.get(value) ?? 0;
}

/** Lists findings about the destination before obstacles of the instance. */
export interface HandoffPreview extends Omit<SentPreview, 'placement_decision'> {
  readonly placement_decision: PlacementDecision;
}

export interface PreviewFacts {
  readonly execution: PlacedExecution;
  /** May be expired. */
  readonly runtimes: readonly RuntimeCapabilities[];
  readonly destination_runtime_id: string;
  readonly terms: PlacementTerms;
  /** Of the execution, in a fixed order. */
  readonly effects: readonly EffectReceipt[];
  /** Independent of the destination. */
  readonly obstacles: readonly MigrationFinding[];
  readonly now: UnixMs;
  readonly decision: Pick<PlacementDecision, 'id' | 'created_at'>;
}

/** Undefined when the destination is not registered or no longer live. */
export function previewHandoff(facts: PreviewFacts): HandoffPreview | undefined {
  const { execution, destination_runtime_id, terms, now } = facts;
  const candidates = liveCandidates(facts.runtimes, now, destination_runtime_id);
  const destination = candidates.find((one) => one.runtime_id === destination_runtime_id);
  if (destination === undefined) return undefined;
  const placement = placeExecution(candidates, terms, execution.owner_runtime_id, now);
  const judgement = judge(destination, terms, now);
  const isAllowed = judgement.outcome === 'allow';
  // The caller's choice overrides a better score, but not a denial.
  const selected_runtime_id = isAllowed ? destination_runtime_id : placement.selected_runtime_id;
  const chosen = { ...placement, selected_runtime_id };
  const decision = placementDecision(facts.decision, execution, terms, chosen);
  const unresolved_effects = facts.effects.filter(({ state }) => isEffectInDoubt(state));
  const shown = {
    continuity_id: execution.continuity_id,
    source_runtime_id: execution.owner_runtime_id,
    compatible: isAllowed && unresolved_effects.length === 0 && facts.obstacles.length === 0,
    // Passed policies appear with the candidate only.
    findings: [
      ...judgement.findings.filter(
        ({ code, status }) => status !== 'pass' || code === 'COMPATIBLE',
      ),
      ...facts.obstacles.map(({ code, summary, remedy }) => {
        return { code, status: 'fail' as const, summary, remedy };
      }),
    ],
    unresolved_effects,
  };
  const { observed_at: _, expires_at: _until, ...offered } = destination;
  const evidence = { ...shown, ...terms, epoch: execution.epoch, destination: offered };
  return {
    ...shown,
    destination_runtime_id,
    placement_decision: decision,
    placement_decision_id: decision.id,
    preview_sha256: canonicalSha256(evidence),
  };
}
