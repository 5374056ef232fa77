/** Tasks for workers: their queues, and the exchanges of reports and polls. */

import type { Secrets } from '../credential/secrets.js';
import { tellResult } from '../instance/operations.js';
import type { InstanceRoom } from '../instance/room.js';
import type { Kernel } from '../runtime/kernel.js';
import { Exchanges } from './exchanges.js';
import { Queues, type QueuesDeps } from './queues.js';

export interface QueueNeeds
  extends Pick<InstanceRoom, 'instances' | 'tasks'>,
    Pick<QueuesDeps, 'expireAt'> {
  readonly secrets: Secrets;
}

export function openQueues(kernel: Kernel, needs: QueueNeeds) {
  const { secrets, expireAt, instances, tasks } = needs;
  const { release, settings } = kernel;
  const queues: Queues = new Queues({ ...kernel, secrets, expireAt });
  const exchanges = new Exchanges({
    ...kernel,
    maxBodyBytes: settings.maxBodyBytes,
    queues,
    tell: (request, tenant, worker, result) =>
      tellResult({ tasks, instances, release }, request, tenant, worker, result),
  });
  return { queues, exchanges };
}
