/**
 * What a capsule costs time for: its contents are parsed, written canonically, hashed and sealed, or
 * all of that the other way round. Some 40 ms for each MiB: more than a turn of a shard may take, so
 * that anything but a small capsule is a job for another thread (`actors/runtime/offload`).
 */

import type { Capsule } from '../../../schema/handoff.js';
import type { JsonObject, JsonValue } from '../json.js';
import { type CapsuleFacts, type CapsuleKeys, createCapsule } from './capsule.js';
import { type AdmittedImport, type Imported, openCapsule } from './capsule-import.js';
import type { CapsulePayload } from './capsule-payload.js';
import { Fields, type Parsed, parsing } from './parsed.js';

/** A row of outputs; the output is JSON text. */
export interface OutputText {
  readonly block_id: string;
  readonly iteration: string;
  readonly attempt: number;
  readonly try: number;
  readonly output: string | null;
  readonly output_ref: string | null;
  readonly output_size: number;
  readonly created_at: string;
}

export type PayloadFrame = Omit<CapsulePayload, 'outputs'>;

/** Plain data and keys, so that it can be posted to a thread. */
export interface SealTask {
  readonly facts: CapsuleFacts;
  readonly frame: PayloadFrame;
  readonly outputs: readonly OutputText[];
  readonly keys: CapsuleKeys;
  /** 12 random bytes that were never used before. */
  readonly nonce: Uint8Array;
}

export interface SealedPayload {
  readonly capsule: Capsule;
  readonly payloadBase64: string;
}

/** The message when the payload is over a bound. */
export function sealCapsule({
  facts,
  frame,
  outputs,
  keys,
  nonce,
}: SealTask): Parsed<SealedPayload> {
  const payload = { ...frame, outputs: outputs.map(parsedOutput) };
  const made = createCapsule(facts, payload, keys, nonce);
  if (!made.ok) return made;
  const { capsule, sealed } = made.value;
  return { ok: true, value: { capsule, payloadBase64: sealed.toString('base64') } };
}

/** Its receipt stays behind: the capsule names it, and the importer did not do what it tells of. */
function parsedOutput({ output, ...row }: OutputText): JsonObject {
  return { ...row, output: output === null ? null : (JSON.parse(output) as JsonValue) };
}

export interface OpenTask extends Pick<AdmittedImport, 'keyring' | 'transferKey'> {
  readonly capsule: Capsule;
  readonly sealed: Uint8Array;
  /** RFC 3339: of a clock that is ahead no output is later than what is still to come. */
  readonly now: string;
}

export interface OpenedCapsule {
  readonly frame: PayloadFrame;
  /** Columns of the rows of outputs, each as the text of a JSON object, without any ids. */
  readonly outputs: readonly string[];
}

/** The third stage of an import (`core/continuity/capsule-import.ts`), and its outputs as rows. */
export function openSealed({ capsule, sealed, now, ...keys }: OpenTask): Imported<OpenedCapsule> {
  const opened = openCapsule(capsule, sealed, keys);
  if (!opened.ok) return opened;
  const { outputs, ...frame } = opened.value;
  const texts = parsing(() => outputs.map((output) => JSON.stringify(columnsOf(output, now))));
  if (!texts.ok) return { ok: false, status: 409, message: texts.message };
  return { ok: true, value: { frame, outputs: texts.value } };
}

function columnsOf(row: JsonObject, now: string): object {
  const fields = new Fields(row, 'outputs');
  const created = fields.required('created_at', fields.timestamp('created_at'));
  const { output = null } = row;
  return {
    block_id: fields.required('block_id', fields.text('block_id')),
    iteration: fields.required('iteration', fields.text('iteration')),
    attempt: fields.required('attempt', fields.integer('attempt', 0)),
    try: fields.required('try', fields.integer('try', 0)),
    output,
    output_ref: fields.text('output_ref') ?? null,
    output_size: fields.integer('output_size', 0) ?? Buffer.byteLength(JSON.stringify(output)),
    created_at: Date.parse(created) > Date.parse(now) ? now : created,
  };
}
