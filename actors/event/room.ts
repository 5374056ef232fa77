/** Events, and the steps that wait for them. */

import type { ReceivedEvent } from '../../schema/event.js';
import { eventKeyId, routeOf } from '../../src/base/ids.js';
import { eventTenant } from '../../src/base/tenancy.js';
import { checkCallersId } from '../../src/core/creation-key.js';
import { type Kernel, onFirstShard } from '../runtime/kernel.js';
import type { Call, Operations, RouteOperations } from '../runtime/operation.js';
import { pruning } from '../runtime/pruning.js';
import { EventCancels } from './cancels.js';
import { Events, type FiredEvent } from './events.js';
import type { EventLoads } from './loads.js';
import { EVENT } from './tables.js';

/** Deduplication period of producer_event_id. */
const KEPT_MS = 7 * 24 * 60 * 60 * 1_000;

export function openEvents(kernel: Kernel<EventLoads>) {
  const events = new Events(kernel);
  const oldest = () => kernel.loader.oldestEndedEvent();
  const prune = onFirstShard(kernel, () =>
    pruning(kernel, { name: 'old events', by: EVENT.prune, keptMs: KEPT_MS, oldest }),
  );
  const cancels = new EventCancels(kernel);
  return { parts: [events, cancels, prune], operations: eventOperations(events) };
}

export function eventOperations(events: Events) {
  const routes = {
    'events.send': {
      // The event must reach every wait that its caller has seen.
      isBehindHints: true,
      leadsTo: ({ tenant_id, event_name, correlation_key }, tenant) =>
        routeOf(eventKeyId(tenant_id ?? tenant, event_name, correlation_key ?? undefined)),
      serve: ({ request, tenant, body }) => {
        checkCallersId(body.producer_event_id, 'producer_event_id');
        events.receive(request, eventTenant(tenant, body.tenant_id), body);
      },
    },
  } satisfies RouteOperations;
  const own = {
    /** One event of a batch, with its tenant. */
    'events.receive': {
      isBehindHints: true,
      serve: ({ request, tenant, body }: Call<ReceivedEvent>) =>
        events.receive(request, tenant, body),
    },
    /** One that an event trigger publishes: it fires no triggers. */
    'events.receiveQuietly': {
      isBehindHints: true,
      serve: ({ request, tenant, body }: Call<ReceivedEvent>) =>
        events.receive(request, tenant, body, true),
    },
    /** Stores the remaining triggers (`front/firing.ts`). */
    'events.fired': {
      serve: ({ request, body }: Call<FiredEvent>) => events.fired(request, body),
    },
  } satisfies Operations;
  return { ...routes, ...own };
}
