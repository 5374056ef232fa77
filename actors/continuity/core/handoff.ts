/**
 * The record of a handoff, and the reasons against creating or exporting one. Changed facts are a
 * conflict, never a reason to choose another destination.
 */

import { toUnixMs } from '../../../schema/common.js';
import type { HandoffState } from '../../../schema/continuity-words.js';
import type { Handoff, RuntimeCapabilities } from '../../../schema/handoff.js';
import type { BodyOf } from '../../../schema/routes.js';
import { type InstanceState, isTerminal } from '../../../schema/states.js';
import { isoTime, type UnixMs } from '../../../src/base/time.js';
import { canonicalJson } from '../../../src/core/sealing/canonical-json.js';
import type { StoredRow } from '../../../src/db/table.js';
import type { HANDOFFS } from '../tables.js';
import { type HandoffPreview, judge, type PlacementDecision, termsOf } from './placement.js';
import { areSameTerms, isLive, type PlacementTerms, type Requirements } from './runtimes.js';

export const EXPORT_FAILED = 'CAPSULE_EXPORT_FAILED';

export interface HandoffRequest
  extends Pick<
    BodyOf<'handoffs.create'>,
    'continuity_id' | 'preview_sha256' | 'destination_runtime_id'
  > {
  readonly terms: PlacementTerms;
}

/**
 * The first reason against the handoff.
 * @param preview from the current facts; undefined when the destination is not live
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

/** The preview has all reasons. */
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
  /** In the export request. */
  readonly requirements: Requirements;
  readonly destination: RuntimeCapabilities | undefined;
  readonly instanceState: InstanceState;
  /** Started, or waiting for a slot: a capsule carries no scheduled start. */
  readonly hasBegun: boolean;
  readonly hasCheckpoint: boolean;
}

/** The first reason against the export. */
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
