/**
 * The expensive part of capsules: parsing, canonical JSON, hashing and sealing, and the inverse. It
 * takes about 40 ms per MiB, more than a turn of a shard may take, so all but small capsules are
 * offloaded (`src/base/offload.ts`).
 */

import type { CapsulePayload, CarriedOutput } from '../../../schema/capsule.js';
import type { Capsule, HandoffExported } from '../../../schema/handoff.js';
import type { JsonValue } from '../../../src/base/json.js';
import type { Parsed } from '../../../src/core/parsed.js';
import type { PayloadKey } from '../../../src/core/sealing/keys.js';
import type { ColumnOf, StoredRow } from '../../../src/db/table.js';
import type { BLOCK_OUTPUTS } from '../../instance/output-tables.js';
import { type CapsuleFacts, type CapsuleKeys, createCapsule } from './capsule.js';
import { openCapsule } from './capsule-import.js';
import type { CheckPayload } from './capsule-payload.js';

/** A row of outputs; the output is JSON text. */
export type OutputText = StoredRow<
  typeof BLOCK_OUTPUTS,
  Exclude<ColumnOf<typeof BLOCK_OUTPUTS>, 'id' | 'instance_id' | 'effect'>
>;

export type PayloadFrame = Omit<CapsulePayload, 'outputs'>;

/** Posted to a thread. */
export interface SealTask {
  readonly facts: CapsuleFacts;
  readonly frame: PayloadFrame;
  readonly outputs: readonly OutputText[];
  readonly keys: CapsuleKeys;
  /** 12 random bytes that were never used before. */
  readonly nonce: Uint8Array;
}

export type SealedCapsule = Pick<HandoffExported, 'capsule' | 'payload_base64'>;

export function sealCapsule({
  facts,
  frame,
  outputs,
  keys,
  nonce,
}: SealTask): Parsed<SealedCapsule> {
  const payload = { ...frame, outputs: outputs.map(parsedOutput) };
  const made = createCapsule(facts, payload, keys, nonce);
  if (!made.ok) return made;
  const { capsule, sealed } = made.value;
  return { ok: true, value: { capsule, payload_base64: sealed.toString('base64') } };
}

/** Without its receipt: the importer did not have this effect; the capsule lists the receipt's id. */
function parsedOutput({ output, ...row }: OutputText): CarriedOutput {
  return { ...row, output: JSON.parse(output ?? 'null') as JsonValue };
}

export interface OpenTask {
  readonly capsule: Capsule;
  readonly sealed: Uint8Array;
  readonly keys: readonly PayloadKey[];
  /** RFC 3339; the latest time that an output may have, should the exporter's clock be ahead. */
  readonly now: string;
}

export interface OpenedCapsule {
  readonly frame: PayloadFrame;
  /** Rows of outputs as JSON objects without ids. */
  readonly outputs: readonly string[];
}

/** Opens a capsule whose manifest was checked. */
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

/** Only these columns, whatever the capsule has. */
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
