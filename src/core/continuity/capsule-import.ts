/**
 * Whether a capsule may be taken, check by check. Three stages, because what lies between them is not
 * pure: the body is admitted, the sealed bytes may have to be fetched, and
 * the stored sequence has to be looked up.
 */

import { toUnixMs } from '../../../schema/common.js';
import type { Capsule, CapsuleManifest } from '../../../schema/handoff.js';
import type { UnixMs } from '../time.js';
import { base64Length, decodeBase64 } from './base64.js';
import { canonicalSha256, sha256Hex } from './canonical-json.js';
import { CAPSULE_SCHEMA, isManifestSigned } from './capsule.js';
import { type CapsulePayload, decodePayload, PAYLOAD_BYTES_MAX } from './capsule-payload.js';
import { KEY_BYTES, type Keyring, type PayloadKey, parseTransferKey } from './keys.js';
import { type SealContext, unseal } from './sealing.js';

/** A little more than nonce and tag add to the largest payload. */
export const SEALED_BYTES_MAX = PAYLOAD_BYTES_MAX + 64;

/** 400 malformed, 409 not what it claims or not for here, 413 too large, 503 no keys. */
export type ImportStatus = 400 | 409 | 413 | 503;

export interface ImportRefusal {
  readonly ok: false;
  readonly status: ImportStatus;
  readonly message: string;
}

export type Imported<T> = { readonly ok: true; readonly value: T } | ImportRefusal;

export interface ImportBody {
  readonly capsule: Capsule;
  readonly payload_base64?: string | null;
  readonly payload_key_base64?: string | null;
}

export interface AdmittedImport {
  readonly keyring: Keyring;
  /** Undefined when the body has none: it is to be read from storage. */
  readonly sealed: Buffer | undefined;
  readonly transferKey: PayloadKey | undefined;
}

/** The first stage: keys are there, what is base64 decodes, nothing is too large. */
export function admitImport(
  { capsule, payload_base64, payload_key_base64 }: ImportBody,
  keyring: Keyring | undefined,
): Imported<AdmittedImport> {
  if (keyring === undefined) return refusal(503, 'no encryption key is configured');
  const transferKey = parseTransferKey(payload_key_base64 ?? '');
  if (transferKey === undefined && (payload_key_base64 ?? null) !== null) {
    return refusal(400, `payload_key_base64 must be base64 of ${KEY_BYTES} bytes`);
  }
  const { bytes } = capsule.manifest.payload_artifact;
  const text = payload_base64 ?? undefined;
  // Before it is decoded, so that nobody pays for a text that cannot be right.
  if (bytes > SEALED_BYTES_MAX || (text !== undefined && text.length > base64Length(bytes))) {
    return refusal(413, 'the sealed payload is larger than it may be');
  }
  const sealed = text === undefined ? undefined : decodeBase64(text);
  if (text !== undefined && sealed === undefined) {
    return refusal(400, 'payload_base64 must be base64');
  }
  return { ok: true, value: { keyring, sealed, transferKey } };
}

export interface ImportExpectation {
  readonly tenant_id: string;
  readonly destination_runtime_id: string;
  readonly expected_epoch: number;
  readonly now: UnixMs;
  /** When they are known: the hash of what the handoff requires. */
  readonly requirements_sha256?: string;
}

/** Whether manifests under that key id, signed by that public key in base64, are believed. */
export type SignerTrust = (signingKeyId: string, publicKey: string) => boolean;

/** The keys of this server and of its configuration, each under its own id only. */
export function trustOf(keyring: Keyring): SignerTrust {
  return (signingKeyId, publicKey) => keyring.trusted.get(signingKeyId) === publicKey;
}

/** The second stage: the manifest is genuine, and for this tenant, runtime, epoch and time. */
export function checkManifest(
  capsule: Capsule,
  expected: ImportExpectation,
  isTrusted: SignerTrust,
): ImportRefusal | undefined {
  const { manifest } = capsule;
  const fault =
    authenticityFault(capsule, isTrusted) ??
    (isReadable(manifest.schema) ? undefined : 'the schema of the capsule is not supported') ??
    addressFault(manifest, expected);
  return fault === undefined ? undefined : refusal(409, fault);
}

/**
 * The third stage: the bytes are those of the manifest, and the key opens them.
 *
 * @param sealed from the body or from storage
 */
export function openCapsule(
  { manifest }: Pick<Capsule, 'manifest'>,
  sealed: Uint8Array,
  { keyring, transferKey }: Pick<AdmittedImport, 'keyring' | 'transferKey'>,
): Imported<CapsulePayload> {
  const { sha256, bytes } = manifest.payload_artifact;
  if (sealed.length !== bytes || sha256Hex(sealed) !== sha256) {
    return refusal(409, 'the sealed payload is not that of the manifest: hash mismatch');
  }
  const keys = transferKey === undefined ? keyring.opening : [transferKey];
  const plain = openWith(keys, sealed, {
    tenant_id: manifest.tenant_id,
    continuity_id: manifest.continuity_id,
    epoch: manifest.epoch,
    destination_runtime_id: manifest.allowed_destination_runtime_id,
  });
  if (plain === undefined) return refusal(409, 'capsule payload decryption failed');
  const payload = decodePayload(plain);
  if (!payload.ok) return refusal(409, payload.message);
  const fault = payloadFault(manifest, payload.value);
  return fault === undefined ? payload : refusal(409, fault);
}

/** The last check: the sequence that is stored here is the one that the instance ran. */
export function checkSequence(
  { sequence }: CapsuleManifest,
  storedDefinition: unknown,
): ImportRefusal | undefined {
  if (storedDefinition === undefined) {
    return refusal(409, 'the sequence of the capsule is not stored here');
  }
  if (canonicalSha256(storedDefinition) !== sequence.content_sha256) {
    return refusal(409, 'the stored sequence is not the one of the capsule');
  }
  return undefined;
}

/** Tries the keys in turn: the one before a rotation may have sealed it. */
export function openWith(
  keys: readonly PayloadKey[],
  sealed: Uint8Array,
  context: SealContext,
): Buffer | undefined {
  for (const { key } of keys) {
    const plain = unseal(sealed, key, context);
    if (plain !== undefined) return plain;
  }
  return undefined;
}

function authenticityFault(capsule: Capsule, isTrusted: SignerTrust): string | undefined {
  const { manifest, manifest_sha256, public_key } = capsule;
  if (canonicalSha256(manifest) !== manifest_sha256) return 'the manifest has another hash';
  if (!isManifestSigned(capsule)) return 'the signature of the manifest is not valid';
  if (!isTrusted(manifest.signing_key_id, public_key)) return 'the signing key is not trusted';
  return undefined;
}

function isReadable({ major, minor }: CapsuleManifest['schema']): boolean {
  return major === CAPSULE_SCHEMA.major && minor <= CAPSULE_SCHEMA.minor;
}

function addressFault(manifest: CapsuleManifest, expected: ImportExpectation): string | undefined {
  const { allowed_destination_runtime_id: allowed, requirements_sha256 } = manifest;
  if (manifest.tenant_id !== expected.tenant_id) return 'the capsule is for another tenant';
  const expiresMs = toUnixMs(manifest.expires_at);
  if (expiresMs === undefined || expiresMs <= expected.now) return 'the capsule is expired';
  if (allowed !== null && allowed !== expected.destination_runtime_id) {
    return 'the capsule is for another destination';
  }
  if (manifest.epoch !== expected.expected_epoch) return 'the capsule is of another epoch';
  if ((expected.requirements_sha256 ?? requirements_sha256) !== requirements_sha256) {
    return 'the capsule was made for other requirements';
  }
  return undefined;
}

function payloadFault(
  manifest: CapsuleManifest,
  { instance, checkpoint }: CapsulePayload,
): string | undefined {
  if (instance.sequence_id !== manifest.sequence.id) return 'the payload is of another sequence';
  if (checkpoint.instance_id !== manifest.source_instance_id) {
    return 'the checkpoint of the payload is of another instance';
  }
  if (canonicalSha256(checkpoint) !== manifest.checkpoint.sha256) {
    return 'the checkpoint of the payload has another hash';
  }
  return undefined;
}

function refusal(status: ImportStatus, message: string): ImportRefusal {
  return { ok: false, status, message };
}
