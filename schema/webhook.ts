/** Wire shapes and routes of outbound webhooks, their outbox and delivery log (docs/webhooks.md). */

import { type Static, Type } from '@sinclair/typebox';
import { changeOf, UNCHANGED } from './change-shapes.js';
import {
  AnyJson,
  BodyTenant,
  Cursor,
  IdParams,
  JsonObjectSchema,
  KEY_LENGTH_MAX,
  Limit,
  named,
  noted,
  Offset,
  oneOfWords,
  optional,
  orNull,
  secretText,
  Timestamp,
  Uuid,
} from './common.js';
import {
  actById,
  byId,
  get,
  getById,
  listOf,
  type RouteRow,
  read,
  refusals,
  remove,
} from './route-row.js';
import { strictNamed } from './strict.js';

export const WEBHOOK_EVENTS = ['instance.completed', 'instance.failed'] as const;
const OUTBOX_STATUSES = ['pending', 'in_flight', 'parked'] as const;
export const DELIVERY_ERROR_CLASSES = [
  'dns',
  'connect',
  'tls',
  'timeout',
  'redirect_rejected',
  'http_status',
  'signature_configuration',
  'response_too_large',
  'internal_policy',
  'serialization',
  'aborted',
  'other',
] as const;
export const ERROR_EXCERPT_MAX = 512;
/** Stored with each webhook, and indexed. */
const SUBSCRIPTION_URL_LENGTH_MAX = 2_000;
/** A longer list would only repeat events. */
const SUBSCRIPTION_EVENTS_MAX = 32;

const EventType = oneOfWords(WEBHOOK_EVENTS);
const ErrorClass = oneOfWords(DELIVERY_ERROR_CLASSES);

/**
 * The sent body; `timestamp` is the end of the instance. Webhooks queued by an older version have only the required
 * members.
 */
export const WebhookBody = named('WebhookBody', {
  event_type: EventType,
  instance_id: Uuid,
  timestamp: Timestamp,
  tenant_id: Type.Optional(Type.String()),
  namespace: Type.Optional(Type.String()),
  sequence_id: Type.Optional(Uuid),
  sequence_name: Type.Optional(orNull(Type.String())),
  sequence_version: Type.Optional(orNull(Type.Integer())),
  metadata: Type.Optional(JsonObjectSchema),
  failure: Type.Optional(noted(orNull(JsonObjectSchema), 'The failure; null if it did not fail.')),
  data: AnyJson,
});
export type WebhookBody = Static<typeof WebhookBody>;

const OutboxQuery = Type.Object({ limit: Limit(100, 1_000) });

export const OutboxEntry = named('OutboxEntry', {
  id: Uuid,
  url: Type.String(),
  event_type: EventType,
  instance_id: Type.Optional(Uuid),
  payload: WebhookBody,
  attempts: Type.Integer(),
  last_error: Type.Optional(Type.String()),
  created_at: Timestamp,
  delivery_id: Type.Optional(Uuid),
  status: oneOfWords(OUTBOX_STATUSES),
  next_attempt_at: Type.Optional(Timestamp),
  claimed_at: Type.Optional(Timestamp),
  subscription_id: Type.Optional(Uuid),
});
export type OutboxEntry = Static<typeof OutboxEntry>;

export const Redelivered = named('Redelivered', {
  redelivered: Type.Literal(true),
  delivery_id: Uuid,
});

export const RedeliverPreview = named('RedeliverPreview', {
  url: Type.String(),
  event_type: EventType,
  payload_bytes: Type.Integer(),
  will_be_signed: Type.Boolean(),
  previous_delivery_id: Type.Optional(Uuid),
  previous_attempts: Type.Integer(),
  last_error: orNull(Type.String()),
});

const DeliveriesQuery = Type.Object({
  url: Type.Optional(Type.String()),
  event_type: Type.Optional(EventType),
  delivered: Type.Optional(Type.Boolean()),
  error_class: Type.Optional(ErrorClass),
  limit: Limit(100, 1_000),
  cursor: Cursor,
});

/** One delivery: all attempts to send one event to one address. */
export const DeliverySummary = named('DeliverySummary', {
  delivery_id: Uuid,
  url: Type.String(),
  event_type: EventType,
  instance_id: Type.Optional(Uuid),
  attempts: Type.Integer(),
  delivered: Type.Boolean(),
  first_attempted_at: Timestamp,
  last_attempted_at: Timestamp,
  status_code: optional(Type.Integer()),
  error_class: optional(ErrorClass),
  subscription_id: optional(Uuid),
});
export type DeliverySummary = Static<typeof DeliverySummary>;

export const DeliveryAttempt = named('DeliveryAttempt', {
  id: Uuid,
  delivery_id: Uuid,
  url: Type.String(),
  event_type: EventType,
  instance_id: Type.Optional(Uuid),
  attempt_number: Type.Integer({ description: 'Counts from 1.' }),
  attempted_at: Timestamp,
  duration_ms: Type.Integer(),
  success: Type.Boolean(),
  status_code: Type.Optional(Type.Integer()),
  error_class: Type.Optional(ErrorClass),
  error_excerpt: Type.Optional(Type.String()),
  signed: Type.Boolean(),
  subscription_id: Type.Optional(Uuid),
});
export type DeliveryAttempt = Static<typeof DeliveryAttempt>;

const DeliveryParams = Type.Object({ delivery_id: Uuid });

const SubscriptionUrl = noted(
  Type.String({ pattern: '\\S', maxLength: SUBSCRIPTION_URL_LENGTH_MAX }),
  'http or https, without credentials; a public address unless the deployment allows others.',
);
const SubscriptionEvents = Type.Array(EventType, {
  minItems: 1,
  maxItems: SUBSCRIPTION_EVENTS_MAX,
});
const SubscriptionSecret = secretText({
  pattern: '\\S',
  maxLength: KEY_LENGTH_MAX,
  description: "Key of the webhooks' signatures.",
});

export const CreateSubscription = strictNamed('CreateSubscription', {
  tenant_id: optional(BodyTenant),
  url: SubscriptionUrl,
  events: optional(noted(SubscriptionEvents, 'Default: all events.')),
  secret: optional(noted(SubscriptionSecret, 'Default: generated.')),
});
export type CreateSubscription = Static<typeof CreateSubscription>;

export const WebhookSubscription = named('WebhookSubscription', {
  id: Uuid,
  tenant_id: Type.String(),
  url: Type.String(),
  events: Type.Array(EventType),
  created_at: Timestamp,
  updated_at: Timestamp,
});
export type WebhookSubscription = Static<typeof WebhookSubscription>;

export const UpdateSubscription = changeOf('UpdateSubscription', WebhookSubscription, {
  ...UNCHANGED,
  url: Type.Optional(SubscriptionUrl),
  events: optional(SubscriptionEvents),
  secret: Type.Optional(SubscriptionSecret),
});
export type UpdateSubscription = Static<typeof UpdateSubscription>;

export const SubscriptionCreated = named('SubscriptionCreated', {
  ...WebhookSubscription.properties,
  secret: Type.String({ description: 'Shown only in this response.' }),
});
export type SubscriptionCreated = Static<typeof SubscriptionCreated>;

const SubscriptionListQuery = Type.Object({
  tenant_id: Type.Optional(Type.String()),
  offset: Offset,
  limit: Limit(100, 1_000),
});

const SubscriptionDeliveriesQuery = Type.Omit(DeliveriesQuery, ['url']);

export const WEBHOOK_ROWS = {
  'webhooks.subscribe': {
    method: 'POST',
    path: '/webhooks',
    summary: 'Subscribe to finished instances of the tenant. Only this response has the secret.',
    owner: 'first-shard',
    body: CreateSubscription,
    replies: { 201: SubscriptionCreated, ...refusals(400, 409, 413) },
  },
  'webhooks.subscriptions': get(
    '/webhooks',
    'List the webhook subscriptions of the tenant, oldest first.',
    listOf(WebhookSubscription),
    { query: SubscriptionListQuery },
  ),
  'webhooks.subscription': getById('/webhooks/{id}', 'Get a subscription.', WebhookSubscription),
  'webhooks.update': {
    method: 'PATCH',
    path: '/webhooks/{id}',
    summary: 'Change a webhook subscription. A new secret signs from the next attempt on.',
    owner: 'first-shard',
    params: IdParams,
    body: UpdateSubscription,
    repeats: 'the same fields get the same values',
    replies: { 200: WebhookSubscription, ...refusals(400, 404, 409, 413) },
  },
  'webhooks.unsubscribe': remove(
    '/webhooks/{id}',
    'Delete a webhook subscription. Undelivered webhooks are dropped.',
    { owner: 'first-shard', params: IdParams },
  ),
  'webhooks.subscriptionDeliveries': getById(
    '/webhooks/{id}/deliveries',
    'List deliveries to a webhook subscription, newest first.',
    listOf(DeliverySummary),
    { query: SubscriptionDeliveriesQuery },
  ),
  'webhooks.outbox': get(
    '/webhooks/outbox',
    'List undelivered webhooks, oldest first.',
    listOf(OutboxEntry),
    { query: OutboxQuery, isTenantless: true },
  ),
  'webhooks.redeliver': {
    ...actById,
    path: '/webhooks/outbox/{id}/redeliver',
    summary: 'Deliver a webhook now; the response reports success or failure.',
    isTenantless: true,
    replies: { 200: Redelivered, ...refusals(400, 404, 409, 502) },
  },
  'webhooks.redeliverPreview': getById(
    '/webhooks/outbox/{id}/redeliver-preview',
    'Get the body that a redelivery would send.',
    RedeliverPreview,
    { isTenantless: true },
  ),
  'webhooks.discard': remove('/webhooks/outbox/{id}', 'Drop an undelivered webhook.', {
    ...byId,
    isTenantless: true,
  }),
  'webhooks.deliveries': get(
    '/webhooks/deliveries',
    'List deliveries, newest first.',
    listOf(DeliverySummary),
    { query: DeliveriesQuery, isTenantless: true },
  ),
  'webhooks.delivery': {
    ...read,
    path: '/webhooks/deliveries/{delivery_id}',
    summary: 'List the attempts of one delivery, oldest first.',
    params: DeliveryParams,
    isTenantless: true,
    replies: { 200: listOf(DeliveryAttempt), ...refusals(400, 404) },
  },
} as const satisfies Record<string, RouteRow>;
