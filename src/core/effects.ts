/** Receipts of outside effects: not stored, but derived from stored steps and overridden by resolutions. */

import { toUnixMs } from '../../schema/common.js';
import type { EffectReceipt } from '../../schema/continuity.js';
import { type EffectState, mayMoveEffect } from '../../schema/continuity-words.js';
import type { TaskState } from '../../schema/states.js';
import { isJsonObject, type JsonObject, type JsonValue, ownValue } from '../base/json.js';
import { isoTime, laterOf, type UnixMs } from '../base/time.js';
import { type Parsed, refused } from './parsed.js';
import { canonicalSha256 } from './sealing/canonical-json.js';

/** The limit for idempotency keys and receipt ids of providers. */
const RECEIPT_TEXT_BYTES_MAX = 256;

/** The request of a step, without its secrets. */
export type EffectRequest = Pick<
  EffectReceipt,
  'request_sha256' | 'destination_fingerprint' | 'idempotency_key'
>;

/** The step, and the ownership epoch in which it was dispatched. */
export type EffectPlace = Pick<
  EffectReceipt,
  'tenant_id' | 'continuity_id' | 'epoch' | 'instance_id' | 'block_id' | 'attempt'
>;

interface EffectFacts extends EffectPlace {
  readonly id: string;
  readonly handler_name: string;
  readonly output: JsonValue;
  readonly created_at: string;
  /** Time of the last change, such as the end; null before any change. */
  readonly updated_at: string | null;
}

export interface TaskFacts extends EffectFacts {
  readonly params: JsonValue;
  readonly state: TaskState;
  /** A worker reported the failure. False: the task ended for another reason, such as a time-out. */
  readonly is_reported: boolean;
  /** A worker may have acted without reporting a result: it holds the claim, or its heartbeats stopped. */
  readonly is_touched: boolean;
}

/** The reason in the history of a task whose worker lost the claim for want of heartbeats. */
export const SILENCE_REASON = 'no heartbeat';

export interface InProcessFacts extends EffectFacts, EffectRequest {
  readonly outcome: 'in_flight' | EffectOutcome;
}

/** `failure`: reported as failed, or never sent. `lost`: unknown, such as after a time-out. */
export type EffectOutcome = 'success' | 'failure' | 'lost';
/** As requested by `POST /continuity/effects/{id}/resolve`. */
export type EffectResolution = Pick<EffectReceipt, 'state' | 'provider_receipt_id' | 'updated_at'>;

/** @param sent the idempotency key that is sent unless the parameters have one */
export function effectRequest(handlerName: string, params: JsonValue, sent?: string) {
  const fields = isJsonObject(params) ? params : {};
  const present = DESTINATION_PARAMS.filter((name) => Object.hasOwn(fields, name));
  const destination = Object.fromEntries(present.map((name) => [name, fields[name]]));
  return {
    request_sha256: canonicalSha256({ handler: handlerName, params }),
    destination_fingerprint: canonicalSha256({ handler: handlerName, destination }),
    idempotency_key: shortText(ownValue(fields, 'idempotency_key') ?? keyHeader(fields) ?? sent),
  };
}

function keyHeader({ headers }: JsonObject): JsonValue | undefined {
  if (!isJsonObject(headers)) return undefined;
  return Object.entries(headers).findLast(
    ([name, value]) => name.toLowerCase() === 'idempotency-key' && typeof value === 'string',
  )?.[1];
}

/** The receipt of an external task has the task's id, and so survives every change of epoch. */
export function taskReceipt(facts: TaskFacts, resolution?: EffectResolution | null): EffectReceipt {
  const request = effectRequest(facts.handler_name, facts.params);
  return withResolution(receiptOf(facts, request, taskEffectState(facts)), resolution);
}

export function inProcessReceipt(facts: InProcessFacts, resolution?: EffectResolution | null) {
  const state = IN_PROCESS_STATE[facts.outcome];
  return withResolution(receiptOf(facts, facts, state), resolution);
}

/** Copies only the members of a receipt: the facts may have others. */
function receiptOf(
  facts: EffectFacts,
  { destination_fingerprint, idempotency_key, request_sha256 }: EffectRequest,
  state: EffectState,
): EffectReceipt {
  const { tenant_id, continuity_id, epoch, instance_id, block_id, attempt } = facts;
  const { id, created_at, updated_at } = facts;
  return {
    ...{ tenant_id, continuity_id, epoch, instance_id, block_id, attempt },
    ...{ request_sha256, destination_fingerprint, idempotency_key },
    id,
    kind: facts.handler_name === 'http_request' ? 'http' : 'worker',
    state,
    provider_receipt_id: state === 'committed' ? providerReceiptId(facts.output) : null,
    created_at,
    updated_at: updated_at ?? created_at,
  };
}

/** @param receipt with its current resolution @param providerReceiptId absent or null: keeps the current id */
export function resolveEffect(
  receipt: EffectReceipt,
  state: EffectState,
  providerReceiptId: string | null | undefined,
  now: UnixMs,
): Parsed<EffectReceipt> {
  if (!mayMoveEffect(receipt.state, state)) {
    return refused(`an effect that is ${receipt.state} cannot become ${state}`);
  }
  const resolved = {
    ...receipt,
    state,
    provider_receipt_id: providerReceiptId ?? receipt.provider_receipt_id,
    updated_at: isoTime(Math.max(now, (toUnixMs(receipt.updated_at) ?? 0) + 1)),
  };
  return { ok: true, value: resolved };
}

/** Newer facts override a resolution: an effect resolved as unknown is committed once its success is reported. */
function withResolution(receipt: EffectReceipt, resolution: EffectResolution | null | undefined) {
  if (resolution === null || resolution === undefined) return receipt;
  const isOutdated = mayMoveEffect(resolution.state, receipt.state);
  return {
    ...receipt,
    state: isOutdated ? receipt.state : resolution.state,
    provider_receipt_id: resolution.provider_receipt_id ?? receipt.provider_receipt_id,
    updated_at: laterOf(receipt.updated_at, resolution.updated_at),
  };
}

/** Parameters that identify the destination of a request. */
const DESTINATION_PARAMS = ['url', 'provider', 'model', 'topic', 'queue', 'resource', 'endpoint'];

const IN_PROCESS_STATE: Readonly<Record<InProcessFacts['outcome'], EffectState>> = {
  in_flight: 'dispatched',
  success: 'committed',
  failure: 'failed',
  lost: 'unknown',
};

/** A task that ended before any worker claimed it had no effect; after a claim the effect may be unknown. */
function taskEffectState({ state, is_reported, is_touched }: TaskFacts): EffectState {
  switch (state) {
    case 'completed':
      return 'committed';
    case 'claimed':
      return 'dispatched';
    case 'pending':
      return is_touched ? 'unknown' : 'prepared';
    case 'failed':
      if (is_reported) return 'failed';
      return is_touched ? 'unknown' : 'abandoned';
  }
}

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
