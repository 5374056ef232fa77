/** Capsules: a sealed payload and a signed manifest; `capsule-import.ts` checks them. */

import type { CapsulePayload } from '../../../schema/capsule.js';
import type { RollbackCapsule } from '../../../schema/continuity.js';
import type { Capsule, CapsuleManifest } from '../../../schema/handoff.js';
import type { Parsed } from '../../../src/core/parsed.js';
import { canonicalSha256, sha256Hex } from '../../../src/core/sealing/canonical-json.js';
import { isSignedBy, parsePublicKey, signText } from '../../../src/core/sealing/ed25519.js';
import type { PayloadKey, SigningKey } from '../../../src/core/sealing/keys.js';
import { seal } from '../../../src/core/sealing/sealing.js';
import { encodePayload } from './capsule-payload.js';

export const CAPSULE_CONTENT_TYPE = 'application/vnd.engine.execution-capsule+aes256gcm';
/** A reader accepts its own major version with a minor version up to its own. */
export const CAPSULE_SCHEMA = { major: 1, minor: 0 } as const;
/** `checkpoint.block_id` of an instance that is at no step. */
const NO_STEP = 'checkpoint';

/** The part of the manifest that does not follow from the payload and the keys. */
export interface CapsuleFacts
  extends Pick<
    CapsuleManifest,
    | 'capsule_id'
    | 'continuity_id'
    | 'source_instance_id'
    | 'epoch'
    | 'tenant_id'
    | 'source_runtime_id'
    | 'allowed_destination_runtime_id'
    | 'provenance_head'
    | 'issued_at'
    | 'expires_at'
  > {
  readonly sequence_version: number;
  readonly sequence_definition: unknown;
  readonly current_step: string | null;
  readonly requirements: unknown;
}

export interface CapsuleKeys {
  readonly signing: SigningKey;
  /** The destination's own key, or that of the server. */
  readonly payload: PayloadKey;
}

/** @param nonce 12 random bytes that were never used before */
export function createCapsule(
  facts: CapsuleFacts,
  payload: CapsulePayload,
  keys: CapsuleKeys,
  nonce: Uint8Array,
): Parsed<{ readonly capsule: Capsule; readonly sealed: Buffer }> {
  const plain = encodePayload(payload);
  if (!plain.ok) return plain;
  const sealed = seal(plain.value, keys.payload.key, nonce, facts);
  const manifest = manifestOf(facts, payload, keys, sealed);
  return { ok: true, value: { capsule: signManifest(manifest, keys.signing), sealed } };
}

export function signManifest(manifest: CapsuleManifest, signing: SigningKey): Capsule {
  const manifest_sha256 = canonicalSha256(manifest);
  const signature = signText(signing.privateKey, manifest_sha256);
  return { manifest, manifest_sha256, signature, public_key: signing.publicKey };
}

/** Whether the hash is signed by the key in the capsule, which the caller has to trust. */
export function isManifestSigned(
  signed: Pick<Capsule, 'manifest_sha256' | 'signature' | 'public_key'>,
): boolean {
  const key = parsePublicKey(signed.public_key);
  return key !== undefined && isSignedBy(key, signed.manifest_sha256, signed.signature);
}

export function rollbackCapsuleOf({ manifest, ...signed }: Capsule): RollbackCapsule {
  return {
    capsule_id: manifest.capsule_id,
    payload_artifact: manifest.payload_artifact,
    manifest_sha256: signed.manifest_sha256,
    public_key: signed.public_key,
    signature: signed.signature,
  };
}

function manifestOf(
  { sequence_version, sequence_definition, current_step, requirements, ...facts }: CapsuleFacts,
  { instance, checkpoint }: CapsulePayload,
  keys: CapsuleKeys,
  sealed: Buffer,
): CapsuleManifest {
  return {
    ...facts,
    schema: CAPSULE_SCHEMA,
    sequence: {
      id: instance.sequence_id,
      version: sequence_version,
      content_sha256: canonicalSha256(sequence_definition),
    },
    checkpoint: { block_id: current_step ?? NO_STEP, sha256: canonicalSha256(checkpoint) },
    requirements_sha256: canonicalSha256(requirements),
    payload_artifact: {
      key: `capsules/${facts.capsule_id}`,
      sha256: sha256Hex(sealed),
      bytes: sealed.length,
    },
    signing_key_id: keys.signing.id,
    encryption_key_id: keys.payload.id,
  };
}
