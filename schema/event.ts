/** Wire shapes and routes of events, which producers send and steps wait for (docs/events.md). */

import { type Static, Type } from '@sinclair/typebox';
import {
  AnyJson,
  BodyTenant,
  KEY_LENGTH_MAX,
  Name,
  named,
  noted,
  oneOfWords,
  optional,
  orNull,
  pageOf,
  Timestamp,
  Uuid,
  withDefault,
} from './common.js';
import { get, getById, listOf, type RouteRow, refusals } from './route-row.js';
import { strictNamed } from './strict.js';

/** A day: related producers and instances are seldom further apart. */
export const EVENT_TTL_SECS_DEFAULT = 86_400;
const EVENT_TTL_SECS_MAX = 30 * 86_400;
/** Each event is a commit of its own. */
const EVENTS_PER_BATCH_MAX = 100;
export const EVENT_TAKERS_SHOWN_MAX = 100;

const EVENT_STATUSES = ['pending', 'consumed', 'expired'] as const;
const TAKE_OUTCOMES = ['taken', 'refused'] as const;

const ProducerKey = Type.String({ pattern: '\\S', maxLength: KEY_LENGTH_MAX });

export const SendEvent = named('SendEvent', {
  tenant_id: optional(BodyTenant),
  event_name: Name,
  producer_event_id: noted(ProducerKey, "Producer's id: a repeated id is a duplicate."),
  correlation_key: optional(
    noted(ProducerKey, 'Matches steps that wait for the name and this key.'),
  ),
  payload: Type.Optional(noted(AnyJson, 'Becomes the output of the steps.')),
  ttl_seconds: optional(
    withDefault(
      Type.Integer({
        minimum: 1,
        maximum: EVENT_TTL_SECS_MAX,
        description: 'Seconds for which a later wait can match the event.',
      }),
      EVENT_TTL_SECS_DEFAULT,
    ),
  ),
});

/** An event whose tenant is known. */
export type ReceivedEvent = Omit<Static<typeof SendEvent>, 'tenant_id'>;

export const SendEvents = strictNamed('SendEvents', {
  events: Type.Array(SendEvent, { minItems: 1, maxItems: EVENTS_PER_BATCH_MAX }),
});

export const EventReceipt = named('EventReceipt', 'Result of sending an event.', {
  event_id: Uuid,
  duplicate: Type.Boolean({
    description: 'True: the receipt of an earlier event with this producer_event_id.',
  }),
  matched_wait: Type.Optional(noted(Uuid, 'Id of the first matched wait.')),
  satisfied: Type.Boolean({ description: 'Whether a step waited for it.' }),
  matched: Type.Integer({ description: 'Number of waiting steps.' }),
  triggers: Type.Optional(
    Type.Integer({ description: 'Number of triggers fired; absent: none, or a duplicate.' }),
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
  payload: noted(AnyJson, 'Probable secrets are redacted.'),
  status: oneOfWords(EVENT_STATUSES),
  matched: Type.Integer({ description: 'Number of matched steps.' }),
  created_at: Timestamp,
  expires_at: noted(Timestamp, 'Until then a later wait can match it.'),
  consumed_at: orNull(Timestamp),
});
export type StoredEvent = Static<typeof StoredEvent>;

export const EventTaker = named('EventTaker', {
  instance_id: Uuid,
  block_id: Type.String(),
  outcome: oneOfWords(
    TAKE_OUTCOMES,
    "refused: the payload does not conform to the step's schema; the step continues to wait.",
  ),
  taken_at: Timestamp,
});

export const EventDetails = named('EventDetails', {
  ...StoredEvent.properties,
  taken_by: Type.Array(EventTaker, {
    maxItems: EVENT_TAKERS_SHOWN_MAX,
    description: 'The first consumers that still exist.',
  }),
});
export type EventDetails = Static<typeof EventDetails>;

const EventListQuery = Type.Object({
  tenant_id: Type.Optional(Type.String()),
  status: Type.Optional(oneOfWords(EVENT_STATUSES)),
  event_name: Type.Optional(Type.String()),
  correlation_key: Type.Optional(Type.String()),
  producer_event_id: Type.Optional(Type.String()),
  created_after: Type.Optional(noted(Timestamp, 'Exclusive.')),
  created_before: Type.Optional(noted(Timestamp, 'Exclusive.')),
  ...pageOf(),
});

export const EVENT_ROWS = {
  'events.send': {
    method: 'POST',
    path: '/events',
    summary: 'Send an event to all steps that wait for it, or else to the first that will.',
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
  'events.list': get('/events', 'List events, newest first.', listOf(StoredEvent), {
    query: EventListQuery,
  }),
  'events.get': getById('/events/{id}', 'Get an event with its consumers.', EventDetails),
} as const satisfies Record<string, RouteRow>;
