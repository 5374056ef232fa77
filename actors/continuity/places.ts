/** The stored position and context of an instance, which a capsule carries and a migration is planned on. */

import type { Block } from '../../schema/blocks.js';
import type { CheckpointRecord } from '../../schema/continuity.js';
import type { Execution } from '../../schema/execution.js';
import { conflict } from '../../src/base/errors.js';
import type { JsonObject, JsonValue } from '../../src/base/json.js';
import type { Plan } from '../../src/core/plan.js';
import type { Plans } from '../catalog/plans.js';
import { type LivePlace, placeSha256 } from '../instance/core/live-place.js';
import type { ContinuityRows, PlaceRow } from './rows.js';

export interface Place extends LivePlace {
  readonly row: PlaceRow;
  readonly runtime: JsonObject;
  readonly sha256: string;
}

/** Undefined when the instance is not here. */
export async function placeOf(rows: ContinuityRows, instance: string): Promise<Place | undefined> {
  const row = await rows.one('place', instance);
  if (row === undefined) return undefined;
  const place = {
    data: JSON.parse(row.data) as JsonObject,
    config: JSON.parse(row.config) as JsonObject,
    audit: JSON.parse(row.context_audit) as JsonValue[],
    execution: JSON.parse(row.execution) as Execution,
  };
  const runtime = JSON.parse(row.runtime) as JsonObject;
  return { ...place, row, runtime, sha256: placeSha256(place) };
}

export function contextOf({ data, config, audit, runtime }: Place): JsonObject {
  return { data, config, audit: [...audit], runtime };
}

/** The latest checkpoint. Rejects with 409 when there is none. */
export async function checkpointOf(
  rows: ContinuityRows,
  instance: string,
): Promise<CheckpointRecord> {
  const row = await rows.one('lastCheckpoint', instance);
  if (row === undefined) throw conflict(`instance ${instance} has no checkpoint`);
  return { ...row, checkpoint_data: JSON.parse(row.checkpoint_data ?? 'null') as JsonValue };
}

/** The plan of a sequence with the injected blocks of one instance. Rejects with 409 when there is none. */
export async function planOf(
  plans: Plans,
  sequence: string,
  blocks: readonly JsonObject[],
): Promise<Plan> {
  const own = blocks as unknown as Block[];
  const compiled =
    own.length === 0
      ? await plans.load(sequence).then((stored) => stored && { ok: true as const, ...stored })
      : await plans.compile(sequence, own);
  if (compiled === undefined) throw conflict(`sequence ${sequence} is not stored here`);
  if (!compiled.ok) throw conflict(compiled.message);
  return compiled.plan;
}
