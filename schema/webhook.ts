/** Wire shapes and routes of outbound webhooks, their outbox and delivery log (docs/webhooks.md). */

import { changeOf, UNCHANGED } from './change-shapes.js';
import * as t from './common.js';
import {
  byId,
  created,
  did,
  firstShard,
  front,
  get,
  getById,
  ok,
  type RouteRow,
} from './route-row.js';
import { words } from './states.js';

export const WEBHOOK_EVENTS = ['instance.completed', 'instance.failed'] as const;
const OUTBOX_STATUSES = ['pending', 'in_flight', 'parked'] as const;
export const DELIVERY_ERROR_CLASSES = words(
  'dns connect tls timeout redirect_rejected http_status signature_configuration',
  'response_too_large internal_policy serialization aborted other',
);
export const ERROR_EXCERPT_MAX = 512;
/** Stored with each webhook, and indexed. */
const SUBSCRIPTION_URL_LENGTH_MAX = 2_000;
/** A longer list would only repeat events. */
const SUBSCRIPTION_EVENTS_MAX = 32;

const EventType = t.oneOf(WEBHOOK_EVENTS);
const ErrorClass = t.oneOf(DELIVERY_ERROR_CLASSES);

/**
 * The sent body; `timestamp` is the end of the instance. Webhooks queued by an older version have only the required
 * members.
 */
export const WebhookBody = t.named('WebhookBody', {
  event_type: EventType,
  instance_id: t.Uuid,
  timestamp: t.Timestamp,
  tenant_id: t.optional(t.text()),
  namespace: t.optional(t.text()),
  sequence_id: t.optional(t.Uuid),
  sequence_name: t.optional(t.nullable(t.text())),
  sequence_version: t.optional(t.nullable(t.integer())),
  metadata: t.optional(t.JsonObjectSchema),
  failure: t.optional(t.nullable(t.JsonObjectSchema, 'The failure; null after a completion.')),
  data: t.AnyJson,
});
export type WebhookBody = t.Static<typeof WebhookBody>;

export const OutboxEntry = t.named('OutboxEntry', {
  id: t.Uuid,
  url: t.text(),
  event_type: EventType,
  instance_id: t.optional(t.Uuid),
  payload: WebhookBody,
  attempts: t.integer(),
  last_error: t.optional(t.text()),
  created_at: t.Timestamp,
  delivery_id: t.optional(t.Uuid),
  status: t.oneOf(OUTBOX_STATUSES),
  next_attempt_at: t.optional(t.Timestamp),
  claimed_at: t.optional(t.Timestamp),
  subscription_id: t.optional(t.Uuid),
});
export type OutboxEntry = t.Static<typeof OutboxEntry>;

export const Redelivered = t.named('Redelivered', {
  redelivered: t.literal(true),
  delivery_id: t.Uuid,
});

export const RedeliverPreview = t.named('RedeliverPreview', {
  url: t.text(),
  event_type: EventType,
  payload_bytes: t.integer(),
  will_be_signed: t.boolean(),
  previous_delivery_id: t.optional(t.Uuid),
  previous_attempts: t.integer(),
  last_error: t.nullable(t.text()),
});

const DELIVERY_FILTERS = {
  event_type: t.optional(EventType),
  delivered: t.optional(t.boolean()),
  error_class: t.optional(ErrorClass),
  limit: t.Limit(100, 1_000),
  cursor: t.Cursor,
};
const DeliveriesQuery = t.object({ url: t.optional(t.text()), ...DELIVERY_FILTERS });

/** One delivery: all attempts to send one event to one address. */
export const DeliverySummary = t.named('DeliverySummary', {
  delivery_id: t.Uuid,
  url: t.text(),
  event_type: EventType,
  instance_id: t.optional(t.Uuid),
  attempts: t.integer(),
  delivered: t.boolean(),
  first_attempted_at: t.Timestamp,
  last_attempted_at: t.Timestamp,
  status_code: t.nullish(t.integer()),
  error_class: t.nullish(ErrorClass),
  subscription_id: t.nullish(t.Uuid),
});
export type DeliverySummary = t.Static<typeof DeliverySummary>;

export const DeliveryAttempt = t.named('DeliveryAttempt', {
  id: t.Uuid,
  delivery_id: t.Uuid,
  url: t.text(),
  event_type: EventType,
  instance_id: t.optional(t.Uuid),
  attempt_number: t.integer('Number of the attempt, from 1.'),
  attempted_at: t.Timestamp,
  duration_ms: t.integer(),
  success: t.boolean(),
  status_code: t.optional(t.integer()),
  error_class: t.optional(ErrorClass),
  error_excerpt: t.optional(t.text()),
  signed: t.boolean(),
  subscription_id: t.optional(t.Uuid),
});
export type DeliveryAttempt = t.Static<typeof DeliveryAttempt>;

const DeliveryParams = t.object({ delivery_id: t.Uuid });

const SubscriptionUrl = t.noted(
  t.text({ pattern: '\\S', maxLength: SUBSCRIPTION_URL_LENGTH_MAX }),
  'http or https, without credentials; a public address unless the deployment allows others.',
);
const SubscriptionEvents = t.list(EventType, { minItems: 1, maxItems: SUBSCRIPTION_EVENTS_MAX });
const SubscriptionSecret = t.secretText({
  pattern: '\\S',
  maxLength: t.KEY_LENGTH_MAX,
  description: "Key of the webhooks' signatures.",
});

export const CreateSubscription = t.strictNamed('CreateSubscription', {
  tenant_id: t.nullish(t.BodyTenant),
  url: SubscriptionUrl,
  events: t.nullish(SubscriptionEvents, 'Default: all events.'),
  secret: t.nullish(SubscriptionSecret, 'Default: generated.'),
});
export type CreateSubscription = t.Static<typeof CreateSubscription>;

export const WebhookSubscription = t.named('WebhookSubscription', {
  id: t.Uuid,
  tenant_id: t.text(),
  url: t.text(),
  events: t.list(EventType),
  created_at: t.Timestamp,
  updated_at: t.Timestamp,
});
export type WebhookSubscription = t.Static<typeof WebhookSubscription>;

export const UpdateSubscription = changeOf('UpdateSubscription', WebhookSubscription, {
  ...UNCHANGED,
  url: t.optional(SubscriptionUrl),
  events: t.nullish(SubscriptionEvents),
  secret: t.optional(SubscriptionSecret),
});
export type UpdateSubscription = t.Static<typeof UpdateSubscription>;

export const SubscriptionCreated = t.named('SubscriptionCreated', {
  ...WebhookSubscription.properties,
  secret: t.text('Shown only in this response.'),
});
export type SubscriptionCreated = t.Static<typeof SubscriptionCreated>;

const SubscriptionListQuery = t.object({
  tenant_id: t.optional(t.text()),
  offset: t.Offset,
  limit: t.Limit(100, 1_000),
});

export const WEBHOOK_ROWS = {
  'webhooks.subscribe': firstShard.post('/webhooks', {
    summary: 'Subscribe to finished instances of the tenant. Only this response has the secret.',
    body: CreateSubscription,
    replies: created(SubscriptionCreated, 409, 413),
    action: did('webhook', 'created', { shows: ['events'] }),
  }),
  'webhooks.subscriptions': get(
    '/webhooks',
    'List the webhook subscriptions of the tenant, oldest first.',
    t.list(WebhookSubscription),
    { query: SubscriptionListQuery },
  ),
  'webhooks.subscription': getById('/webhooks/{id}', 'Get a subscription.', WebhookSubscription),
  'webhooks.update': firstShard.patch('/webhooks/{id}', {
    summary: 'Change a webhook subscription. A new secret signs from the next attempt on.',
    body: UpdateSubscription,
    repeats: 'the same fields get the same values',
    replies: ok(WebhookSubscription, 404, 409, 413),
    action: did('webhook', 'changed', { shows: ['events'], isChange: true }),
  }),
  'webhooks.unsubscribe': firstShard.remove(
    '/webhooks/{id}',
    'Delete a webhook subscription. Undelivered webhooks are dropped.',
    {
      action: did('webhook', 'deleted'),
    },
  ),
  'webhooks.subscriptionDeliveries': getById(
    '/webhooks/{id}/deliveries',
    'List deliveries to a webhook subscription, newest first.',
    t.list(DeliverySummary),
    { query: t.object(DELIVERY_FILTERS) },
  ),
  'webhooks.outbox': get(
    '/webhooks/outbox',
    'List undelivered webhooks, oldest first.',
    t.list(OutboxEntry),
    { query: t.object({ limit: t.Limit(100, 1_000) }), isTenantless: true },
  ),
  'webhooks.redeliver': byId.post('/webhooks/outbox/{id}/redeliver', {
    summary: 'Deliver a webhook now; the response reports success or failure.',
    isTenantless: true,
    replies: ok(Redelivered, 404, 409, 502),
    action: did('webhook_delivery', 'redelivered'),
  }),
  'webhooks.redeliverPreview': getById(
    '/webhooks/outbox/{id}/redeliver-preview',
    'Get the body that a redelivery would send.',
    RedeliverPreview,
    { isTenantless: true },
  ),
  'webhooks.discard': byId.remove('/webhooks/outbox/{id}', 'Drop an undelivered webhook.', {
    isTenantless: true,
    action: did('webhook_delivery', 'dropped'),
  }),
  'webhooks.deliveries': get(
    '/webhooks/deliveries',
    'List deliveries, newest first.',
    t.list(DeliverySummary),
    { query: DeliveriesQuery, isTenantless: true },
  ),
  'webhooks.delivery': front.get('/webhooks/deliveries/{delivery_id}', {
    summary: 'List the attempts of one delivery, oldest first.',
    params: DeliveryParams,
    isTenantless: true,
    replies: ok(t.list(DeliveryAttempt), 404),
  }),
} as const satisfies Record<string, RouteRow>;
