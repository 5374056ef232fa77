/** Worker endpoints: delivered to on every shard, and changed on the first shard. */

import type { Keyring } from '../../src/core/sealing/keys.js';
import type { PushSender } from '../../src/handlers/push-sender.js';
import type { WebhookSender } from '../../src/handlers/webhook-sender.js';
import type { QueueRoom } from '../queue/room.js';
import { type Kernel, onFirstShard } from '../runtime/kernel.js';
import type { Call, Operations } from '../runtime/operation.js';
import { Endpoints } from './endpoints.js';
import type { PushLoads } from './loads.js';
import { Served } from './served.js';

export interface PushNeeds {
  readonly pushSender: PushSender;
  readonly webhookSender: Pick<WebhookSender, 'problemOf'>;
  readonly keyring?: Keyring | undefined;
}

export function openPush(
  kernel: Kernel<PushLoads>,
  { pushSender: sender, webhookSender, keyring }: PushNeeds,
  { exchanges }: Pick<QueueRoom, 'exchanges'>,
) {
  const served = new Served({ ...kernel, sender, keyring, exchanges });
  const endpoints = () => new Endpoints({ ...kernel, sender: webhookSender, keyring });
  return {
    parts: [served, onFirstShard(kernel, endpoints)],
    operations: pushOperations(kernel, served),
  };
}

export function pushOperations({ release }: Pick<Kernel, 'release'>, served: Served) {
  return {
    'workerEndpoints.statuses': {
      isRead: true,
      serve: ({ request, tenant }: Call<undefined>) => {
        const body = JSON.stringify(served.statuses(tenant));
        release([{ kind: 'reply', request, status: 200, body }]);
      },
    },
  } satisfies Operations;
}
