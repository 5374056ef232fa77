/**
 * The record of a handoff, and what stands against making or exporting one (05 §8, §9, §10). Facts
 * that changed are a conflict, never a reason to choose another destination.
 */

import type { InstanceState } from '../states.js';
import { isoTime, type UnixMs } from '../time.js';
import { canonicalJson } from './canonical-json.js';
import type { RuntimeCapabilities } from './capabilities.js';
import type { Parsed } from './parsed.js';
import { judge, type PlacementDecision, termsOf } from './placement.js';
import type { HandoffPreview } from './preview.js';
import {
  areSameTerms,
  type Classification,
  type LocalityPolicy,
  type PlacementTerms,
  type Requirements,
} from './requirements.js';
import { type HandoffState, mayMoveHandoff } from './states.js';

export const EXPORT_FAILED = 'CAPSULE_EXPORT_FAILED';

export interface Handoff {
  readonly id: string;
  readonly continuity_id: string;
  readonly tenant_id: string;
  readonly source_runtime_id: string;
  readonly destination_runtime_id: string;
  readonly expected_epoch: number;
  readonly state: HandoffState;
  readonly capsule_id: string | null;
  readonly placement_decision_id: string;
  /** In lower case. */
  readonly preview_sha256: string;
  /** Counts the moves; whoever moves it names the version that it knows. */
  readonly version: number;
  readonly failure_code: string | null;
  readonly data_classification: Classification;
  readonly locality_policy: LocalityPolicy | null;
  readonly requirements: Requirements;
  readonly created_at: string;
  readonly updated_at: string;
}

export interface HandoffRequest {
  /** Absent: that of the decision. */
  readonly continuity_id?: string | null;
  readonly preview_sha256: string;
  readonly destination_runtime_id: string;
  readonly terms: PlacementTerms;
}

/** 64 hexadecimal digits in any case. */
export function isPreviewHash(text: string): boolean {
  return /^[0-9a-f]{64}$/i.test(text);
}

/**
 * Why a handoff cannot be made now, in the order of 05 §8 from the destination's life on.
 *
 * @param decision the stored one that the request names
 * @param preview the same preview computed again from the facts of now; undefined when the
 *   destination is no longer live
 */
export function creationConflict(
  request: HandoffRequest,
  decision: PlacementDecision,
  preview: HandoffPreview | undefined,
): string | undefined {
  const { continuity_id = null, destination_runtime_id, terms } = request;
  if (continuity_id !== null && continuity_id !== decision.continuity_id) {
    return 'the placement decision is for another execution';
  }
  if (preview === undefined) return 'the destination runtime is no longer live';
  if (!preview.compatible) return 'the destination is not compatible with the execution';
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
    areSameTerms(termsOf(now), terms) &&
    canonicalJson(decision.candidates) === canonicalJson(now.candidates);
  return isBound ? undefined : 'the placement decision is for something else than what is asked';
}

/** The record of a handoff that nothing stands against. */
export function requestedHandoff(
  id: string,
  { preview_sha256, destination_runtime_id, terms }: HandoffRequest,
  preview: HandoffPreview,
  decision: PlacementDecision,
  now: UnixMs,
): Handoff {
  return {
    id,
    continuity_id: decision.continuity_id,
    tenant_id: decision.tenant_id,
    source_runtime_id: preview.source_runtime_id,
    destination_runtime_id,
    expected_epoch: decision.epoch,
    state: 'requested',
    capsule_id: null,
    placement_decision_id: decision.id,
    preview_sha256: preview_sha256.toLowerCase(),
    version: 0,
    failure_code: null,
    data_classification: terms.classification,
    locality_policy: terms.policy,
    requirements: terms.requirements,
    created_at: isoTime(now),
    updated_at: isoTime(now),
  };
}

/** The record after a move; the message of a conflict when its state does not lead there. */
export function movedHandoff(
  handoff: Handoff,
  state: HandoffState,
  now: UnixMs,
  change: Partial<Pick<Handoff, 'capsule_id' | 'failure_code'>> = {},
): Parsed<Handoff> {
  if (!mayMoveHandoff(handoff.state, state)) {
    return { ok: false, message: `a handoff that is ${handoff.state} cannot become ${state}` };
  }
  const version = handoff.version + 1;
  return { ok: true, value: { ...handoff, ...change, state, version, updated_at: isoTime(now) } };
}

/** What the server knows when a capsule is asked for. */
export interface ExportFacts {
  readonly handoff: Handoff;
  readonly decision: PlacementDecision;
  /** As they are sent with the export. */
  readonly requirements: Requirements;
  /** What the destination says of itself now; undefined when it is not registered. */
  readonly destination: RuntimeCapabilities | undefined;
  readonly instanceState: InstanceState;
  readonly hasCheckpoint: boolean;
}

/**
 * Why no capsule can be exported now; the handoff stays requested (05 §10 steps 5 to 7, and the
 * checkpoint that step 9 needs).
 */
export function exportConflict(facts: ExportFacts, now: UnixMs): string | undefined {
  const { handoff, decision, requirements, destination, instanceState } = facts;
  const isSame =
    canonicalJson(requirements) === canonicalJson(decision.requirements) &&
    decision.continuity_id === handoff.continuity_id &&
    decision.epoch === handoff.expected_epoch &&
    decision.selected_runtime_id === handoff.destination_runtime_id;
  if (!isSame) return 'the export does not fit the placement decision of the handoff';
  if (destination === undefined) return 'the destination runtime is no longer live';
  if (judge(destination, termsOf(decision), now).outcome !== 'allow') {
    return 'the destination is no longer allowed to take the execution';
  }
  if (instanceState !== 'paused' && instanceState !== 'waiting') {
    return `only a paused or waiting instance can be exported, this one is ${instanceState}`;
  }
  return facts.hasCheckpoint ? undefined : 'the instance has no checkpoint';
}
