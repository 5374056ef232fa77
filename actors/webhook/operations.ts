/** The operations on webhooks that wait to be delivered. */

import type { RouteOperations } from '../runtime/operation.js';
import type { Webhooks } from './webhooks.js';

export interface WebhookParts {
  readonly webhooks: Webhooks;
}

export const WEBHOOK_OPERATIONS = {
  'webhooks.redeliver': {
    serve: ({ webhooks }, { request, target }) => webhooks.redeliver(target, request),
  },
  'webhooks.discard': {
    serve: ({ webhooks }, { request, target }) => webhooks.discard(target, request),
  },
} satisfies Partial<RouteOperations<WebhookParts>>;
