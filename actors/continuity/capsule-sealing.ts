/** Seals and signs the contents of a capsule, and stores its payload as an artifact. */

import { randomBytes } from 'node:crypto';
import { conflict, invalid, tooLarge } from '../../src/base/errors.js';
import { type Job, TooCostly } from '../../src/base/offload.js';
import { isoTime } from '../../src/base/time.js';
import { KEY_BYTES, type PayloadKey, parseTransferKey } from '../../src/core/sealing/keys.js';
import { NONCE_BYTES } from '../../src/core/sealing/sealing.js';
import type { Turn } from '../runtime/turn.js';
import type { CapsuleContents } from './capsule-contents.js';
import { CAPSULE_CONTENT_TYPE, type CapsuleFacts } from './core/capsule.js';
import type { SealedCapsule } from './core/sealed-payload.js';
import type { ExecutionService } from './execution-service.js';
import { SEAL_CAPSULE } from './jobs.js';
import { keysOf, unwrapped } from './operation.js';
import type { ExecutionRow } from './rows.js';
import { ARTIFACT } from './tables.js';

/** What the exporter decides; the rest follows from the execution and the contents. */
type CapsuleTerms = Pick<
  CapsuleFacts,
  'capsule_id' | 'allowed_destination_runtime_id' | 'requirements' | 'expires_at'
>;

/**
 * Rejects with 409 or 413 when the contents are over a bound.
 *
 * @param transferKey absent: the payload is sealed with the server's own key
 */
export async function sealContents(
  service: ExecutionService,
  execution: ExecutionRow,
  { frame, outputs, ...about }: CapsuleContents,
  terms: CapsuleTerms,
  transferKey?: PayloadKey,
): Promise<SealedCapsule> {
  const { continuity_id, tenant_id, epoch } = execution;
  const { signing, payload } = keysOf(service);
  const head = await service.rows.one('provenanceHead', continuity_id);
  const made = await workOn(service, tenant_id, SEAL_CAPSULE, {
    facts: {
      ...terms,
      ...about,
      continuity_id,
      tenant_id,
      epoch,
      source_instance_id: execution.current_instance_id,
      source_runtime_id: execution.owner_runtime_id,
      provenance_head: head?.entry_sha256 ?? null,
      issued_at: isoTime(service.now),
    },
    frame,
    outputs,
    keys: { signing, payload: transferKey ?? payload },
    nonce: randomBytes(NONCE_BYTES),
  });
  return unwrapped(made, conflict);
}

/** Rejects with 413 when the capsule takes too much time or memory, 503 when the pool is busy. */
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

/** @throws EngineError 400 unless the key, if there is one, is base64 of 32 bytes */
export function transferKeyIn(text: string | null | undefined): PayloadKey | undefined {
  if (text == null) return undefined;
  const key = parseTransferKey(text);
  if (key === undefined) throw invalid(`payload_key_base64 must be base64 of ${KEY_BYTES} bytes`);
  return key;
}

/** Stores the sealed payload as an artifact of the source instance. */
export function putArtifact(
  service: ExecutionService,
  turn: Turn,
  { capsule, payload_base64 }: SealedCapsule,
): void {
  const { payload_artifact, tenant_id, source_instance_id } = capsule.manifest;
  const { key, sha256 } = payload_artifact;
  const columns = JSON.stringify({
    key,
    instance_id: source_instance_id,
    tenant_id,
    content_type: CAPSULE_CONTENT_TYPE,
    sha256,
    created_at: isoTime(service.now),
  });
  // Base64 needs no escaping; JSON.stringify would scan the large text.
  turn.put(ARTIFACT.insert, key, `${columns.slice(0, -1)},"content":"${payload_base64}"}`);
}
