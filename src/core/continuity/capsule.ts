/**
 * Capsules: a sealed payload, and a signed manifest that says what it is, for whom and how long
 * (05 §11). This module makes them and reads them from a body; whether one may be taken is decided
 * by `capsule-import.ts`.
 */

import type { JsonValue } from '../json.js';
import { canonicalSha256, sha256Hex } from './canonical-json.js';
import { type CapsulePayload, encodePayload } from './capsule-payload.js';
import { isSignedBy, parsePublicKey, signText } from './ed25519.js';
import type { PayloadKey, SigningKey } from './keys.js';
import { Fields, type Parsed, parsing } from './parsed.js';
import { seal } from './sealing.js';

export const CAPSULE_CONTENT_TYPE = 'application/vnd.engine.execution-capsule+aes256gcm';
export const CAPSULE_SCHEMA: CapsuleSchema = { major: 1, minor: 0 };
/** What `checkpoint.block_id` says of an instance that stands at no step. */
export const NO_STEP = 'checkpoint';

/** A reader takes capsules of its own major version whose minor version is not above its own. */
export interface CapsuleSchema {
  readonly major: number;
  readonly minor: number;
}

export interface PayloadArtifact {
  readonly key: string;
  /** Of the sealed bytes, like their number. */
  readonly sha256: string;
  readonly bytes: number;
}

export interface CapsuleManifest {
  readonly schema: CapsuleSchema;
  readonly capsule_id: string;
  readonly continuity_id: string;
  readonly source_instance_id: string;
  readonly epoch: number;
  readonly tenant_id: string;
  readonly source_runtime_id: string;
  /** Null: any runtime. */
  readonly allowed_destination_runtime_id: string | null;
  readonly sequence: {
    readonly id: string;
    readonly version: number;
    readonly content_sha256: string;
  };
  readonly checkpoint: { readonly block_id: string; readonly sha256: string };
  readonly requirements_sha256: string;
  readonly payload_artifact: PayloadArtifact;
  readonly provenance_head: string | null;
  readonly issued_at: string;
  readonly expires_at: string;
  readonly signing_key_id: string;
  readonly encryption_key_id: string;
}

export interface Capsule {
  readonly manifest: CapsuleManifest;
  readonly manifest_sha256: string;
  /** Ed25519 over the 64 characters of `manifest_sha256`, in base64. */
  readonly signature: string;
  /** 32 bytes in base64. */
  readonly public_key: string;
}

/** What a migration keeps of the capsule that can undo it (05 §16). */
export interface RollbackCapsule {
  readonly capsule_id: string;
  readonly payload_artifact: PayloadArtifact;
  readonly manifest_sha256: string;
  readonly public_key: string;
  readonly signature: string;
}

/** What the exporter knows; everything else of the manifest follows from the payload and the keys. */
export interface CapsuleFacts {
  readonly capsule_id: string;
  readonly continuity_id: string;
  readonly source_instance_id: string;
  readonly epoch: number;
  readonly tenant_id: string;
  readonly source_runtime_id: string;
  /** Null: any runtime. */
  readonly destination_runtime_id: string | null;
  readonly sequence_version: number;
  /** As it is stored. */
  readonly sequence_definition: unknown;
  /** The step at which the instance stands, if it stands at one. */
  readonly current_step: string | null;
  readonly requirements: unknown;
  readonly artifact_key: string;
  readonly provenance_head: string | null;
  readonly issued_at: string;
  readonly expires_at: string;
}

export interface CapsuleKeys {
  readonly signing: SigningKey;
  /** The destination's own key, or that of the server. */
  readonly payload: PayloadKey;
}

export interface SealedCapsule {
  readonly capsule: Capsule;
  readonly sealed: Buffer;
}

/**
 * Seals the payload and signs a manifest over it.
 *
 * @param nonce 12 random bytes that were never used before
 * @returns the message when the payload is over a bound
 */
export function createCapsule(
  facts: CapsuleFacts,
  payload: CapsulePayload,
  keys: CapsuleKeys,
  nonce: Uint8Array,
): Parsed<SealedCapsule> {
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

/** Whether the hash is signed by the key beside it; whether that key is trusted is another matter. */
export function isManifestSigned(
  signed: Pick<Capsule, 'manifest_sha256' | 'signature' | 'public_key'>,
): boolean {
  const key = parsePublicKey(signed.public_key);
  return key !== undefined && isSignedBy(key, signed.manifest_sha256, signed.signature);
}

/**
 * Reads a capsule from a body. The manifest stays exactly as it was sent, members that nobody knows
 * included, because its hash is over all of it.
 */
export function parseCapsule(value: JsonValue | undefined): Parsed<Capsule> {
  return parsing(() => {
    const fields = new Fields(value, 'capsule');
    checkManifestShape(fields.inner('manifest'));
    return {
      // The check above has looked at every member of the interface.
      manifest: fields.object('manifest') as unknown as CapsuleManifest,
      manifest_sha256: fields.required('manifest_sha256', fields.sha256('manifest_sha256')),
      signature: fields.required('signature', fields.text('signature')),
      public_key: fields.required('public_key', fields.text('public_key')),
    };
  });
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
  facts: CapsuleFacts,
  { instance, checkpoint }: CapsulePayload,
  keys: CapsuleKeys,
  sealed: Buffer,
): CapsuleManifest {
  return {
    schema: CAPSULE_SCHEMA,
    capsule_id: facts.capsule_id,
    continuity_id: facts.continuity_id,
    source_instance_id: facts.source_instance_id,
    epoch: facts.epoch,
    tenant_id: facts.tenant_id,
    source_runtime_id: facts.source_runtime_id,
    allowed_destination_runtime_id: facts.destination_runtime_id,
    sequence: {
      id: instance.sequence_id,
      version: facts.sequence_version,
      content_sha256: canonicalSha256(facts.sequence_definition),
    },
    checkpoint: { block_id: facts.current_step ?? NO_STEP, sha256: canonicalSha256(checkpoint) },
    requirements_sha256: canonicalSha256(facts.requirements),
    payload_artifact: { key: facts.artifact_key, sha256: sha256Hex(sealed), bytes: sealed.length },
    provenance_head: facts.provenance_head,
    issued_at: facts.issued_at,
    expires_at: facts.expires_at,
    signing_key_id: keys.signing.id,
    encryption_key_id: keys.payload.id,
  };
}

function checkManifestShape(manifest: Fields): void {
  const schema = manifest.inner('schema');
  schema.required('major', schema.integer('major', 0));
  schema.required('minor', schema.integer('minor', 0));
  for (const id of ['capsule_id', 'continuity_id', 'source_instance_id', 'source_runtime_id']) {
    manifest.required(id, manifest.uuid(id));
  }
  manifest.uuid('allowed_destination_runtime_id');
  manifest.required('epoch', manifest.integer('epoch', 0));
  for (const text of ['tenant_id', 'signing_key_id', 'encryption_key_id']) {
    manifest.required(text, manifest.text(text));
  }
  const sequence = manifest.inner('sequence');
  sequence.required('id', sequence.uuid('id'));
  sequence.required('version', sequence.integer('version', 0));
  sequence.required('content_sha256', sequence.sha256('content_sha256'));
  const checkpoint = manifest.inner('checkpoint');
  checkpoint.required('block_id', checkpoint.text('block_id'));
  checkpoint.required('sha256', checkpoint.sha256('sha256'));
  manifest.required('requirements_sha256', manifest.sha256('requirements_sha256'));
  const artifact = manifest.inner('payload_artifact');
  artifact.required('key', artifact.text('key'));
  artifact.required('sha256', artifact.sha256('sha256'));
  artifact.required('bytes', artifact.integer('bytes', 0));
  manifest.sha256('provenance_head');
  for (const time of ['issued_at', 'expires_at']) {
    manifest.required(time, manifest.timestamp(time));
  }
}
