/** Webhooks and their recipients; on the first shard also the owner of the subscriptions. */

import type { Keyring } from '../../src/core/sealing/keys.js';
import type { WebhookSender } from '../../src/handlers/webhook-sender.js';
import { type Kernel, onFirstShard } from '../runtime/kernel.js';
import type { WebhookLoads } from './loads.js';
import { Subscribers } from './subscribers.js';
import { Subscriptions } from './subscriptions.js';
import { Webhooks } from './webhooks.js';

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
    gone: (subscriptions) => webhooks.giveUp(subscriptions),
  });
  const webhooks = new Webhooks({ ...kernel, sender, subscribers, keyring });
  const makeOwner = () => new Subscriptions({ ...kernel, subscribers, sender, keyring });
  return { subscribers, parts: [subscribers, webhooks, onFirstShard(kernel, makeOwner)] };
}
