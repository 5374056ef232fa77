/** From what an instance holds to a sealed, signed capsule and the artifact that keeps its payload. */

import { randomBytes } from 'node:crypto';
import { CAPSULE_CONTENT_TYPE } from '../../src/core/continuity/capsule.js';
import type { PayloadKey } from '../../src/core/continuity/keys.js';
import type { SealedPayload } from '../../src/core/continuity/sealed-payload.js';
import { NONCE_BYTES } from '../../src/core/continuity/sealing.js';
import { isoTime } from '../../src/core/time.js';
import { conflict, tooLarge } from '../../src/errors.js';
import { TooCostly } from '../runtime/offload.js';
import type { JobInput, JobOutput } from '../runtime/offload-jobs.js';
import type { Turn } from '../runtime/turn.js';
import type { CapsuleContents } from './capsule-contents.js';
import type { ExecutionService } from './execution-service.js';
import { keysOf } from './operation.js';
import type { ExecutionRow } from './rows.js';

export interface CapsuleTerms {
  readonly capsuleId: string;
  readonly execution: ExecutionRow;
  /** Null: any runtime. Such a capsule undoes a migration, and is imported nowhere. */
  readonly destination: string | null;
  readonly requirements: object;
  /** RFC 3339. */
  readonly expiresAt: string;
  /** Absent: the server's own. */
  readonly transferKey?: PayloadKey | undefined;
}

/** Rejects with 409 or 413 when the contents are over a bound. */
export async function sealContents(
  service: ExecutionService,
  { frame, outputs, sequence, currentStep }: CapsuleContents,
  terms: CapsuleTerms,
): Promise<SealedPayload> {
  const { execution, capsuleId } = terms;
  const { signing, payload } = keysOf(service);
  const head = await service.rows.provenanceHead(execution.continuity_id);
  const made = await workOn(service, 'sealCapsule', {
    facts: {
      capsule_id: capsuleId,
      continuity_id: execution.continuity_id,
      source_instance_id: execution.current_instance_id,
      epoch: execution.epoch,
      tenant_id: execution.tenant_id,
      source_runtime_id: execution.owner_runtime_id,
      destination_runtime_id: terms.destination,
      sequence_version: sequence.version,
      sequence_definition: sequence.definition,
      current_step: currentStep,
      requirements: terms.requirements,
      artifact_key: `capsules/${capsuleId}`,
      provenance_head: head?.entry_sha256 ?? null,
      issued_at: isoTime(service.now),
      expires_at: terms.expiresAt,
    },
    frame,
    outputs,
    keys: { signing, payload: terms.transferKey ?? payload },
    nonce: randomBytes(NONCE_BYTES),
  });
  if (!made.ok) throw conflict(made.message);
  return made.value;
}

/** Rejects with 413 when the capsule takes too much, 503 when it cannot be worked on now. */
export async function workOn<Name extends 'sealCapsule' | 'openCapsule'>(
  service: ExecutionService,
  job: Name,
  input: JobInput<Name>,
): Promise<JobOutput<Name>> {
  try {
    return await service.offload.run(job, input);
  } catch (error) {
    if (!(error instanceof TooCostly)) throw error;
    throw tooLarge('the capsule takes too long or too much memory');
  }
}

/** Keeps the sealed payload, as an artifact of the source instance. */
export function putArtifact(service: ExecutionService, turn: Turn, sealed: SealedPayload): void {
  const { payload_artifact, tenant_id, source_instance_id } = sealed.capsule.manifest;
  const { key, sha256 } = payload_artifact;
  const columns = JSON.stringify({
    key,
    instance_id: source_instance_id,
    tenant_id,
    content_type: CAPSULE_CONTENT_TYPE,
    sha256,
    created_at: isoTime(service.now),
  });
  // Nothing in base64 has to be escaped, and a large text takes its time.
  const row = `${columns.slice(0, -1)},"content":"${sealed.payloadBase64}"}`;
  turn.put('artifact.insert', key, row);
}
