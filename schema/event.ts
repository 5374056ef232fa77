/** Wire shapes and routes of events, which producers send and steps wait for (docs/events.md). */

import * as t from './common.js';
import { byBody, front, get, getById, ok, type RouteRow, refusals } from './route-row.js';

/** A day: related producers and instances are seldom further apart. */
export const EVENT_TTL_SECS_DEFAULT = 86_400;
const EVENT_TTL_SECS_MAX = 30 * 86_400;
/** Each event is a commit of its own. */
const EVENTS_PER_BATCH_MAX = 100;
export const EVENT_TAKERS_SHOWN_MAX = 100;

const EVENT_STATUSES = ['pending', 'consumed', 'expired'] as const;
const TAKE_OUTCOMES = ['taken', 'refused'] as const;
const CANCEL_OUTCOMES = ['pending', 'cancelled', 'withdrawn', 'ended'] as const;

const ProducerKey = t.text({ pattern: '\\S', maxLength: t.KEY_LENGTH_MAX });

export const SendEvent = t.named('SendEvent', {
  tenant_id: t.nullish(t.BodyTenant),
  event_name: t.Name,
  producer_event_id: t.noted(ProducerKey, "Producer's id: a repeated id is a duplicate."),
  correlation_key: t.nullish(ProducerKey, 'Matches steps that wait for the name and this key.'),
  payload: t.optional(t.AnyJson, 'Becomes the output of the steps.'),
  ttl_seconds: t.nullish(
    t.withDefault(
      t.integer({
        minimum: 1,
        maximum: EVENT_TTL_SECS_MAX,
        description: 'Seconds for which a later wait can match the event.',
      }),
      EVENT_TTL_SECS_DEFAULT,
    ),
  ),
});

/** An event whose tenant is known. */
export type ReceivedEvent = Omit<t.Static<typeof SendEvent>, 'tenant_id'>;

export const SendEvents = t.strictNamed('SendEvents', {
  events: t.list(SendEvent, { minItems: 1, maxItems: EVENTS_PER_BATCH_MAX }),
});

export const EventReceipt = t.named('EventReceipt', 'Result of sending an event.', {
  event_id: t.Uuid,
  duplicate: t.boolean('True: the receipt of an earlier event with this producer_event_id.'),
  matched_wait: t.optional(t.Uuid, 'Id of the first matched wait.'),
  satisfied: t.boolean('Whether a step waited for it.'),
  matched: t.integer('Number of waiting steps.'),
  cancelled: t.optional(
    t.integer('Number of instances that it cancels, started or not; absent: none.'),
  ),
  triggers: t.optional(t.integer('Number of triggers fired; absent: none, or a duplicate.')),
});
export type EventReceipt = t.Static<typeof EventReceipt>;

export const EventReceipts = t.named('EventReceipts', {
  outcomes: t.list(EventReceipt, 'Results in the order of the events.'),
});
export type EventReceipts = t.Static<typeof EventReceipts>;

export const StoredEvent = t.named('StoredEvent', {
  id: t.Uuid,
  tenant_id: t.text(),
  event_name: t.text(),
  producer_event_id: t.text(),
  correlation_key: t.nullable(t.text()),
  payload: t.noted(t.AnyJson, 'Payload, in which probable secrets are redacted.'),
  status: t.oneOf(EVENT_STATUSES),
  matched: t.integer('Number of matched steps.'),
  created_at: t.Timestamp,
  expires_at: t.noted(t.Timestamp, 'Time until which a later wait can match the event.'),
  consumed_at: t.nullable(t.Timestamp),
});
export type StoredEvent = t.Static<typeof StoredEvent>;

export const EventTaker = t.named('EventTaker', {
  instance_id: t.Uuid,
  block_id: t.text(),
  outcome: t.oneOf(
    TAKE_OUTCOMES,
    "refused: the payload does not conform to the step's schema; the step continues to wait.",
  ),
  taken_at: t.Timestamp,
});

export const EventCancel = t.named('EventCancel', 'An instance that the event cancels.', {
  instance_id: t.Uuid,
  outcome: t.oneOf(
    CANCEL_OUTCOMES,
    'pending: about to be cancelled; withdrawn: only creations of its batch, before it started; ' +
      'ended: it had ended, or moved elsewhere, before.',
  ),
  cancelled_at: t.nullable(t.Timestamp),
});

export const EventDetails = t.named('EventDetails', {
  ...StoredEvent.properties,
  cancelled: t.list(EventCancel, {
    maxItems: EVENT_TAKERS_SHOWN_MAX,
    description: 'The first instances that it cancels by cancel_on and that still exist.',
  }),
  taken_by: t.list(EventTaker, {
    maxItems: EVENT_TAKERS_SHOWN_MAX,
    description: 'The first consumers that still exist.',
  }),
});
export type EventDetails = t.Static<typeof EventDetails>;

const EventListQuery = t.object({
  tenant_id: t.optional(t.text()),
  status: t.optional(t.oneOf(EVENT_STATUSES)),
  event_name: t.optional(t.text()),
  correlation_key: t.optional(t.text()),
  producer_event_id: t.optional(t.text()),
  created_after: t.optional(t.Timestamp, 'Only events created after this time.'),
  created_before: t.optional(t.Timestamp, 'Only events created before this time.'),
  ...t.pageOf(),
});

export const EVENT_ROWS = {
  'events.send': byBody.post('/events', {
    summary: 'Send an event to all steps that wait for it, or else to the first that will.',
    ledBy: { kind: 'event-key', members: ['event_name', 'correlation_key', 'tenant_id'] },
    body: SendEvent,
    bodySize: 'large',
    makes: 'event',
    replies: { 200: EventReceipt, 201: EventReceipt, ...refusals(400, 413) },
  }),
  'events.sendBatch': front.post('/events/batch', {
    summary: 'Send up to 100 events; none is sent unless all are valid.',
    body: SendEvents,
    bodySize: 'large',
    makes: 'events',
    replies: ok(EventReceipts, 413),
  }),
  'events.list': get('/events', 'List events, newest first.', t.list(StoredEvent), {
    query: EventListQuery,
  }),
  'events.get': getById('/events/{id}', 'Get an event with its consumers.', EventDetails),
} as const satisfies Record<string, RouteRow>;
