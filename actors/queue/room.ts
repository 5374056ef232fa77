/** Tasks for workers: queues, and exchanges. */

import { POLL_LIMIT_DEFAULT, type PollTasks } from '../../schema/worker.js';
import { routeOfName } from '../../src/base/ids.js';
import type { CredentialRoom } from '../credential/room.js';
import { sendResult } from '../instance/operations.js';
import type { InstanceRoom } from '../instance/room.js';
import type { Kernel } from '../runtime/kernel.js';
import type { Call, Operations, RouteOperations } from '../runtime/operation.js';
import { Exchanges, replyWith } from './exchanges.js';
import type { QueueLoads } from './loads.js';
import { arrayOf, claimOf } from './poll.js';
import { Queues } from './queues.js';

type QueueNeeds = Pick<InstanceRoom, 'instances' | 'tasks'> & Pick<CredentialRoom, 'secrets'>;

export function openQueues(kernel: Kernel<QueueLoads>, { secrets, instances, tasks }: QueueNeeds) {
  const { release, now } = kernel;
  const queues = new Queues({ ...kernel, secrets });
  const exchanges = new Exchanges({
    ...kernel,
    queues,
    tell: (request, tenant, worker, result) =>
      sendResult({ tasks, instances, release }, request, tenant, worker, result),
  });
  return {
    exchanges,
    parts: [queues, exchanges],
    operations: queueOperations({ queues, exchanges, release, now }),
  };
}

export type QueueRoom = ReturnType<typeof openQueues>;

interface QueueParts extends Pick<Kernel, 'now' | 'release'> {
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
  queues.poll({
    request,
    tenant,
    worker,
    version: body.version ?? null,
    handlers: [handler],
    queues: [queue],
    limit: body.limit ?? POLL_LIMIT_DEFAULT,
    maySeeSecrets,
    until: now() + (body.wait_ms ?? 0),
    answer: (claimed) => release([replyWith(request, arrayOf(claimed), claimed.map(claimOf))]),
  });
}
