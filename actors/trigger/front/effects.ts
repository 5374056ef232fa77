/**
 * The effect of a trigger: it starts an instance, by a creation by name, or publishes an event. What fires it has an id
 * from which the idempotency key of the instance, or the id of the event, is derived, so that each has one effect.
 */

import { randomUUID } from 'node:crypto';
import type { EventReceipt, ReceivedEvent } from '../../../schema/event.js';
import type { CreateInstance, InstanceCreated } from '../../../schema/instance.js';
import type { TriggerFired } from '../../../schema/trigger.js';
import { EngineError } from '../../../src/base/errors.js';
import { eventKeyId } from '../../../src/base/ids.js';
import { isJsonObject, type JsonObject, type JsonValue } from '../../../src/base/json.js';
import type { Logger } from '../../../src/base/log.js';
import { lastUsed, valueFor } from '../../../src/base/quota/last-used.js';
import { TRIGGER_ID_PREFIX } from '../../../src/core/creation-key.js';
import type { eventOperations } from '../../event/room.js';
import type { instanceOperations } from '../../instance/operations.js';
import type { Shards } from '../../runtime/shards.js';
import {
  compilePublish,
  type PublishPlan,
  publishedEvent,
  type Sources,
} from '../core/publishing.js';
import type { TriggerRow } from '../loads.js';

export type Client = Shards<typeof eventOperations> & Shards<typeof instanceOperations>;

export interface Occasion extends Sources {
  /** Describes it in the metadata of the instance. */
  readonly event: JsonObject;
  /** Undefined: it never repeats. */
  readonly id: string | undefined;
  /** An event: one that is published for it fires no triggers, so that they cannot fire each other for ever. */
  readonly isEvent?: true;
}

export interface EffectDeps {
  readonly client: Client;
  readonly log: Logger;
}

/** By the text of the row. Compiling takes longer than rendering, and one plan has up to a megabyte. */
const PLANS = lastUsed<string, PublishPlan>(100);

type Outcome = Omit<TriggerFired, 'trigger'>;

/** Rejects with an EngineError: 422 if a template gives no usable value, and what the creation is refused with. */
export async function effectOf(
  deps: EffectDeps,
  row: TriggerRow,
  occasion: Occasion,
): Promise<Outcome> {
  const { publish } = row;
  if (publish === null) return start(deps.client, row, occasion);
  const id = keyOf(row, occasion) ?? `${TRIGGER_ID_PREFIX}${row.slug}:${randomUUID()}`;
  try {
    const plan = valueFor(PLANS, publish, () => compilePublish(JSON.parse(publish)));
    const event = publishedEvent(plan, occasion, id);
    return await send(deps.client, row.tenant_id, event, occasion.isEvent === true);
  } catch (error) {
    if (error instanceof EngineError && error.code === 'ENG_TEMPLATE') {
      const fields = { trigger: row.slug, tenantId: row.tenant_id, problem: error.message };
      deps.log.warn(fields, 'a trigger published no event');
    }
    throw error;
  }
}

const keyOf = ({ slug }: TriggerRow, { id }: Occasion) =>
  id === undefined ? undefined : `${TRIGGER_ID_PREFIX}${slug}:${id}`;

async function start(client: Client, row: TriggerRow, occasion: Occasion): Promise<Outcome> {
  const { slug, tenant_id, namespace, sequence_name, version, trigger_type } = row;
  const { body, event } = occasion;
  const key = keyOf(row, occasion);
  const creation: CreateInstance = {
    tenant_id,
    namespace,
    sequence: sequence_name,
    ...(version === null ? {} : { version }),
    priority: 'normal',
    metadata: { _trigger: slug, _trigger_type: trigger_type, _trigger_event: event },
    context: { data: isJsonObject(body) ? body : { payload: body as JsonValue } },
    ...(key === undefined ? {} : { idempotency_key: key }),
  };
  const to = [client.anyShard(), 'instances.fire', tenant_id, ''] as const;
  const created: InstanceCreated = JSON.parse((await client.ask(...to, creation)).body);
  const { id, deduplicated, skipped, collected, starts_at } = created;
  return {
    instance_id: id,
    ...(skipped && { skipped }),
    ...(collected && { collected, starts_at }),
    ...(deduplicated && { duplicate: true }),
  };
}

async function send(
  client: Client,
  tenant: string,
  event: ReceivedEvent,
  isFiredByEvent: boolean,
): Promise<EventReceipt> {
  const key = eventKeyId(tenant, event.event_name, event.correlation_key ?? undefined);
  const operation = isFiredByEvent ? 'events.receiveQuietly' : 'events.receive';
  return JSON.parse((await client.ask(client.shardOf(key), operation, tenant, '', event)).body);
}
