/** Rows of the operations on outbound webhooks; only the root key may use them. */

import { byId, listOf, type RouteRow, readById, refusals } from './route-row.js';
import * as webhook from './webhook.js';

export const WEBHOOK_ROWS = {
  'webhooks.outbox': {
    method: 'GET',
    path: '/webhooks/outbox',
    summary: 'List webhooks that are not delivered yet, oldest first.',
    owner: 'front',
    query: webhook.OutboxQuery,
    isTenantless: true,
    replies: { 200: listOf(webhook.OutboxEntry), ...refusals(400) },
  },
  'webhooks.redeliver': {
    method: 'POST',
    path: '/webhooks/outbox/{id}/redeliver',
    summary: 'Try to deliver a webhook now; the answer says whether it was delivered.',
    ...byId,
    isTenantless: true,
    replies: { 200: webhook.Redelivered, ...refusals(400, 404, 409, 502) },
  },
  'webhooks.redeliverPreview': {
    method: 'GET',
    path: '/webhooks/outbox/{id}/redeliver-preview',
    summary: 'What a redelivery would send.',
    ...readById,
    isTenantless: true,
    replies: { 200: webhook.RedeliverPreview, ...refusals(400, 404) },
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
    method: 'GET',
    path: '/webhooks/deliveries',
    summary: 'List deliveries, newest first.',
    owner: 'front',
    query: webhook.DeliveriesQuery,
    isTenantless: true,
    replies: { 200: listOf(webhook.DeliverySummary), ...refusals(400) },
  },
  'webhooks.delivery': {
    method: 'GET',
    path: '/webhooks/deliveries/{delivery_id}',
    summary: 'List the attempts of one delivery, oldest first.',
    owner: 'front',
    params: webhook.DeliveryParams,
    isTenantless: true,
    replies: { 200: listOf(webhook.DeliveryAttempt), ...refusals(400, 404) },
  },
} as const satisfies Record<string, RouteRow>;
