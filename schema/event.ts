/** Wire shapes and routes of events, which producers send and steps wait for (docs/events.md). */

import { type Static, Type } from '@sinclair/typebox';
import {
  AnyJson,
  Cursor,
  KEY_LENGTH_MAX,
  Limit,
  Name,
  named,
  noted,
  Offset,
  oneOfWords,
  optional,
  orNull,
  TenantName,
  Timestamp,
  Uuid,
  withDefault,
} from './common.js';
import { listOf, type RouteRow, read, readById, refusals } from './route-row.js';
import { strict } from './strict.js';

/** A day: producers and instances that belong together are seldom further apart. */
export const EVENT_TTL_SECS_DEFAULT = 86_400;
/** What is kept for nobody is to have an end. */
export const EVENT_TTL_SECS_MAX = 30 * 86_400;
/** Each is a unit of its own. */
export const EVENTS_PER_BATCH_MAX = 100;
/** Takers that are shown of one event. */
export const EVENT_TAKERS_SHOWN_MAX = 100;

export const EVENT_STATUSES = ['pending', 'consumed', 'expired'] as const;
export const TAKE_OUTCOMES = ['taken', 'refused'] as const;

const ProducerKey = Type.String({ pattern: '\\S', maxLength: KEY_LENGTH_MAX });

export const SendEvent = named('SendEvent', {
  tenant_id: optional(
    noted(TenantName, 'The same as in the header x-tenant-id when that is sent.'),
  ),
  event_name: Name,
  producer_event_id: noted(
    ProducerKey,
    'What the producer calls it: sent again, it is the same event.',
  ),
  correlation_key: optional(
    noted(ProducerKey, 'Whom it is for: steps that wait for the name and this key.'),
  ),
  payload: Type.Optional(noted(AnyJson, 'What the steps give as their output.')),
  ttl_seconds: optional(
    withDefault(
      Type.Integer({
        minimum: 1,
        maximum: EVENT_TTL_SECS_MAX,
        description: 'How long it is kept for a step that has yet to wait for it.',
      }),
      EVENT_TTL_SECS_DEFAULT,
    ),
  ),
});
export type SendEvent = Static<typeof SendEvent>;

/** Of a tenant that is known. */
export type ReceivedEvent = Omit<SendEvent, 'tenant_id'>;

export const SendEvents = strict(
  named('SendEvents', {
    events: Type.Array(SendEvent, { minItems: 1, maxItems: EVENTS_PER_BATCH_MAX }),
  }),
);
export type SendEvents = Static<typeof SendEvents>;

export const EventReceipt = named('EventReceipt', 'What became of an event when it came.', {
  event_id: Uuid,
  duplicate: Type.Boolean({
    description: 'An event with this producer_event_id came before; the receipt is about that one.',
  }),
  matched_wait: Type.Optional(noted(Uuid, 'The first wait that it is for.')),
  satisfied: Type.Boolean({ description: 'Some step waited for it.' }),
  matched: Type.Integer({ description: 'How many steps did.' }),
  triggers: Type.Optional(
    Type.Integer({ description: 'How many triggers it fires; absent: none, or it came before.' }),
  ),
});
export type EventReceipt = Static<typeof EventReceipt>;

export const EventReceipts = named('EventReceipts', {
  outcomes: noted(Type.Array(EventReceipt), 'In the order of the events.'),
});
export type EventReceipts = Static<typeof EventReceipts>;

export const StoredEvent = named('StoredEvent', {
  id: Uuid,
  tenant_id: Type.String(),
  event_name: Type.String(),
  producer_event_id: Type.String(),
  correlation_key: orNull(Type.String()),
  payload: noted(AnyJson, 'What looks like a secret is not shown.'),
  status: oneOfWords(EVENT_STATUSES),
  matched: Type.Integer({ description: 'How many steps it was for.' }),
  created_at: Timestamp,
  expires_at: noted(Timestamp, 'Until then it is kept for a step that waits for it.'),
  consumed_at: orNull(Timestamp),
});
export type StoredEvent = Static<typeof StoredEvent>;

export const EventTaker = named('EventTaker', {
  instance_id: Uuid,
  block_id: Type.String(),
  outcome: oneOfWords(
    TAKE_OUTCOMES,
    'refused: the payload was none for the step, which went on waiting.',
  ),
  taken_at: Timestamp,
});
export type EventTaker = Static<typeof EventTaker>;

export const EventDetails = named('EventDetails', {
  ...StoredEvent.properties,
  taken_by: Type.Array(EventTaker, {
    maxItems: EVENT_TAKERS_SHOWN_MAX,
    description: 'The first ones that are still there.',
  }),
});
export type EventDetails = Static<typeof EventDetails>;

export const EventListQuery = Type.Object({
  tenant_id: Type.Optional(Type.String()),
  status: Type.Optional(oneOfWords(EVENT_STATUSES)),
  event_name: Type.Optional(Type.String()),
  correlation_key: Type.Optional(Type.String()),
  producer_event_id: Type.Optional(Type.String()),
  created_after: Type.Optional(noted(Timestamp, 'Exclusive.')),
  created_before: Type.Optional(noted(Timestamp, 'Exclusive.')),
  offset: Offset,
  limit: Limit(100, 1_000),
  cursor: Cursor,
});
export type EventListQuery = Static<typeof EventListQuery>;

// ---------------------------------------------------------------- routes

export const EVENT_ROWS = {
  'events.send': {
    method: 'POST',
    path: '/events',
    summary:
      'Send an event to every step that waits for it, or else keep it for the first that does.',
    owner: 'by-body',
    ledBy: { kind: 'event-key', members: ['event_name', 'correlation_key', 'tenant_id'] },
    body: SendEvent,
    bodySize: 'large',
    makes: 'event',
    replies: { 200: EventReceipt, 201: EventReceipt, ...refusals(400, 413) },
  },
  'events.sendBatch': {
    method: 'POST',
    path: '/events/batch',
    summary: 'Send up to 100 events; none is sent unless all are valid.',
    owner: 'front',
    body: SendEvents,
    bodySize: 'large',
    makes: 'events',
    replies: { 200: EventReceipts, ...refusals(400, 413) },
  },
  'events.list': {
    ...read,
    path: '/events',
    summary: 'List events, newest first.',
    query: EventListQuery,
    replies: { 200: listOf(StoredEvent), ...refusals(400) },
  },
  'events.get': {
    ...readById,
    path: '/events/{id}',
    summary: 'Get an event, with those that took it.',
    replies: { 200: EventDetails, ...refusals(400, 404) },
  },
} as const satisfies Record<string, RouteRow>;
