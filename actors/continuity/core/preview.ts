/**
 * The preview of a handoff, and the hash that binds the handoff to it. The hash covers the execution,
 * the terms and the capabilities of the destination; it is stale as soon as one of them changes. Other
 * runtimes and times of registration do not affect it.
 */

import type { EffectReceipt, MigrationFinding } from '../../../schema/continuity.js';
import { isEffectInDoubt } from '../../../schema/continuity-words.js';
import type {
  RuntimeCapabilities,
  HandoffPreview as SentPreview,
} from '../../../schema/handoff.js';
import type { UnixMs } from '../../../src/base/time.js';
import { canonicalSha256 } from '../../../src/core/sealing/canonical-json.js';
import {
  judge,
  liveCandidates,
  type PlacedExecution,
  type PlacementDecision,
  placeExecution,
  placementDecision,
} from './placement.js';
import type { PlacementTerms } from './requirements.js';

/** Findings: compatibility and policy violations of the destination, then obstacles of the instance. */
export interface HandoffPreview extends Omit<SentPreview, 'placement_decision'> {
  readonly placement_decision: PlacementDecision;
}

export interface PreviewFacts {
  readonly execution: PlacedExecution;
  /** The registrations of the tenant that may be live. */
  readonly runtimes: readonly RuntimeCapabilities[];
  readonly destination_runtime_id: string;
  readonly terms: PlacementTerms;
  /** All receipts of the execution, in a fixed order. */
  readonly effects: readonly EffectReceipt[];
  /** Obstacles of the instance, independent of the destination. */
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
    // Passed policies are listed with the candidate only.
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
