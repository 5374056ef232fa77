/** The operations on webhooks that wait to be delivered, and on the subscriptions of tenants. */

import { ofFirstShard, type RouteOperations } from '../runtime/operation.js';
import type { Subscriptions } from './subscriptions.js';
import type { Webhooks } from './webhooks.js';

export interface WebhookParts {
  readonly webhooks: Webhooks;
  readonly subscriptions: Subscriptions | undefined;
}

export const WEBHOOK_OPERATIONS = {
  'webhooks.redeliver': {
    serve: ({ webhooks }, { request, target }) => webhooks.redeliver(target, request),
  },
  'webhooks.subscribe': {
    serve: ({ subscriptions }, call) => ofFirstShard(subscriptions).create(call),
  },
  'webhooks.update': {
    serve: ({ subscriptions }, call) => ofFirstShard(subscriptions).update(call),
  },
  'webhooks.unsubscribe': {
    serve: ({ subscriptions }, call) => ofFirstShard(subscriptions).delete(call),
  },
  'webhooks.discard': {
    serve: ({ webhooks }, { request, target }) => webhooks.discard(target, request),
  },
} satisfies Partial<RouteOperations<WebhookParts>>;
