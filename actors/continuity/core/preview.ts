/**
 * The preview of a handoff, and the hash that ties the handoff to it. The hash has no end of
 * its own: it is stale as soon as anything that it covers is different. It covers the execution, the
 * terms, and what the destination says of itself: what others say, and when, makes no difference.
 */

import type { EffectReceipt, MigrationFinding } from '../../../schema/continuity.js';
import { isEffectInDoubt } from '../../../schema/continuity-words.js';
import type {
  RuntimeCapabilities,
  HandoffPreview as SentPreview,
} from '../../../schema/handoff.js';
import type { UnixMs } from '../../../src/base/time.js';
import { canonicalSha256 } from '../../../src/core/sealing/canonical-json.js';
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

/**
 * Its findings are those of the destination: compatibility, and what the policy has against it. Behind them is
 * what keeps the execution where it is.
 */
export interface HandoffPreview extends Omit<SentPreview, 'placement_decision'> {
  readonly placement_decision: PlacementDecision;
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
  /** What keeps the instance itself here, whoever the destination is. */
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
  // The caller's choice beats a better score, never a denial.
  const selected_runtime_id = isAllowed ? destination_runtime_id : placement.selected_runtime_id;
  const chosen = { ...placement, selected_runtime_id };
  const decision = placementDecision(facts.decision, execution, terms, chosen);
  const unresolved_effects = facts.effects.filter(({ state }) => isEffectInDoubt(state));
  const shown = {
    continuity_id: execution.continuity_id,
    source_runtime_id: execution.owner_runtime_id,
    compatible: isAllowed && unresolved_effects.length === 0 && facts.obstacles.length === 0,
    findings: [...judgement.findings.filter(isShown), ...facts.obstacles.map(obstacleFinding)],
    unresolved_effects,
  };
  const evidence = {
    ...shown,
    ...terms,
    epoch: execution.epoch,
    destination: factsOf(destination),
  };
  return {
    ...shown,
    destination_runtime_id,
    placement_decision: decision,
    placement_decision_id: decision.id,
    preview_sha256: previewHash(evidence),
  };
}

/** What a runtime offers; until when it is live is asked for by itself. */
type RuntimeFacts = Omit<RuntimeCapabilities, 'observed_at' | 'expires_at'>;

function factsOf({
  observed_at: _,
  expires_at: _until,
  ...facts
}: RuntimeCapabilities): RuntimeFacts {
  return facts;
}

/** Exactly what the hash covers; not among it are the decision's id and the time. */
export interface PreviewEvidence
  extends PlacementTerms,
    Pick<
      HandoffPreview,
      'continuity_id' | 'source_runtime_id' | 'compatible' | 'findings' | 'unresolved_effects'
    >,
    Pick<PlacementDecision, 'epoch'> {
  readonly destination: RuntimeFacts;
}

export function previewHash(evidence: PreviewEvidence): string {
  return canonicalSha256(evidence);
}

function obstacleFinding({ code, summary, remedy }: MigrationFinding): Finding {
  return { code, status: 'fail', summary, remedy };
}

/** A policy that agrees is no news: its code stands with the candidate. */
function isShown({ code, status }: Finding): boolean {
  return status !== 'pass' || code === 'COMPATIBLE';
}
