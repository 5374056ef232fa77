/** Checkpoints of an execution as callers see them. */

import type { Boundary, CheckpointRecord, Location } from '../../../schema/continuity.js';
import { isJsonObject, type JsonValue, ownValue } from '../../../src/base/json.js';
import { canonicalSha256 } from '../../../src/core/sealing/canonical-json.js';

const UNKNOWN_BOUNDARY = 'unknown_boundary';

export function checkpointBoundary(
  checkpoint: CheckpointRecord,
  { continuity_id, epoch }: Location,
  sequence: { readonly id: string; readonly version: number },
): Boundary {
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

/** The block that the data names by convention. */
export function boundaryBlock(data: JsonValue): string | undefined {
  if (!isJsonObject(data)) return undefined;
  const names = [ownValue(data, 'safe_boundary'), ownValue(data, 'block_id')];
  return names.find((name) => typeof name === 'string');
}
