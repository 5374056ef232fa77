/**
 * The checks of an import, in three stages because reads lie between them: the manifest, the sealed
 * payload, and the stored sequence.
 */

import type { CapsulePayload } from '../../../schema/capsule.js';
import { toUnixMs } from '../../../schema/common.js';
import type { Capsule, CapsuleManifest } from '../../../schema/handoff.js';
import type { UnixMs } from '../../../src/base/time.js';
import { type Parsed, refused } from '../../../src/core/parsed.js';
import { canonicalSha256, sha256Hex } from '../../../src/core/sealing/canonical-json.js';
import type { Keyring, PayloadKey } from '../../../src/core/sealing/keys.js';
import { openWith } from '../../../src/core/sealing/sealing.js';
import { CAPSULE_SCHEMA, isManifestSigned } from './capsule.js';
import { type CheckPayload, decodePayload } from './capsule-payload.js';

/** What the importer expects of a capsule. */
export interface ImportExpectation {
  readonly tenant_id: string;
  readonly destination_runtime_id: string;
  readonly expected_epoch: number;
  readonly isTrusted: SignerTrust;
  /** Of the handoff, if it is known here. */
  readonly requirements_sha256?: string | undefined;
}

/** @param publicKey in base64 */
type SignerTrust = (signingKeyId: string, publicKey: string) => boolean;

/** Trusts the keys of this server and of its configuration, each under its own id only. */
export function trustOf(keyring: Keyring): SignerTrust {
  return (signingKeyId, publicKey) => keyring.trusted.get(signingKeyId) === publicKey;
}

/** Stage 1: the manifest is authentic, and for this tenant, runtime, epoch and time. */
export function manifestFault(
  capsule: Capsule,
  expected: ImportExpectation,
  now: UnixMs,
): string | undefined {
  return (
    authenticityFault(capsule, expected.isTrusted) ?? addressFault(capsule.manifest, expected, now)
  );
}

/** Stage 2: the bytes are those of the manifest, and one of the keys opens them. */
export function openCapsule(
  { manifest }: Pick<Capsule, 'manifest'>,
  sealed: Uint8Array,
  keys: readonly PayloadKey[],
  check: CheckPayload,
): Parsed<CapsulePayload> {
  const { sha256, bytes } = manifest.payload_artifact;
  if (sealed.length !== bytes || sha256Hex(sealed) !== sha256) {
    return refused('the sealed payload is not that of the manifest: hash mismatch');
  }
  const plain = openWith(keys, sealed, manifest);
  if (plain === undefined) return refused('capsule payload decryption failed');
  const payload = decodePayload(plain, check);
  const fault = payload.ok ? payloadFault(manifest, payload.value) : undefined;
  return fault === undefined ? payload : refused(fault);
}

/** Stage 3: the stored sequence is the one that the instance ran. */
export function sequenceFault(
  { sequence }: CapsuleManifest,
  storedDefinition: unknown,
): string | undefined {
  if (storedDefinition === undefined) return 'the sequence of the capsule is not stored here';
  const isSame = canonicalSha256(storedDefinition) === sequence.content_sha256;
  return isSame ? undefined : 'the stored sequence is not the one of the capsule';
}

function authenticityFault(capsule: Capsule, isTrusted: SignerTrust): string | undefined {
  const { manifest, manifest_sha256, public_key } = capsule;
  if (canonicalSha256(manifest) !== manifest_sha256) return 'the manifest has another hash';
  if (!isManifestSigned(capsule)) return 'the signature of the manifest is not valid';
  if (!isTrusted(manifest.signing_key_id, public_key)) return 'the signing key is not trusted';
  const { major, minor } = manifest.schema;
  const isReadable = major === CAPSULE_SCHEMA.major && minor <= CAPSULE_SCHEMA.minor;
  return isReadable ? undefined : 'the schema of the capsule is not supported';
}

function addressFault(
  manifest: CapsuleManifest,
  expected: ImportExpectation,
  now: UnixMs,
): string | undefined {
  const { allowed_destination_runtime_id: allowed, requirements_sha256 } = manifest;
  if (manifest.tenant_id !== expected.tenant_id) return 'the capsule is for another tenant';
  const expiresMs = toUnixMs(manifest.expires_at);
  if (expiresMs === undefined || expiresMs <= now) return 'the capsule is expired';
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
