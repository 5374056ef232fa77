/**
 * Placements and handoffs. A placement judges and scores the live runtimes of a tenant, and selects the best allowed
 * one. A handoff is bound to the hash of its preview, which covers the execution, the terms and the capabilities of the
 * destination. Changed facts are a conflict, never a reason to choose another destination.
 */

import { toUnixMs } from '../../../schema/common.js';
import type { EffectReceipt, Execution, MigrationFinding } from '../../../schema/continuity.js';
import { type HandoffState, isEffectInDoubt } from '../../../schema/continuity-words.js';
import type {
  Handoff,
  RuntimeCapabilities,
  PlacementDecision as SentDecision,
  HandoffPreview as SentPreview,
} from '../../../schema/handoff.js';
import type { BodyOf } from '../../../schema/routes.js';
import { type InstanceState, isTerminal } from '../../../schema/states.js';
import { compareText } from '../../../src/base/bounds.js';
import { isoTime, type UnixMs } from '../../../src/base/time.js';
import { canonicalJson, canonicalSha256 } from '../../../src/core/sealing/canonical-json.js';
import type { StoredRow } from '../../../src/db/table.js';
import type { HANDOFFS } from '../tables.js';
import {
  areSameTerms,
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

export const EXPORT_FAILED = 'CAPSULE_EXPORT_FAILED';

export interface HandoffRequest
  extends Pick<
    BodyOf<'handoffs.create'>,
    'continuity_id' | 'preview_sha256' | 'destination_runtime_id'
  > {
  readonly terms: PlacementTerms;
}

/** @param preview from the current facts */
export function creationConflict(
  request: HandoffRequest,
  decision: PlacementDecision,
  preview: HandoffPreview,
): string | undefined {
  const { continuity_id = null, destination_runtime_id, terms } = request;
  if (continuity_id !== null && continuity_id !== decision.continuity_id) {
    return 'the placement decision is for another execution';
  }
  if (!preview.compatible) {
    return `the destination is not compatible with the execution: ${reasonsAgainst(preview)}`;
  }
  if (preview.preview_sha256 !== request.preview_sha256.toLowerCase()) {
    return 'the preview is stale: its facts have changed';
  }
  const now = preview.placement_decision;
  const isBound =
    decision.tenant_id === now.tenant_id &&
    decision.continuity_id === now.continuity_id &&
    decision.epoch === now.epoch &&
    decision.selected_runtime_id === destination_runtime_id &&
    now.selected_runtime_id === destination_runtime_id &&
    areSameTerms(termsOf(decision), terms) &&
    areSameTerms(termsOf(now), terms);
  return isBound
    ? undefined
    : 'the placement decision is for something else than what is requested';
}

function reasonsAgainst({ findings, unresolved_effects }: HandoffPreview): string {
  const found = findings.filter(({ status }) => status !== 'pass');
  const reasons = found.map(({ code, summary }) => `${code}: ${summary}`);
  for (const { id, state } of unresolved_effects) reasons.push(`effect ${id} is ${state}`);
  return reasons.slice(0, REASONS_MAX).join('; ');
}

const REASONS_MAX = 3;

export function requestedHandoff(
  id: string,
  { preview_sha256, destination_runtime_id, terms }: HandoffRequest,
  preview: HandoffPreview,
  decision: PlacementDecision,
  now: UnixMs,
): HandoffFacts {
  return {
    id,
    continuity_id: decision.continuity_id,
    tenant_id: decision.tenant_id,
    source_runtime_id: preview.source_runtime_id,
    destination_runtime_id,
    expected_epoch: decision.epoch,
    state: 'requested',
    capsule_id: null,
    capsule_expires_at: null,
    placement_decision_id: decision.id,
    preview_sha256: preview_sha256.toLowerCase(),
    version: 0,
    failure_code: null,
    terms: JSON.stringify(terms),
    created_at: isoTime(now),
    updated_at: isoTime(now),
  };
}

export interface ExportFacts {
  readonly handoff: Pick<
    HandoffFacts,
    'continuity_id' | 'expected_epoch' | 'destination_runtime_id'
  >;
  readonly decision: PlacementDecision;
  readonly requirements: Requirements;
  readonly destination: RuntimeCapabilities | undefined;
  readonly instanceState: InstanceState;
  /** Started, or waiting for a slot: a capsule carries no scheduled start. */
  readonly hasBegun: boolean;
  readonly hasCheckpoint: boolean;
}

export function exportConflict(facts: ExportFacts, now: UnixMs): string | undefined {
  const { handoff, decision, requirements, destination, instanceState } = facts;
  const isSame =
    canonicalJson(requirements) === canonicalJson(decision.requirements) &&
    decision.continuity_id === handoff.continuity_id &&
    decision.epoch === handoff.expected_epoch &&
    decision.selected_runtime_id === handoff.destination_runtime_id;
  if (!isSame) return 'the export does not fit the placement decision of the handoff';
  if (destination === undefined || !isLive(destination, now)) {
    return 'the destination runtime is no longer live';
  }
  if (judge(destination, termsOf(decision), now).outcome !== 'allow') {
    return 'the destination is no longer allowed to take the execution';
  }
  const isAtRest = instanceState === 'paused' || instanceState === 'waiting';
  if (!isAtRest && (!facts.hasBegun || isTerminal(instanceState))) {
    return (
      'only a paused or waiting instance, or one that waits for a time or has failed, can be ' +
      `exported; this one is ${instanceState}`
    );
  }
  return facts.hasCheckpoint ? undefined : 'the instance has no checkpoint';
}

/** `terms` is the JSON text of PlacementTerms. */
export interface HandoffFacts extends Omit<StoredRow<typeof HANDOFFS>, 'state'> {
  readonly state: HandoffState;
}

/** @param destination state of its instance at the next epoch, if it is here */
export function handoffView(
  row: HandoffFacts,
  now: UnixMs,
  destination?: InstanceState | undefined,
): Handoff {
  const { capsule_expires_at: _, terms: text, ...shown } = row;
  const { requirements, policy, classification } = handoffTerms(row);
  return {
    ...shown,
    state: handoffStateAt(row, now, destination),
    data_classification: classification,
    ...(policy && { locality_policy: policy }),
    requirements,
  };
}

export function handoffTerms({ terms }: Pick<HandoffFacts, 'terms'>): PlacementTerms {
  return JSON.parse(terms) as PlacementTerms;
}

/** Handoffs expire with their capsule, and complete with the instance at the destination. */
export function handoffStateAt(
  { state, capsule_expires_at }: Pick<HandoffFacts, 'state' | 'capsule_expires_at'>,
  now: UnixMs,
  destination?: InstanceState | undefined,
): HandoffState {
  const expiresMs = capsule_expires_at === null ? undefined : toUnixMs(capsule_expires_at);
  if (state === 'exported' && expiresMs !== undefined && expiresMs <= now) return 'expired';
  const isOver = destination !== undefined && isTerminal(destination);
  return state === 'resumed' && isOver ? 'completed' : state;
}

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
