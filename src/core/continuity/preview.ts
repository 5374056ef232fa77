/**
 * The preview of a handoff, and the hash that ties the handoff to it. The hash has no end of
 * its own: it is stale as soon as anything that it covers is different.
 */

import type { EffectReceipt } from '../../../schema/continuity.js';
import type { RuntimeCapabilities } from '../../../schema/handoff.js';
import type { UnixMs } from '../time.js';
import { canonicalSha256 } from './canonical-json.js';
import type { Finding } from './findings.js';
import {
  judge,
  liveCandidates,
  type PlacedExecution,
  type PlacementDecision,
  placeExecution,
  placementDecision,
} from './placement.js';
import type { PlacementTerms } from './requirements.js';
import { isResolvedEffect } from './states.js';

export interface HandoffPreview {
  readonly continuity_id: string;
  readonly source_runtime_id: string;
  readonly destination_runtime_id: string;
  readonly compatible: boolean;
  /** Of the destination: compatibility, and what the policy has against it. */
  readonly findings: readonly Finding[];
  readonly unresolved_effects: readonly EffectReceipt[];
  readonly placement_decision: PlacementDecision;
  readonly placement_decision_id: string;
  /** 64 lower-case hexadecimal digits. */
  readonly preview_sha256: string;
}

/** Everything that a preview is made from. */
export interface PreviewFacts {
  readonly execution: PlacedExecution;
  /** All registrations of the tenant that may be live. */
  readonly runtimes: readonly RuntimeCapabilities[];
  readonly destination_runtime_id: string;
  readonly terms: PlacementTerms;
  /** All receipts of the execution, in a fixed order. */
  readonly effects: readonly EffectReceipt[];
  readonly now: UnixMs;
  readonly decision: { readonly id: string; readonly created_at: string };
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
  // The caller's choice beats a better score, never a denial.
  const selected_runtime_id = isAllowed ? destination_runtime_id : placement.selected_runtime_id;
  const chosen = { ...placement, selected_runtime_id };
  const decision = placementDecision(facts.decision, execution, terms, chosen);
  const unresolved_effects = facts.effects.filter(({ state }) => !isResolvedEffect(state));
  const findings = judgement.findings.filter(isShown);
  const compatible = isAllowed && unresolved_effects.length === 0;
  return {
    continuity_id: execution.continuity_id,
    source_runtime_id: execution.owner_runtime_id,
    destination_runtime_id,
    compatible,
    findings,
    unresolved_effects,
    placement_decision: decision,
    placement_decision_id: decision.id,
    preview_sha256: previewHash({
      continuity_id: execution.continuity_id,
      epoch: execution.epoch,
      source_runtime_id: execution.owner_runtime_id,
      destination,
      requirements: terms.requirements,
      policy: terms.policy,
      classification: terms.classification,
      selected_runtime_id,
      candidates: decision.candidates,
      compatible,
      findings,
      unresolved_effects,
    }),
  };
}

/** Exactly what the hash covers; not among it are the decision's id and the time. */
export interface PreviewEvidence extends PlacementTerms {
  readonly continuity_id: string;
  readonly epoch: number;
  readonly source_runtime_id: string;
  /** The whole registration, its times too. */
  readonly destination: RuntimeCapabilities;
  readonly selected_runtime_id: string | null;
  readonly candidates: PlacementDecision['candidates'];
  readonly compatible: boolean;
  readonly findings: readonly Finding[];
  readonly unresolved_effects: readonly EffectReceipt[];
}

export function previewHash(evidence: PreviewEvidence): string {
  return canonicalSha256(evidence);
}

/** A policy that agrees is no news: its code stands with the candidate. */
function isShown({ code, status }: Finding): boolean {
  return status !== 'pass' || code === 'COMPATIBLE';
}
