/** The operations on queues: polls, which go to the shard of their handler. */

import type { PollTasks } from '../../schema/worker.js';
import { routeOfName } from '../../src/core/ids.js';
import type { UnixMs } from '../../src/core/time.js';
import type { Call, RouteOperations } from '../runtime/operation.js';
import type { Queues } from './queues.js';

export interface QueueParts {
  readonly queues: Queues;
  readonly now: () => UnixMs;
}

export const QUEUE_OPERATIONS = {
  'workers.poll': {
    isBehindHints: true,
    leadsTo: ({ handler_name }) => routeOfName(handler_name),
    serve: (parts, call) => poll(parts, call, ''),
  },
  'workers.pollQueue': {
    isBehindHints: true,
    leadsTo: ({ handler_name }) => routeOfName(handler_name),
    serve: (parts, call) => poll(parts, call, call.body.queue_name),
  },
} satisfies Partial<RouteOperations<QueueParts>>;

function poll(
  { queues, now }: QueueParts,
  { request, tenant, body, maySeeSecrets }: Call<PollTasks>,
  queue: string,
): void {
  const { worker_id: worker, handler_name: handler } = body;
  queues.seen({ tenant, worker, handler, queue, version: body.version ?? null });
  queues.poll(handler, {
    request,
    tenant,
    worker,
    queue,
    limit: body.limit ?? 1,
    maySeeSecrets,
    until: now() + (body.wait_ms ?? 0),
  });
}
