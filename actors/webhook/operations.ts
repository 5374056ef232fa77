/** The operations on pending webhooks and on subscriptions. */

import type { RouteOperations } from '../runtime/operation.js';
import type { Subscriptions } from './subscriptions.js';
import type { Webhooks } from './webhooks.js';

export function webhookOperations(webhooks: Webhooks) {
  return {
    'webhooks.redeliver': {
      serve: ({ request, target }) => webhooks.redeliver(target, request),
    },
    'webhooks.discard': {
      serve: ({ request, target }) => webhooks.discard(target, request),
    },
  } satisfies RouteOperations;
}

export function subscriptionOperations(subscriptions: Subscriptions) {
  return {
    'webhooks.subscribe': { serve: (call) => subscriptions.create(call) },
    'webhooks.update': { serve: (call) => subscriptions.update(call) },
    'webhooks.unsubscribe': { serve: (call) => subscriptions.delete(call) },
  } satisfies RouteOperations;
}
