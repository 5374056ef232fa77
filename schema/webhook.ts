/** Wire shapes and routes of outbound webhooks, their outbox and their delivery log (docs/webhooks.md). */

import { type Static, Type } from '@sinclair/typebox';
import { AnyJson, Limit, named, oneOfWords, optional, orNull, Timestamp, Uuid } from './common.js';
import { actById, byId, listOf, type RouteRow, read, readById, refusals } from './route-row.js';

export const WEBHOOK_EVENTS = ['instance.completed', 'instance.failed'] as const;
export const OUTBOX_STATUSES = ['pending', 'in_flight', 'parked'] as const;
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

const EventType = oneOfWords(WEBHOOK_EVENTS);
const ErrorClass = oneOfWords(DELIVERY_ERROR_CLASSES);

/** What is sent to every configured address. */
export const WebhookBody = named('WebhookBody', {
  event_type: EventType,
  instance_id: Uuid,
  timestamp: Timestamp,
  data: AnyJson,
});
export type WebhookBody = Static<typeof WebhookBody>;

export const OutboxQuery = Type.Object({ limit: Limit(100, 1_000) });
export type OutboxQuery = Static<typeof OutboxQuery>;

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
});
export type OutboxEntry = Static<typeof OutboxEntry>;

export const Redelivered = named('Redelivered', {
  redelivered: Type.Literal(true),
  delivery_id: Uuid,
});
export type Redelivered = Static<typeof Redelivered>;

export const RedeliverPreview = named('RedeliverPreview', {
  url: Type.String(),
  event_type: EventType,
  payload_bytes: Type.Integer(),
  will_be_signed: Type.Boolean(),
  previous_delivery_id: Type.Optional(Uuid),
  previous_attempts: Type.Integer(),
  last_error: orNull(Type.String()),
});
export type RedeliverPreview = Static<typeof RedeliverPreview>;

export const DeliveriesQuery = Type.Object({
  url: Type.Optional(Type.String()),
  event_type: Type.Optional(EventType),
  delivered: Type.Optional(Type.Boolean()),
  error_class: Type.Optional(ErrorClass),
  limit: Limit(100, 1_000),
});
export type DeliveriesQuery = Static<typeof DeliveriesQuery>;

/** One delivery: all attempts to bring one event to one address. */
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
});
export type DeliveryAttempt = Static<typeof DeliveryAttempt>;

export const DeliveryParams = Type.Object({ delivery_id: Uuid });
export type DeliveryParams = Static<typeof DeliveryParams>;

// ---------------------------------------------------------------- routes

export const WEBHOOK_ROWS = {
  'webhooks.outbox': {
    ...read,
    path: '/webhooks/outbox',
    summary: 'List webhooks that are not delivered yet, oldest first.',
    query: OutboxQuery,
    isTenantless: true,
    replies: { 200: listOf(OutboxEntry), ...refusals(400) },
  },
  'webhooks.redeliver': {
    ...actById,
    path: '/webhooks/outbox/{id}/redeliver',
    summary: 'Try to deliver a webhook now; the answer says whether it was delivered.',
    isTenantless: true,
    replies: { 200: Redelivered, ...refusals(400, 404, 409, 502) },
  },
  'webhooks.redeliverPreview': {
    ...readById,
    path: '/webhooks/outbox/{id}/redeliver-preview',
    summary: 'What a redelivery would send.',
    isTenantless: true,
    replies: { 200: RedeliverPreview, ...refusals(400, 404) },
  },
  'webhooks.discard': {
    method: 'DELETE',
    path: '/webhooks/outbox/{id}',
    summary: 'Give a webhook up that is not delivered yet.',
    ...byId,
    isTenantless: true,
    replies: { 204: null, ...refusals(400, 404) },
  },
  'webhooks.deliveries': {
    ...read,
    path: '/webhooks/deliveries',
    summary: 'List deliveries, newest first.',
    query: DeliveriesQuery,
    isTenantless: true,
    replies: { 200: listOf(DeliverySummary), ...refusals(400) },
  },
  'webhooks.delivery': {
    ...read,
    path: '/webhooks/deliveries/{delivery_id}',
    summary: 'List the attempts of one delivery, oldest first.',
    params: DeliveryParams,
    isTenantless: true,
    replies: { 200: listOf(DeliveryAttempt), ...refusals(400, 404) },
  },
} as const satisfies Record<string, RouteRow>;
