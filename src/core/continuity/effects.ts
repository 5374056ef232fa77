/**
 * Receipts of outside effects. A receipt is not stored: it is read off what the engine keeps
 * of the step anyway, and what somebody found out about the effect later is laid over it.
 */

import { toUnixMs } from '../../../schema/common.js';
import type { EffectReceipt } from '../../../schema/continuity.js';
import { compareText } from '../expression/bounds.js';
import { isJsonObject, type JsonObject, type JsonValue, ownValue } from '../json.js';
import type { TaskState } from '../states.js';
import { isoTime, type UnixMs } from '../time.js';
import { canonicalSha256 } from './canonical-json.js';
import { type EffectState, mayMoveEffect } from './states.js';

export const EFFECT_KINDS = [
  'http',
  'worker',
  'webhook',
  'message',
  'storage',
  'model',
  'human_decision',
  'custom',
] as const;
export type EffectKind = (typeof EFFECT_KINDS)[number];

/** Of an idempotency key and of a provider's receipt id. */
export const RECEIPT_TEXT_BYTES_MAX = 256;

/** The request of a step, without its secrets. */
export interface EffectRequest {
  readonly request_sha256: string;
  readonly destination_fingerprint: string;
  readonly idempotency_key: string | null;
}

/** Which step it was. */
export interface EffectPlace {
  readonly tenant_id: string;
  readonly continuity_id: string;
  /** The ownership epoch in which the step was dispatched. */
  readonly epoch: number;
  readonly instance_id: string;
  readonly block_id: string;
  readonly attempt: number;
}

/** The row of an external task. */
export interface TaskFacts extends EffectPlace {
  readonly id: string;
  readonly handler_name: string;
  /** After templating. */
  readonly params: JsonValue;
  readonly state: TaskState;
  readonly withdrawn: boolean;
  /** Zero until a worker has claimed it. */
  readonly claim_epoch: number;
  readonly output: JsonValue;
  readonly created_at: string;
  /** When it last changed: when it ended or was withdrawn; null while nothing happened. */
  readonly updated_at: string | null;
}

/** What is stored of a step that the engine runs itself, with its output. */
export interface InProcessFacts extends EffectPlace, EffectRequest {
  readonly id: string;
  readonly handler_name: string;
  readonly outcome: 'in_flight' | 'success' | 'error';
  readonly output: JsonValue;
  readonly created_at: string;
  readonly updated_at: string | null;
}

/** What somebody said about an effect (`POST /continuity/effects/{id}/resolve`). */
export interface EffectResolution {
  readonly state: EffectState;
  readonly provider_receipt_id: string | null;
  readonly updated_at: string;
}

export type Resolved =
  | { readonly ok: true; readonly receipt: EffectReceipt; readonly resolution: EffectResolution }
  | { readonly ok: false; readonly message: string };

/** What a receipt tells about the request of a step. */
export function effectRequest(handlerName: string, params: JsonValue): EffectRequest {
  const fields = isJsonObject(params) ? params : {};
  const present = DESTINATION_PARAMS.filter((name) => Object.hasOwn(fields, name));
  const destination = Object.fromEntries(present.map((name) => [name, fields[name]]));
  return {
    request_sha256: canonicalSha256({ handler: handlerName, params }),
    destination_fingerprint: canonicalSha256({ handler: handlerName, destination }),
    idempotency_key: shortText(ownValue(fields, 'idempotency_key')),
  };
}

/** The receipt of an external task has the task's id, and so survives every change of epoch. */
export function taskReceipt(facts: TaskFacts, resolution?: EffectResolution | null): EffectReceipt {
  const receipt: EffectReceipt = {
    ...placeOf(facts),
    ...effectRequest(facts.handler_name, facts.params),
    id: facts.id,
    kind: kindOf(facts.handler_name),
    state: taskEffectState(facts),
    provider_receipt_id: facts.state === 'completed' ? providerReceiptId(facts.output) : null,
    created_at: facts.created_at,
    updated_at: facts.updated_at ?? facts.created_at,
  };
  return withResolution(receipt, resolution);
}

export function inProcessReceipt(
  facts: InProcessFacts,
  resolution?: EffectResolution | null,
): EffectReceipt {
  const receipt: EffectReceipt = {
    ...placeOf(facts),
    request_sha256: facts.request_sha256,
    destination_fingerprint: facts.destination_fingerprint,
    idempotency_key: facts.idempotency_key,
    id: facts.id,
    kind: kindOf(facts.handler_name),
    state: IN_PROCESS_STATE[facts.outcome],
    provider_receipt_id: facts.outcome === 'success' ? providerReceiptId(facts.output) : null,
    created_at: facts.created_at,
    updated_at: facts.updated_at ?? facts.created_at,
  };
  return withResolution(receipt, resolution);
}

/**
 * Moves a receipt to the state that somebody found out.
 *
 * @param receipt with the resolution that it has so far
 * @param providerReceiptId when absent, the one that is known stays
 * @returns the receipt as it is now and what to store, or the message of a conflict
 */
export function resolveEffect(
  receipt: EffectReceipt,
  state: EffectState,
  providerReceiptId: string | null | undefined,
  now: UnixMs,
): Resolved {
  if (!mayMoveEffect(receipt.state, state)) {
    return { ok: false, message: `an effect that is ${receipt.state} cannot become ${state}` };
  }
  const resolution: EffectResolution = {
    state,
    provider_receipt_id: providerReceiptId ?? receipt.provider_receipt_id,
    updated_at: isoTime(Math.max(now, (toUnixMs(receipt.updated_at) ?? 0) + 1)),
  };
  return { ok: true, receipt: { ...receipt, ...resolution }, resolution };
}

/**
 * A resolution holds, unless what the engine has seen since leads on from it: an effect that was
 * resolved as unknown and is then reported done is committed.
 */
function withResolution(
  receipt: EffectReceipt,
  resolution: EffectResolution | null | undefined,
): EffectReceipt {
  if (resolution === null || resolution === undefined) return receipt;
  const isOutdated = mayMoveEffect(resolution.state, receipt.state);
  return {
    ...receipt,
    state: isOutdated ? receipt.state : resolution.state,
    provider_receipt_id: resolution.provider_receipt_id ?? receipt.provider_receipt_id,
    updated_at: later(receipt.updated_at, resolution.updated_at),
  };
}

/** Parameters that say where a request goes. */
const DESTINATION_PARAMS = [
  'url',
  'provider',
  'model',
  'topic',
  'queue',
  'resource',
  'endpoint',
] as const;

const IN_PROCESS_STATE: Readonly<Record<InProcessFacts['outcome'], EffectState>> = {
  in_flight: 'dispatched',
  success: 'committed',
  error: 'unknown',
};

/**
 * What a worker that once had the task did with it, nobody knows until it says so. One that ended
 * before any worker had it, withdrawn or timed out, did nothing.
 */
function taskEffectState({ state, withdrawn, claim_epoch }: TaskFacts): EffectState {
  if (state === 'completed') return 'committed';
  if (state !== 'failed' && !withdrawn) return 'dispatched';
  return claim_epoch > 0 ? 'unknown' : 'abandoned';
}

function kindOf(handlerName: string): EffectKind {
  return handlerName === 'http_request' ? 'http' : 'worker';
}

/** In this order. */
const PROVIDER_ID_FIELDS = ['provider_receipt_id', 'receipt_id', 'request_id'] as const;

function providerReceiptId(output: JsonValue): string | null {
  const fields: JsonObject = isJsonObject(output) ? output : {};
  for (const name of PROVIDER_ID_FIELDS) {
    const id = shortText(ownValue(fields, name));
    if (id !== null) return id;
  }
  return null;
}

function shortText(value: JsonValue | undefined): string | null {
  if (typeof value !== 'string') return null;
  return Buffer.byteLength(value) <= RECEIPT_TEXT_BYTES_MAX ? value : null;
}

/** Exactly these members, whatever else the facts have. */
function placeOf(facts: EffectPlace): EffectPlace {
  const { tenant_id, continuity_id, epoch, instance_id, block_id, attempt } = facts;
  return { tenant_id, continuity_id, epoch, instance_id, block_id, attempt };
}

/** Times of the engine have one form, in which the order of the texts is that of the times. */
function later(a: string, b: string): string {
  return compareText(a, b) >= 0 ? a : b;
}
