/** The operations on queues: polls, which go to the shard of their handler. */

import { POLL_LIMIT_DEFAULT, type PollTasks } from '../../schema/worker.js';
import { routeOfName } from '../../src/base/ids.js';
import type { Kernel } from '../runtime/kernel.js';
import type { Call, Operations, RouteOperations } from '../runtime/operation.js';
import { type Exchanges, replyWith } from './exchanges.js';
import { arrayOf, claimOf } from './poll.js';
import type { Queues } from './queues.js';

export interface QueueParts extends Pick<Kernel, 'now' | 'release'> {
  readonly queues: Queues;
  readonly exchanges: Exchanges;
}

export function queueOperations(parts: QueueParts) {
  const { queues, exchanges, release } = parts;
  const routes = {
    'workers.poll': {
      isBehindHints: true,
      leadsTo: ({ handler_name }) => routeOfName(handler_name),
      serve: (call) => poll(parts, call, ''),
    },
    'workers.exchange': {
      isBehindHints: true,
      leadsTo: 'itself',
      serve: (call) => exchanges.serve(call),
    },
    'workers.pollQueue': {
      isBehindHints: true,
      leadsTo: ({ handler_name }) => routeOfName(handler_name),
      serve: (call) => poll(parts, call, call.body.queue_name),
    },
  } satisfies RouteOperations;
  const own = {
    'queues.openPolls': {
      isRead: true,
      serve: ({ request, tenant }: Call<undefined>) =>
        release([replyWith(request, JSON.stringify(queues.openPolls(tenant)), [])]),
    },
  } satisfies Operations;
  return { ...routes, ...own };
}

function poll(
  { queues, now, release }: QueueParts,
  { request, tenant, body, maySeeSecrets }: Call<PollTasks>,
  queue: string,
): void {
  const { worker_id: worker, handler_name: handler } = body;
  queues.seen({ tenant, worker, handler, queue, version: body.version ?? null });
  queues.poll({
    request,
    tenant,
    worker,
    handlers: [handler],
    queues: [queue],
    limit: body.limit ?? POLL_LIMIT_DEFAULT,
    maySeeSecrets,
    until: now() + (body.wait_ms ?? 0),
    answer: (claimed) => release([replyWith(request, arrayOf(claimed), claimed.map(claimOf))]),
  });
}
