/** The payload of a capsule as text: canonical JSON without empty lists. */

import {
  type CapsulePayload,
  listMax,
  PAYLOAD_LISTS,
  type SealedPayload,
} from '../../../schema/capsule.js';
import { decodeUtf8, type JsonLimits, parseJson } from '../../../src/base/json-guard.js';
import { type Parsed, refused } from '../../../src/core/parsed.js';
import { canonicalJson } from '../../../src/core/sealing/canonical-json.js';

/** Before sealing. */
export const PAYLOAD_BYTES_MAX = 64 * 1_024 * 1_024;
const TOO_LARGE = refused(`the payload must have at most ${PAYLOAD_BYTES_MAX} bytes`);

/** The shapes around stored values add a few levels to the 256 that these may have. */
const PAYLOAD_JSON: JsonLimits = { maxDepth: 264, maxNumberLength: 400 };

export type CheckPayload = (value: unknown) => Parsed<SealedPayload>;

/** Refused when a list or the whole is too large for any importer. */
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

/** The payload is from a server that holds the key, and validated like any other input. */
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
