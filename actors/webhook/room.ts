/** Webhooks and their recipients; on the first shard also the owner of the subscriptions. */

import type { Keyring } from '../../src/core/sealing/keys.js';
import type { WebhookSender } from '../../src/handlers/webhook-sender.js';
import { type Kernel, onFirstShard } from '../runtime/kernel.js';
import { pruning } from '../runtime/pruning.js';
import type { WebhookLoads } from './loads.js';
import { Subscribers } from './subscribers.js';
import { Subscriptions } from './subscriptions.js';
import { DELIVERY } from './tables.js';
import { Webhooks } from './webhooks.js';

const LOG_KEPT_MS = 7 * 24 * 60 * 60 * 1_000;

export interface WebhookNeeds {
  readonly webhookSender: WebhookSender;
  readonly keyring?: Keyring | undefined;
}

export function openWebhooks(
  kernel: Kernel<WebhookLoads>,
  { webhookSender: sender, keyring }: WebhookNeeds,
) {
  const subscribers: Subscribers = new Subscribers({
    ...kernel,
    urls: kernel.settings.webhookUrls,
    deleted: (subscriptions) => webhooks.giveUp(subscriptions),
  });
  const webhooks = new Webhooks({ ...kernel, sender, subscribers, keyring });
  const oldest = () => kernel.loader.oldestDelivery();
  const ofFirstShard = onFirstShard(kernel, () => ({
    parts: [
      new Subscriptions({ ...kernel, subscribers, sender, keyring }),
      pruning(kernel, { name: 'delivery log', by: DELIVERY.prune, keptMs: LOG_KEPT_MS, oldest }),
    ],
  }));
  return { subscribers, parts: [subscribers, webhooks, ofFirstShard] };
}
