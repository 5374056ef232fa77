/**
 * Capsules: a sealed payload and a signed manifest. Parsing, canonical JSON, hashing and sealing take about 40 ms per
 * MiB, more than a turn of a shard may take, so that all but small capsules are offloaded. An import checks the
 * manifest, the sealed payload and the stored sequence, with reads in between.
 */

import {
  type CapsulePayload,
  type CarriedOutput,
  listMax,
  PAYLOAD_LISTS,
  type SealedPayload,
} from '../../../schema/capsule.js';
import { toUnixMs } from '../../../schema/common.js';
import type { RollbackCapsule } from '../../../schema/continuity.js';
import type { Capsule, CapsuleManifest, HandoffExported } from '../../../schema/handoff.js';
import type { JsonValue } from '../../../src/base/json.js';
import { decodeUtf8, type JsonLimits, parseJson } from '../../../src/base/json-guard.js';
import type { UnixMs } from '../../../src/base/time.js';
import { type Parsed, refused } from '../../../src/core/parsed.js';
import {
  canonicalJson,
  canonicalSha256,
  sha256Hex,
} from '../../../src/core/sealing/canonical-json.js';
import { isSignedBy, parsePublicKey, signText } from '../../../src/core/sealing/ed25519.js';
import type { Keyring, PayloadKey, SigningKey } from '../../../src/core/sealing/keys.js';
import { openWith, seal } from '../../../src/core/sealing/sealing.js';
import type { ColumnOf, StoredRow } from '../../../src/db/table.js';
import type { BLOCK_OUTPUTS } from '../../instance/output-tables.js';

export const CAPSULE_CONTENT_TYPE = 'application/vnd.engine.execution-capsule+aes256gcm';
/** A reader accepts this major version, with a minor version up to this one. */
const CAPSULE_SCHEMA = { major: 1, minor: 0 } as const;
/** `checkpoint.block_id` of an instance that is at no step. */
const NO_STEP = 'checkpoint';

/** The fields of the manifest that do not follow from the payload and the keys. */
export interface CapsuleFacts
  extends Omit<
    CapsuleManifest,
    | 'schema'
    | 'sequence'
    | 'checkpoint'
    | 'requirements_sha256'
    | 'payload_artifact'
    | 'signing_key_id'
    | 'encryption_key_id'
  > {
  readonly sequence_version: number;
  readonly sequence_definition: unknown;
  readonly current_step: string | null;
  readonly requirements: unknown;
}

export interface CapsuleKeys {
  readonly signing: SigningKey;
  /** The key of the destination, or that of the server. */
  readonly payload: PayloadKey;
}

/** @param nonce 12 random bytes that were never used before */
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
  const capsule = signManifest(manifest, keys.signing);
  return { ok: true, value: { capsule, payload_base64: sealed.toString('base64') } };
}

export function signManifest(manifest: CapsuleManifest, signing: SigningKey): Capsule {
  const manifest_sha256 = canonicalSha256(manifest);
  const signature = signText(signing.privateKey, manifest_sha256);
  return { manifest, manifest_sha256, signature, public_key: signing.publicKey };
}

/** Whether the key in the capsule, which the caller has to trust, signed the hash. */
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

export const PAYLOAD_BYTES_MAX = 64 * 1_024 * 1_024;
const TOO_LARGE = refused(`the payload must have at most ${PAYLOAD_BYTES_MAX} bytes`);

/** Stored values have up to 256 levels; the payload adds a few. */
const PAYLOAD_JSON: JsonLimits = { maxDepth: 264, maxNumberLength: 400 };

export type CheckPayload = (value: unknown) => Parsed<SealedPayload>;

/** Refused when the payload is too large for any importer. */
export function encodePayload(payload: CapsulePayload): Parsed<Buffer> {
  const long = PAYLOAD_LISTS.find((name) => payload[name].length > listMax(name));
  if (long !== undefined) return refused(`${long} must have at most ${listMax(long)} entries`);
  const { redacted_audit_context, ...always } = payload;
  const empty = PAYLOAD_LISTS.filter((name) => payload[name].length === 0);
  const sealed = {
    ...always,
    ...Object.fromEntries(empty.map((name) => [name, undefined])),
    redacted_audit_context: redacted_audit_context ?? undefined,
  };
  const bytes = Buffer.from(canonicalJson(sealed));
  return bytes.length > PAYLOAD_BYTES_MAX ? TOO_LARGE : { ok: true, value: bytes };
}

/** Validates like any other input, although the sender holds the key. */
export function decodePayload(bytes: Uint8Array, check: CheckPayload): Parsed<CapsulePayload> {
  if (bytes.length > PAYLOAD_BYTES_MAX) return TOO_LARGE;
  const text = decodeUtf8(bytes);
  const json = text === undefined ? undefined : parseJson(text, PAYLOAD_JSON);
  if (json === undefined) return refused('the payload must be UTF-8');
  if (!json.ok) return refused(`the payload: ${json.problem.message}`);
  const payload = check(json.value);
  if (!payload.ok) return payload;
  const { redacted_audit_context = null, checkpoint, ...sealed } = payload.value;
  const { checkpoint_data = null } = checkpoint;
  const lists = Object.fromEntries(PAYLOAD_LISTS.map((name) => [name, sealed[name] ?? []]));
  const rest = { checkpoint: { ...checkpoint, checkpoint_data }, redacted_audit_context };
  return { ok: true, value: { ...sealed, ...lists, ...rest } as CapsulePayload };
}

export interface ImportExpectation {
  readonly tenant_id: string;
  readonly destination_runtime_id: string;
  readonly expected_epoch: number;
  readonly isTrusted: SignerTrust;
  /** Of the handoff, if it is known here. */
  readonly requirements_sha256?: string | undefined;
}

type SignerTrust = (signingKeyId: string, publicKey: string) => boolean;

/** Keys of this server and of its configuration, each under its own id only. */
export function trustOf(keyring: Keyring): SignerTrust {
  return (signingKeyId, publicKey) => keyring.trusted.get(signingKeyId) === publicKey;
}

/** Stage 1: the manifest is authentic, and for this tenant, runtime, epoch and time. */
export function manifestFault(
  capsule: Capsule,
  expected: ImportExpectation,
  now: UnixMs,
): string | undefined {
  const { manifest, manifest_sha256, public_key } = capsule;
  if (canonicalSha256(manifest) !== manifest_sha256) return 'the manifest has another hash';
  if (!isManifestSigned(capsule)) return 'the signature of the manifest is not valid';
  const { signing_key_id, schema } = manifest;
  if (!expected.isTrusted(signing_key_id, public_key)) return 'the signing key is not trusted';
  if (schema.major !== CAPSULE_SCHEMA.major || schema.minor > CAPSULE_SCHEMA.minor) {
    return 'the schema of the capsule is not supported';
  }
  const { allowed_destination_runtime_id: allowed, requirements_sha256 } = manifest;
  if (manifest.tenant_id !== expected.tenant_id) return 'the capsule is for another tenant';
  const expiresMs = toUnixMs(manifest.expires_at);
  if (expiresMs === undefined || expiresMs <= now) return 'the capsule is expired';
  if (allowed !== null && allowed !== expected.destination_runtime_id) {
    return 'the capsule is for another destination';
  }
  if (manifest.epoch !== expected.expected_epoch) return 'the capsule is of another epoch';
  const isSame = (expected.requirements_sha256 ?? requirements_sha256) === requirements_sha256;
  return isSame ? undefined : 'the capsule was made for other requirements';
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
  if (!payload.ok) return payload;
  const { instance, checkpoint } = payload.value;
  if (instance.sequence_id !== manifest.sequence.id) {
    return refused('the payload is of another sequence');
  }
  if (checkpoint.instance_id !== manifest.source_instance_id) {
    return refused('the checkpoint of the payload is of another instance');
  }
  if (canonicalSha256(checkpoint) !== manifest.checkpoint.sha256) {
    return refused('the checkpoint of the payload has another hash');
  }
  return payload;
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

/** The output is JSON text. */
export type OutputText = StoredRow<
  typeof BLOCK_OUTPUTS,
  Exclude<ColumnOf<typeof BLOCK_OUTPUTS>, 'id' | 'instance_id' | 'effect'>
>;

export type PayloadFrame = Omit<CapsulePayload, 'outputs'>;

export interface SealTask {
  readonly facts: CapsuleFacts;
  readonly frame: PayloadFrame;
  readonly outputs: readonly OutputText[];
  readonly keys: CapsuleKeys;
  /** 12 random bytes that were never used before. */
  readonly nonce: Uint8Array;
}

export type SealedCapsule = Pick<HandoffExported, 'capsule' | 'payload_base64'>;

export function sealCapsule(task: SealTask): Parsed<SealedCapsule> {
  const payload = { ...task.frame, outputs: task.outputs.map(parsedOutput) };
  return createCapsule(task.facts, payload, task.keys, task.nonce);
}

/** Without the receipt, whose id the capsule lists: the importer did not have this effect. */
function parsedOutput({ output, ...row }: OutputText): CarriedOutput {
  return { ...row, output: JSON.parse(output ?? 'null') as JsonValue };
}

export interface OpenTask {
  readonly capsule: Capsule;
  readonly sealed: Uint8Array;
  readonly keys: readonly PayloadKey[];
  /** RFC 3339. Limits the times of outputs, because the clock of the exporter may be ahead. */
  readonly now: string;
}

export interface OpenedCapsule {
  readonly frame: PayloadFrame;
  /** Rows as JSON objects without ids. */
  readonly outputs: readonly string[];
}

/** The manifest must be checked already. */
export function openSealed(
  { capsule, sealed, keys, now }: OpenTask,
  check: CheckPayload,
): Parsed<OpenedCapsule> {
  const opened = openCapsule(capsule, sealed, keys, check);
  if (!opened.ok) return opened;
  const { outputs, ...frame } = opened.value;
  const texts = outputs.map((output) => JSON.stringify(columnsOf(output, now)));
  return { ok: true, value: { frame, outputs: texts } };
}

function columnsOf(row: CarriedOutput, now: string): CarriedOutput {
  const { block_id, iteration, attempt, try: number, output = null, output_ref = null } = row;
  return {
    block_id,
    iteration,
    attempt,
    try: number,
    output,
    output_ref,
    output_size: row.output_size ?? Buffer.byteLength(JSON.stringify(output)),
    created_at: Date.parse(row.created_at) > Date.parse(now) ? now : row.created_at,
  };
}
