/** From what an instance holds to a sealed, signed capsule and the artifact that keeps its payload. */

import { randomBytes } from 'node:crypto';
import { IN_PLACE } from '../../src/capsule-mill.js';
import type { SealedPayload } from '../../src/capsule-work.js';
import { CAPSULE_CONTENT_TYPE } from '../../src/core/continuity/capsule.js';
import type { Keyring, PayloadKey } from '../../src/core/continuity/keys.js';
import { NONCE_BYTES } from '../../src/core/continuity/sealing.js';
import { isoTime } from '../../src/core/time.js';
import { conflict } from '../../src/errors.js';
import type { Turn } from '../turn.js';
import type { CapsuleContents } from './capsule-contents.js';
import type { Desk } from './desk.js';
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
  desk: Desk,
  keyring: Keyring,
  { frame, outputs, sequence, currentStep }: CapsuleContents,
  terms: CapsuleTerms,
): Promise<SealedPayload> {
  const { execution, capsuleId } = terms;
  const head = await desk.deps.rows.provenanceHead(execution.continuity_id);
  const made = await (desk.deps.mill ?? IN_PLACE).seal({
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
      issued_at: isoTime(desk.now),
      expires_at: terms.expiresAt,
    },
    frame,
    outputs,
    keys: { signing: keyring.signing, payload: terms.transferKey ?? keyring.payload },
    nonce: randomBytes(NONCE_BYTES),
  });
  if (!made.ok) throw conflict(made.message);
  return made.value;
}

/** Keeps the sealed payload, as an artifact of the source instance. */
export function putArtifact(desk: Desk, turn: Turn, sealed: SealedPayload): void {
  const { payload_artifact, tenant_id, source_instance_id } = sealed.capsule.manifest;
  const { key, sha256 } = payload_artifact;
  const columns = JSON.stringify({
    key,
    instance_id: source_instance_id,
    tenant_id,
    content_type: CAPSULE_CONTENT_TYPE,
    sha256,
    created_at: isoTime(desk.now),
  });
  // Nothing in base64 has to be escaped, and a large text takes its time.
  const row = `${columns.slice(0, -1)},"content":"${sealed.payloadBase64}"}`;
  turn.put('artifact.insert', key, row);
}
