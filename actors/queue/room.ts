/** Tasks for workers: queues, and exchanges of results and polls. */

import type { CredentialRoom } from '../credential/room.js';
import { tellResult } from '../instance/operations.js';
import type { InstanceRoom } from '../instance/room.js';
import type { Kernel } from '../runtime/kernel.js';
import type { ReadyHint } from '../runtime/protocol.js';
import type { Room } from '../runtime/room.js';
import { Exchanges } from './exchanges.js';
import type { QueueLoads } from './loads.js';
import { queueOperations } from './operations.js';
import { Queues } from './queues.js';

export interface QueueNeeds
  extends Pick<InstanceRoom, 'instances' | 'tasks'>,
    Pick<CredentialRoom, 'secrets'> {}

export function openQueues(kernel: Kernel<QueueLoads>, { secrets, instances, tasks }: QueueNeeds) {
  const { release, settings, timers, now } = kernel;
  const queues: Queues = new Queues({
    ...kernel,
    secrets,
    expireAt: (request, at) => timers.push(at, { kind: 'expire', request }),
  });
  const exchanges = new Exchanges({
    ...kernel,
    maxBodyBytes: settings.maxBodyBytes,
    queues,
    tell: (request, tenant, worker, result) =>
      tellResult({ tasks, instances, release }, request, tenant, worker, result),
  });
  return {
    parts: [queues, exchanges],
    operations: queueOperations({ queues, exchanges, release, now }),
    timers: { expire: ({ request }) => queues.expire(request) },
    taskDecided: (task: ReadyHint) => queues.decided(task),
    requestAborted: (request: number) => {
      exchanges.abort(request);
      queues.abort(request);
    },
  } satisfies Room;
}
