/** Triggers on the front thread: reads, and fires by calls, by requests from outside and by stored events. */

import { invalid } from '../../../src/base/errors.js';
import type { JsonValue } from '../../../src/base/json.js';
import { filtersOf } from '../../../src/db/reads/filters.js';
import { list } from '../../../src/db/reads/list.js';
import { orderBy } from '../../../src/db/reads/order.js';
import { columnsBut, selected } from '../../../src/db/table.js';
import type { FrontKernel, FrontRoom } from '../../../src/http/front-room.js';
import { type FrontDeps, jsonReply, listBy } from '../../../src/http/operation.js';
import type { Admission } from '../../../src/http/ports.js';
import { EventFiring, type FiringEvent, firingEvents } from '../../event/front/firing.js';
import { isSameText } from '../core/trigger-signature.js';
import { type TriggerRow, wireTrigger } from '../loads.js';
import { TRIGGERS } from '../tables.js';
import { type Client, type EffectDeps, effectOf } from './effects.js';
import { ownTrigger, secretsIn, unauthenticated } from './reads.js';
import { ReceivedCounts, readableHeaders, receiveBy } from './receive.js';

/** `Trigger` records, oldest first, without their secrets. */
const triggerList = list({
  columns: selected(columnsBut(TRIGGERS)),
  from: 'triggers',
  by: filtersOf(TRIGGERS, ['tenant_id', 'namespace', 'sequence_name', 'trigger_type']),
  order: orderBy(TRIGGERS, ['created_at', 'slug']),
  toText: (row: TriggerRow) => JSON.stringify(wireTrigger(row)),
});

export function openTriggerFront(kernel: FrontKernel<Client>, admission: Admission) {
  const { client, reads, bodies, log } = kernel;
  const counts = new ReceivedCounts();
  const deps = { client, log };
  const firing = new EventFiring({
    ...kernel,
    page: (at, id, rows) => firingEvents.rows(reads, at, id, rows),
    fire: (slug, event) => fireByEvent(deps, reads, slug, event),
    fired: ({ id, key_id }, fires) =>
      client.ask(client.shardOf(key_id), 'events.fired', '', '', { id, fires }),
  });
  return {
    parts: [firing],
    operations: {
      'triggers.list': listBy(triggerList),
      'triggers.get': async (front, { tenant, params: { slug } }) =>
        jsonReply(JSON.stringify(wireTrigger(await ownTrigger(front.reads, tenant, slug)))),
      'triggers.fire': async (front, { tenant, params: { slug }, body, header, allHeaders }) => {
        const row = await ownTrigger(front.reads, tenant, slug);
        // The secret of a provider is not that of the trigger's own callers.
        const [secret] = row.verify === null ? (secretsIn(front, row) ?? []) : [];
        if (secret !== undefined && !isSameText(header('x-trigger-secret') ?? '', secret)) {
          throw unauthenticated('x-trigger-secret does not fit');
        }
        if (!row.enabled) throw invalid(`trigger ${slug} is disabled`);
        const headers = readableHeaders(allHeaders());
        const event = { source: 'http_fire' };
        const outcome = await effectOf(deps, row, { body, headers, event, id: undefined });
        const fired = { trigger: slug, ...outcome };
        if (row.sequence_name === null) return { status: 202, body: JSON.stringify(fired) };
        const named = { ...fired, sequence_name: row.sequence_name };
        return { status: outcome.collected ? 202 : 201, body: JSON.stringify(named) };
      },
      'triggers.receive': receiveBy({ ...deps, bodies, admission, counts }),
    },
    gauges: {
      engine_webhooks_accepted_total: () => counts.accepted,
      engine_webhooks_repeated_total: () => counts.repeated,
      engine_webhooks_refused_total: () => counts.refused,
    },
    // Events of the last process may have unfired triggers.
    start: () => firing.wake(),
    eventsFired: () => firing.wake(),
    drain: () => firing.stop(),
  } satisfies FrontRoom;
}

/** One effect per event, even if the trigger is disabled now. @throws EngineError */
async function fireByEvent(
  deps: EffectDeps,
  reads: FrontDeps['reads'],
  slug: string,
  { id: event_id, tenant_id, event_name, correlation_key, payload }: FiringEvent,
): Promise<void> {
  const row = await ownTrigger(reads, tenant_id, slug);
  await effectOf(deps, row, {
    body: JSON.parse(payload ?? 'null') as JsonValue,
    headers: {},
    event: { source: 'event', event_id, event_name, correlation_key },
    id: `event:${event_id}`,
    isEvent: true,
  });
}
