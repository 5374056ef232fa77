/** Checkpoints as an execution shows them: where each stands in its life (05 §2). */

import { compareText } from '../expression/bounds.js';
import { isJsonObject, type JsonValue, ownValue } from '../json.js';
import { canonicalSha256 } from './canonical-json.js';
import type { CheckpointRecord } from './capsule-payload.js';

export const UNKNOWN_BOUNDARY = 'unknown_boundary';

/** Where an execution was from one epoch on. */
export interface ExecutionLocation {
  readonly continuity_id: string;
  readonly tenant_id: string;
  readonly epoch: number;
  readonly runtime_id: string;
  readonly instance_id: string;
  readonly handoff_id: string | null;
  readonly entered_at: string;
}

export interface CheckpointBoundary {
  readonly checkpoint_id: string;
  readonly instance_id: string;
  readonly continuity_id: string;
  readonly epoch: number;
  readonly sequence_id: string;
  readonly sequence_version: number;
  readonly block_id: string;
  /** Of the canonical data. */
  readonly checkpoint_sha256: string;
  readonly provenance_head: null;
  readonly created_at: string;
}

export function checkpointBoundary(
  checkpoint: CheckpointRecord,
  { continuity_id, epoch }: ExecutionLocation,
  sequence: { readonly id: string; readonly version: number },
): CheckpointBoundary {
  return {
    checkpoint_id: checkpoint.id,
    instance_id: checkpoint.instance_id,
    continuity_id,
    epoch,
    sequence_id: sequence.id,
    sequence_version: sequence.version,
    block_id: boundaryBlock(checkpoint.checkpoint_data) ?? UNKNOWN_BOUNDARY,
    checkpoint_sha256: canonicalSha256(checkpoint.checkpoint_data),
    provenance_head: null,
    created_at: checkpoint.created_at,
  };
}

/** By epoch, then by time. */
export function compareBoundaries(a: CheckpointBoundary, b: CheckpointBoundary): number {
  return (
    a.epoch - b.epoch ||
    compareText(a.created_at, b.created_at) ||
    compareText(a.checkpoint_id, b.checkpoint_id)
  );
}

/** The block that the data names by convention; undefined when it names none. */
export function boundaryBlock(data: JsonValue): string | undefined {
  if (!isJsonObject(data)) return undefined;
  const names = [ownValue(data, 'safe_boundary'), ownValue(data, 'block_id')];
  return names.find((name) => typeof name === 'string');
}
