/** The operations on events. */

import type { ReceivedEvent } from '../../schema/event.js';
import { eventKeyId, routeOf } from '../../src/base/ids.js';
import { eventTenant } from '../../src/base/tenancy.js';
import type { Call, EngineOperations, RouteOperations } from '../runtime/operation.js';
import type { Events, FiredEvent } from './events.js';

export interface EventParts {
  readonly events: Events;
}

export const EVENT_OPERATIONS = {
  'events.send': {
    // A wait that its caller was told of counts.
    isBehindHints: true,
    leadsTo: ({ tenant_id, event_name, correlation_key }, tenant) =>
      routeOf(eventKeyId(tenant_id ?? tenant, event_name, correlation_key ?? undefined)),
    serve: ({ events }, { request, tenant, body }) =>
      events.receive(request, eventTenant(tenant, body.tenant_id), body),
  },
} satisfies Partial<RouteOperations<EventParts>>;

export const EVENT_ENGINE_OPERATIONS = {
  /** One of a batch, whose tenant is known. */
  'events.receive': {
    isBehindHints: true,
    serve: ({ events }, { request, tenant, body }: Call<ReceivedEvent>) =>
      events.receive(request, tenant, body),
  },
  /** Triggers were fired (`actors/event/front/firing.ts`). */
  'events.fired': {
    serve: ({ events }, { request, body }: Call<FiredEvent>) => events.fired(request, body),
  },
} satisfies EngineOperations<EventParts>;
