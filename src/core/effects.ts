/**
 * Receipts of outside effects. A receipt is not stored: it is derived from what the engine stores of the step, and
 * overridden by a resolution of the effect.
 */

import { toUnixMs } from '../../schema/common.js';
import type { EffectReceipt } from '../../schema/continuity.js';
import { type EffectState, mayMoveEffect } from '../../schema/continuity-words.js';
import type { TaskState } from '../../schema/states.js';
import { isJsonObject, type JsonObject, type JsonValue, ownValue } from '../base/json.js';
import { isoTime, laterOf, type UnixMs } from '../base/time.js';
import { type Parsed, refused } from './parsed.js';
import { canonicalSha256 } from './sealing/canonical-json.js';

/** Of an idempotency key and of a provider's receipt id. */
const RECEIPT_TEXT_BYTES_MAX = 256;

/** The request of a step, without its secrets. */
export type EffectRequest = Pick<
  EffectReceipt,
  'request_sha256' | 'destination_fingerprint' | 'idempotency_key'
>;

/** Which step it was; the epoch is the one in which it was dispatched. */
export type EffectPlace = Pick<
  EffectReceipt,
  'tenant_id' | 'continuity_id' | 'epoch' | 'instance_id' | 'block_id' | 'attempt'
>;

/** What is known of every step that acts outside. */
interface EffectFacts extends EffectPlace {
  readonly id: string;
  readonly handler_name: string;
  readonly output: JsonValue;
  readonly created_at: string;
  /** When it last changed, such as when it ended; null while nothing happened. */
  readonly updated_at: string | null;
}

export interface TaskFacts extends EffectFacts {
  readonly params: JsonValue;
  readonly state: TaskState;
  /** A worker has said that it failed. Else it ended for another reason: a time-out, a cancellation. */
  readonly is_reported: boolean;
  /** A worker that said nothing more may have been at it: the one that has it, or one that went silent. */
  readonly is_touched: boolean;
}

/** In the history of a task: its claim was taken back from a silent worker. */
export const SILENCE_REASON = 'no heartbeat';

export interface InProcessFacts extends EffectFacts, EffectRequest {
  readonly outcome: 'in_flight' | EffectOutcome;
}

/** `failure`: answered as failed, or never sent; `lost`: such as by a time-out or an answer that did not arrive. */
export type EffectOutcome = 'success' | 'failure' | 'lost';

/** As requested by `POST /continuity/effects/{id}/resolve`. */
export type EffectResolution = Pick<EffectReceipt, 'state' | 'provider_receipt_id' | 'updated_at'>;

/** @param sent the key that goes along unless the parameters name another one */
export function effectRequest(
  handlerName: string,
  params: JsonValue,
  sent?: string,
): EffectRequest {
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

export function inProcessReceipt(
  facts: InProcessFacts,
  resolution?: EffectResolution | null,
): EffectReceipt {
  const state = IN_PROCESS_STATE[facts.outcome];
  return withResolution(receiptOf(facts, facts, state), resolution);
}

/** Exactly these members, whatever else the facts have. */
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

/** @param receipt with its present resolution @param providerReceiptId absent: the known one stays */
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

/** A resolution holds until the engine learns more: an effect resolved as unknown and then reported done is committed. */
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
    updated_at: laterOf(receipt.updated_at, resolution.updated_at),
  };
}

/** Parameters that say where a request goes. */
const DESTINATION_PARAMS = ['url', 'provider', 'model', 'topic', 'queue', 'resource', 'endpoint'];

const IN_PROCESS_STATE: Readonly<Record<InProcessFacts['outcome'], EffectState>> = {
  in_flight: 'dispatched',
  success: 'committed',
  failure: 'failed',
  lost: 'unknown',
};

/** Unknown if a worker had the task and fell silent; a task that ended before any worker had it did nothing. */
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
