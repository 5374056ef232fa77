/**
 * Seals a fenced instance in a capsule: its context, outputs, position in the plan, items of running loops and injected
 * blocks, so that no finished step runs again. The payload is stored as an artifact.
 */

import { randomBytes } from 'node:crypto';
import type { Block } from '../../schema/blocks.js';
import type { CheckpointRecord } from '../../schema/continuity.js';
import type { Execution } from '../../schema/execution.js';
import { PRIORITIES } from '../../schema/states.js';
import { conflict, invalid, tooLarge } from '../../src/base/errors.js';
import type { JsonObject, JsonValue } from '../../src/base/json.js';
import { type Job, TooCostly } from '../../src/base/offload.js';
import { isoTime } from '../../src/base/time.js';
import { KEY_BYTES, type PayloadKey, parseTransferKey } from '../../src/core/sealing/keys.js';
import { NONCE_BYTES } from '../../src/core/sealing/sealing.js';
import type { Plans } from '../catalog/plans.js';
import { dataOf } from '../instance/context-data.js';
import { type LivePlace, placeSha256 } from '../instance/core/live-place.js';
import { runtimeText } from '../instance/core/runtime-text.js';
import type { Turn } from '../runtime/turn.js';
import {
  CAPSULE_CONTENT_TYPE,
  type CapsuleFacts,
  PAYLOAD_BYTES_MAX,
  type PayloadFrame,
  type SealedCapsule,
} from './core/capsule.js';
import { writeTree } from './core/execution-tree.js';
import type { ExecutionBefore, ExecutionService } from './execution-service.js';
import { SEAL_CAPSULE } from './jobs.js';
import { keysOf, unwrapped } from './operation.js';
import type { ContinuityRows, PlaceRow } from './rows.js';
import { ARTIFACT } from './tables.js';

type CapsuleTerms = Pick<
  CapsuleFacts,
  'capsule_id' | 'allowed_destination_runtime_id' | 'requirements' | 'expires_at'
>;

/**
 * Seals the instance, which is fenced, or compared later by `placeSha256`; by default with its
 * latest checkpoint and the server's own key. The turn stores the payload. Rejects with 409 when
 * the instance has no checkpoint or is not here, 409 or 413 when it is too large for a capsule.
 */
export async function sealInstance(
  service: ExecutionService,
  turn: Turn,
  execution: ExecutionBefore,
  terms: CapsuleTerms,
  options: { checkpoint?: CheckpointRecord; transferKey?: PayloadKey | undefined },
): Promise<SealedCapsule> {
  const { continuity_id, tenant_id, epoch, current_instance_id, owner_runtime_id } = execution;
  const { frame, outputs, ...about } = await contentsOf(
    service,
    current_instance_id,
    options.checkpoint,
  );
  const { signing, payload } = keysOf(service);
  const head = await service.rows.one('provenanceHead', continuity_id);
  const made = await workOn(service, tenant_id, SEAL_CAPSULE, {
    facts: {
      ...terms,
      ...about,
      continuity_id,
      tenant_id,
      epoch,
      source_instance_id: current_instance_id,
      source_runtime_id: owner_runtime_id,
      provenance_head: head?.entry_sha256 ?? null,
      issued_at: isoTime(service.now),
    },
    frame,
    outputs,
    keys: { signing, payload: options.transferKey ?? payload },
    nonce: randomBytes(NONCE_BYTES),
  });
  const sealed = unwrapped(made, conflict);
  const { key, sha256 } = sealed.capsule.manifest.payload_artifact;
  const ids = { key, instance_id: current_instance_id, tenant_id };
  const content = { content_type: CAPSULE_CONTENT_TYPE, sha256, created_at: isoTime(service.now) };
  const columns = JSON.stringify({ ...ids, ...content });
  // Base64 needs no escaping; JSON.stringify would scan the large text.
  turn.put(ARTIFACT.insert, key, `${columns.slice(0, -1)},"content":"${sealed.payload_base64}"}`);
  return sealed;
}

async function contentsOf(
  { rows, plans }: ExecutionService,
  instance: string,
  chosen?: CheckpointRecord,
) {
  const [place, totals] = await Promise.all([
    placeOf(rows, instance),
    rows.one('outputTotals', instance),
  ]);
  if (place === undefined) throw conflict(`instance ${instance} is not here`);
  const checkpoint = chosen ?? (await checkpointOf(rows, instance));
  if ((totals?.bytes ?? 0) > PAYLOAD_BYTES_MAX) {
    throw conflict(`the outputs of instance ${instance} are too large for a capsule`);
  }
  const { row, execution, runtime } = place;
  const blocks = JSON.parse(row.injected ?? '[]') as JsonObject[];
  const [outputs, lists, signals, effects, plan] = await Promise.all([
    rows.all('outputs', instance),
    rows.all('items', instance),
    rows.all('signals', instance),
    rows.all('effectIds', instance),
    planOf(plans, row.sequence_id, blocks),
  ]);
  const items = new Map(lists.map(({ key, items: list }) => [key, JSON.parse(list)]));
  const { current_step: step } = runtime;
  const frame: PayloadFrame = {
    instance: {
      sequence_id: row.sequence_id,
      namespace: row.namespace,
      priority: PRIORITIES[row.priority] ?? 'normal',
      timezone: row.timezone,
      metadata: JSON.parse(row.metadata) as JsonObject,
      context: contextOf(place),
      budget: null,
      parent_instance_id: row.parent_instance_id,
      ...(row.timeout === null ? {} : { timeout: row.timeout }),
    },
    checkpoint,
    execution_tree: writeTree({ execution, items, blocks }, plan),
    effect_ids: effects.map(({ id }) => id),
    pending_waits: [],
    pending_signals: signals.map(({ payload, ...signal }) => {
      return { ...signal, payload: JSON.parse(payload ?? 'null') as JsonValue };
    }),
    artifacts: [],
    stream_cursors: [],
    redacted_audit_context: null,
  };
  return {
    frame,
    outputs,
    sequence_version: row.version,
    sequence_definition: JSON.parse(row.definition) as JsonValue,
    current_step: typeof step === 'string' ? step : null,
  };
}

/** Rejects with 413 when the job takes too much time or memory, 503 when the pool is busy. */
export async function workOn<Input, Output>(
  service: ExecutionService,
  tenant: string,
  job: Job<Input, Output>,
  input: Input,
): Promise<Output> {
  try {
    return await service.offload.run(tenant, job, input);
  } catch (error) {
    if (!(error instanceof TooCostly)) throw error;
    throw tooLarge('the capsule takes too long or too much memory');
  }
}

/** @throws EngineError 400 unless a present key is base64 of 32 bytes */
export function transferKeyIn(text: string | null | undefined): PayloadKey | undefined {
  if (text == null) return undefined;
  const key = parseTransferKey(text);
  if (key === undefined) throw invalid(`payload_key_base64 must be base64 of ${KEY_BYTES} bytes`);
  return key;
}

export interface Place extends LivePlace {
  readonly row: PlaceRow;
  readonly runtime: JsonObject;
  readonly sha256: string;
}

export async function placeOf(rows: ContinuityRows, instance: string): Promise<Place | undefined> {
  const row = await rows.one('place', instance);
  if (row === undefined) return undefined;
  const place = {
    data: dataOf(row).data,
    config: JSON.parse(row.config) as JsonObject,
    audit: JSON.parse(row.context_audit) as JsonValue[],
    execution: JSON.parse(row.execution) as Execution,
  };
  const runtime = JSON.parse(runtimeText(instance, row)) as JsonObject;
  return { ...place, row, runtime, sha256: placeSha256(place) };
}

export function contextOf({ data, config, audit, runtime }: Place): JsonObject {
  return { data, config, audit: [...audit], runtime };
}

export async function checkpointOf(
  rows: ContinuityRows,
  instance: string,
): Promise<CheckpointRecord> {
  const row = await rows.one('lastCheckpoint', instance);
  if (row === undefined) throw conflict(`instance ${instance} has no checkpoint`);
  return { ...row, checkpoint_data: JSON.parse(row.checkpoint_data ?? 'null') as JsonValue };
}

/** The plan with the injected blocks of one instance. Rejects with 409 when there is none. */
export async function planOf(plans: Plans, sequence: string, blocks: readonly JsonObject[]) {
  const compiled = await plans.compile(sequence, blocks as unknown as Block[]);
  if (compiled === undefined) throw conflict(`sequence ${sequence} is not stored here`);
  if (!compiled.ok) throw conflict(compiled.message);
  return compiled.plan;
}
