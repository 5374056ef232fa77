/** The operations on queues: polls, which go to the shard of their handler. */

import { POLL_LIMIT_DEFAULT, type PollTasks } from '../../schema/worker.js';
import { routeOfName } from '../../src/base/ids.js';
import type { UnixMs } from '../../src/base/time.js';
import type { Call, EngineOperations, RouteOperations } from '../runtime/operation.js';
import type { Effect } from '../runtime/turn.js';
import { type Exchanges, replyWith } from './exchanges.js';
import { arrayOf, claimOf } from './poll.js';
import type { Queues } from './queues.js';

export interface QueueParts {
  readonly queues: Queues;
  readonly exchanges: Exchanges;
  readonly release: (effects: readonly Effect[]) => void;
  readonly now: () => UnixMs;
}

export const QUEUE_OPERATIONS = {
  'workers.poll': {
    isBehindHints: true,
    leadsTo: ({ handler_name }) => routeOfName(handler_name),
    serve: (parts, call) => poll(parts, call, ''),
  },
  'workers.exchange': {
    isBehindHints: true,
    leadsTo: 'itself',
    serve: ({ exchanges }, call) => exchanges.serve(call),
  },
  'workers.pollQueue': {
    isBehindHints: true,
    leadsTo: ({ handler_name }) => routeOfName(handler_name),
    serve: (parts, call) => poll(parts, call, call.body.queue_name),
  },
} satisfies Partial<RouteOperations<QueueParts>>;

export const QUEUE_ENGINE_OPERATIONS = {
  'queues.openPolls': {
    isRead: true,
    serve: ({ queues, release }, { request, tenant }: Call<undefined>) =>
      release([replyWith(request, JSON.stringify(queues.openPolls(tenant)), [])]),
  },
} satisfies EngineOperations<QueueParts>;

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
