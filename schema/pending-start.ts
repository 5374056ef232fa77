/**
 * Wire shapes and routes of creations that a sequence collects: the members `debounce` and `batch` of a definition, and
 * the instances that are yet to start (docs/concurrency.md).
 */

import * as t from './common.js';
import { byId, did, get, getById, ok, type RouteRow } from './route-row.js';

/** Longer waits are what schedules and `next_fire_at` are for. */
const WAIT_MS_MAX = 7 * 24 * 60 * 60 * 1_000;
/** Their data together is limited by the size of a context. */
const BATCH_SIZE_MAX = 1_000;

const WaitMs = t.integer({ minimum: 1, maximum: WAIT_MS_MAX });

const CollectingKey = t.noted(
  t.Expression,
  'Template over data and config of a creation. Creations with different keys are collected separately. ' +
    'Default: one key.',
);

/** How a sequence collects creations; at most one of them. */
export const COLLECTING = {
  debounce: t.nullish(
    t.object({
      key: t.nullish(CollectingKey),
      wait_ms: t.noted(WaitMs, 'Time without another creation after which the last one starts.'),
      max_wait_ms: t.nullish(
        WaitMs,
        'Maximum time from the first creation to the start; at least wait_ms. Default: none.',
      ),
    }),
    'Of creations in quick succession, only the last one starts an instance.',
  ),
  batch: t.nullish(
    t.object({
      key: t.nullish(CollectingKey),
      size: t.integer({
        minimum: 1,
        maximum: BATCH_SIZE_MAX,
        description: 'Number of creations with which the instance starts at once.',
      }),
      wait_ms: t.noted(WaitMs, 'Maximum time from the first creation to the start.'),
    }),
    'One instance starts with the data of several creations: context.data.items is their list.',
  ),
};

export const COLLECTING_KINDS = ['debounce', 'batch'] as const;
export type CollectingKind = (typeof COLLECTING_KINDS)[number];

/** Members of the answer to a creation that was collected. */
export const COLLECTED = {
  collected: t.optional(
    t.literal(true),
    'The sequence collects creations: the instance with this id starts later.',
  ),
  starts_at: t.optional(
    t.Timestamp,
    'With collected: when the instance starts, unless a later creation changes it.',
  ),
};

export const PendingStart = t.named(
  'PendingStart',
  'An instance that is yet to start, from creations that its sequence collects.',
  {
    id: t.noted(t.Uuid, 'Id of the instance.'),
    tenant_id: t.text(),
    namespace: t.text(),
    sequence: t.text('Name of the sequence.'),
    kind: t.oneOf(COLLECTING_KINDS),
    key: t.nullable(t.text('The key that these creations share; null without one.')),
    count: t.integer('Number of collected creations.'),
    cancelled: t.integer('Number of creations that events took out of the batch (cancel_on).'),
    created_at: t.noted(t.Timestamp, 'When the first creation was collected.'),
    starts_at: t.Timestamp,
    error: t.nullable(
      t.text('Why the instance could not start; it is tried again. Null: nothing.'),
    ),
  },
);
export type PendingStart = t.Static<typeof PendingStart>;

const PendingStartListQuery = t.object({
  tenant_id: t.optional(t.text()),
  namespace: t.optional(t.text()),
  sequence: t.optional(t.text()),
  ...t.pageOf(),
});

export const PENDING_START_ROWS = {
  'pendingStarts.list': get(
    '/pending-starts',
    'List the instances that are yet to start from collected creations, oldest first.',
    t.list(PendingStart),
    { query: PendingStartListQuery },
  ),
  'pendingStarts.get': getById(
    '/pending-starts/{id}',
    'Get an instance that is yet to start from collected creations.',
    PendingStart,
  ),
  'pendingStarts.start': byId.post('/pending-starts/{id}/start', {
    summary: 'Start the instance now, without waiting for more creations.',
    repeats: 'it starts once',
    replies: ok(PendingStart, 404),
    action: did('pending_start', 'started'),
  }),
  'pendingStarts.drop': byId.remove(
    '/pending-starts/{id}',
    'Drop the collected creations: the instance does not start.',
    {
      action: did('pending_start', 'dropped'),
    },
  ),
} as const satisfies Record<string, RouteRow>;
