/** Tables of webhooks: the outbox, subscriptions, and the log of deliveries. Pure. */

import { clear, drop, insert, mutations, set } from '../../src/db/mutation.js';
import { prune } from '../../src/db/statements.js';
import { table } from '../../src/db/table.js';

export const WEBHOOK_OUTBOX = table(
  'webhook_outbox',
  ['id'],
  {
    id: 'uuid',
    url: 'text',
    event_type: 'text',
    instance_id: 'uuid',
    tenant_id: 'text',
    body: 'text',
    attempts: 'integer',
    last_error: 'text?',
    delivery_id: 'uuid?',
    status: 'text',
    next_attempt_at: 'timestamptz?',
    claimed_at: 'timestamptz?',
    created_at: 'timestamptz',
    subscription_id: 'uuid?',
  },
  { follows: 'of its instances and subscriptions' },
);

export const WEBHOOK = mutations('webhook', {
  clear: clear(WEBHOOK_OUTBOX),
  set: set(WEBHOOK_OUTBOX, [
    'attempts',
    'last_error',
    'delivery_id',
    'status',
    'next_attempt_at',
    'claimed_at',
  ]),
  // For a deleted subscription; shards drop its pending webhooks.
  dropParked: drop(WEBHOOK_OUTBOX, 'subscription_id', { status: "'parked'" }),
});

export const WEBHOOK_SUBSCRIPTIONS = table('webhook_subscriptions', ['id'], {
  id: 'uuid',
  tenant_id: 'text',
  url: 'text',
  events: 'json',
  secret: 'json',
  created_at: 'timestamptz',
  updated_at: 'timestamptz',
});

export const SUBSCRIPTION = mutations('subscription', {
  clear: clear(WEBHOOK_SUBSCRIPTIONS),
  set: set(WEBHOOK_SUBSCRIPTIONS, ['url', 'events', 'secret', 'updated_at']),
});

export const WEBHOOK_DELIVERIES = table(
  'webhook_deliveries',
  ['id'],
  {
    id: 'uuid',
    delivery_id: 'uuid',
    url: 'text',
    event_type: 'text',
    instance_id: 'uuid',
    attempt_number: 'integer',
    attempted_at: 'timestamptz',
    duration_ms: 'integer',
    success: 'boolean',
    status_code: 'integer?',
    error_class: 'text?',
    error_excerpt: 'text?',
    signed: 'boolean',
    subscription_id: 'uuid?',
  },
  {
    // Rows without an instance or subscription have no tenant, and are pruned by age.
    ofTenant:
      'instance_id in (select id from instances where tenant_id = $T) or ' +
      'subscription_id in (select id from webhook_subscriptions where tenant_id = $T)',
  },
);

export const DELIVERY = mutations('delivery', {
  insert: insert(WEBHOOK_DELIVERIES),
  prune: prune(WEBHOOK_DELIVERIES, ['attempted_at', 'id']),
});

export const WEBHOOK_STORE = [WEBHOOK, SUBSCRIPTION, DELIVERY];
