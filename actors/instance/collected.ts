/** Creations that their sequence collects instead of starting an instance for each (docs/concurrency.md). */

import type { CancelEvent } from '../../schema/execution.js';
import { invalid, unprocessable } from '../../src/base/errors.js';
import { startKeyId } from '../../src/base/ids.js';
import type { JsonObject } from '../../src/base/json.js';
import { cancelEvents } from '../../src/core/cancel-on.js';
import { type Collecting, collectingKeyOf } from '../../src/core/collecting.js';
import { idempotencyKeyOf } from '../../src/core/creation-key.js';
import type { StoredSequence } from '../catalog/plans.js';
import type { Placed } from './creation.js';
import { givenContext, type NewInstance } from './record.js';

/** A creation on its way to the actor that collects it. */
export interface Collected {
  readonly key_id: string;
  /** Its id is that of an instance with the idempotency key; without a key it has no meaning. */
  readonly instance: NewInstance;
  readonly isKeyed: boolean;
  /** The name of the sequence. */
  readonly sequence: string;
  readonly key: string | null;
  readonly collecting: Collecting;
  /** The events of `cancel_on`; a key may have the id of `instance`, which stands for that of the start. */
  readonly cancelOn?: readonly CancelEvent[] | undefined;
}

/** Undefined when the creation starts its own instance, as a dry run does. @throws EngineError 422 */
export function collectedOf(
  { route: _route, named: _named, texts: _texts, ...instance }: NewInstance,
  sequence: StoredSequence,
): Collected | undefined {
  const { body } = instance;
  if (sequence.collecting === undefined || body.dry_run === true) return undefined;
  const { name } = sequence;
  const { key: template, ...collecting } = sequence.collecting;
  const rendered = collectingKeyOf(template, givenContext(body));
  if (!rendered.ok) throw unprocessable(rendered.message);
  const key = rendered.value;
  // Creations that name another version, or the name, may start another one: they are collected separately.
  const target = body.sequence_id ?? (body.version == null ? null : String(body.version));
  const shared = [body.namespace, name, target, collecting.kind, key];
  const key_id = startKeyId(body.tenant_id, shared);
  const isKeyed = idempotencyKeyOf(body) !== null;
  const cancelOn = cancelEventsOf(instance, sequence);
  return { key_id, instance, isKeyed, sequence: name, key, collecting, cancelOn };
}

/** @throws EngineError 422 */
function cancelEventsOf({ id, body }: NewInstance, sequence: StoredSequence) {
  const { cancelOn } = sequence.plan;
  if (cancelOn === undefined) return undefined;
  const { data, config } = givenContext(body);
  const events = cancelEvents(cancelOn, { id, data: startedData(data, sequence), config });
  if (!events.ok) throw unprocessable(events.message);
  return events.value;
}

/** The data with which the instance of a creation starts; of a batch, as if there were no other one. */
export function startedData(data: JsonObject, { collecting }: StoredSequence): JsonObject {
  return collecting?.kind === 'batch' ? { items: [data] } : data;
}

/** What the creation starts if it is not collected: its keys and its flow see the data of an instance. */
export function asStarted({ instance, sequence }: Placed): NewInstance {
  const { body, item } = instance;
  if (sequence?.collecting?.kind !== 'batch' || item !== undefined) return instance;
  const given = givenContext(body).data;
  const context = { ...body.context, data: startedData(given, sequence) };
  return { ...instance, item: given, body: { ...body, context }, texts: undefined };
}

/** A batch commits all of its instances at once, and collected creations are committed by their own actors. */
export function refuseCollected(
  { instance: { body } }: Placed,
  { collecting, name }: StoredSequence,
  item: string,
): void {
  if (collecting === undefined || body.dry_run === true) return;
  const why = `sequence ${name} collects creations (${collecting.kind})`;
  throw invalid(`${item}${why}: create its instances one by one`);
}
