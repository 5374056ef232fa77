/** Triggers on the front thread: reads, fires by request, and fires by stored events. */

import type { Admission } from '../../../src/http/admission.js';
import type { FrontKernel, FrontRoom } from '../../../src/http/front-room.js';
import { EventFiring } from '../../event/front/firing.js';
import { firingEvents } from '../../event/front/reads.js';
import type { eventOperations } from '../../event/operations.js';
import type { Shards } from '../../runtime/shards.js';
import { fireByEvent, triggerOperations } from './operations.js';

type Kernel = FrontKernel<Shards<typeof eventOperations>>;

export function openTriggerFront(kernel: Kernel, admission: Admission) {
  const { client, bodies } = kernel;
  const firing = firingOf(kernel);
  return {
    parts: [firing],
    operations: triggerOperations(client, bodies, admission),
    // Events left by the last process are fired at once.
    start: () => firing.wake(),
    eventsFired: () => firing.wake(),
    drain: () => firing.stop(),
  } satisfies FrontRoom;
}

function firingOf({ client, reads, clock, log }: Kernel): EventFiring {
  return new EventFiring({
    clock,
    log,
    page: (at, id, rows) => firingEvents.rows(reads, at, id, rows),
    fire: (slug, event) => fireByEvent(client, reads, slug, event),
    fired: ({ id, key_id }, fires) =>
      client.ask(client.shardOf(key_id), 'events.fired', '', '', { id, fires }),
  });
}
