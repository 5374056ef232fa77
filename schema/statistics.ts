/**
 * Wire shapes and routes of statistics: failures by reason, queues, created and finished instances by interval, and the
 * two versions of a release (docs/operate/statistics.md).
 */

import { type Static, Type } from '@sinclair/typebox';
import { named, noted, orNull, Timestamp, Uuid } from './common.js';
import type { FailureCode } from './failure.js';
import { get, getById, listOf, type RouteRow } from './route-row.js';
import { strictObject } from './strict.js';

/** Each failed instance is fetched by its key, in some tens of milliseconds together. */
export const FAILURES_LOOKED_AT_MAX = 10_000;
/** The smallest groups are omitted. */
export const FAILURE_GROUPS_MAX = 200;
/** Open tasks read for one response. */
export const QUEUED_TASKS_LOOKED_AT_MAX = 20_000;
/** Finished instances of a release read for one response. */
export const OUTCOMES_LOOKED_AT_MAX = 10_000;
/** Stored minutes of tenants read for one response. */
export const ACTIVITY_ROWS_MAX = 20_000;
export const INTERVALS_MAX = 1_500;
/** A year. */
const STEP_SECS_MAX = 366 * 86_400;

const Count = Type.Integer({ minimum: 0 });
const Milliseconds = Type.Number({ minimum: 0 });
const Complete = (note: string) => Type.Boolean({ description: note });

const FailureGroupsQuery = strictObject({
  tenant_id: Type.Optional(Type.String()),
  namespace: Type.Optional(Type.String()),
  sequence_name: Type.Optional(Type.String()),
  failed_after: Type.Optional(noted(Timestamp, 'Exclusive.')),
  failed_before: Type.Optional(noted(Timestamp, 'Exclusive.')),
});

export const FailureGroup = named(
  'FailureGroup',
  'Instances with the same reason of failure. To select them in lists and bulk changes: ' +
    'sequence_id, failure_code, failure_block, failure_handler and failure_reason.',
  {
    namespace: Type.String(),
    sequence_id: Uuid,
    sequence_name: Type.String(),
    version: Type.Integer(),
    block_id: orNull(Type.String()),
    handler: orNull(Type.String()),
    code: Type.Unsafe<FailureCode>(
      Type.String({ description: 'As in the failure of an instance.' }),
    ),
    reason: Type.String({
      description: 'The message, with # for numbers and ids, and "…" for quoted text.',
    }),
    count: Count,
    first_at: Timestamp,
    last_at: Timestamp,
    example_instance_id: noted(Uuid, 'Newest failure.'),
    example_message: Type.String(),
  },
);
export type FailureGroup = Static<typeof FailureGroup>;

export const FailureGroups = named('FailureGroups', {
  groups: noted(listOf(FailureGroup), `Largest first, at most ${FAILURE_GROUPS_MAX}.`),
  looked_at: noted(Count, `Examined newest failed instances, at most ${FAILURES_LOOKED_AT_MAX}.`),
  complete: Complete('Whether all failed instances and all groups are included.'),
});
export type FailureGroups = Static<typeof FailureGroups>;

const QueuesQuery = strictObject({
  tenant_id: Type.Optional(Type.String()),
  alive_within_secs: Type.Integer({ minimum: 0, default: 60 }),
});

export const QueueInfo = named('QueueInfo', 'Open tasks of a handler and queue.', {
  handler: Type.String(),
  queue: orNull(noted(Type.String(), 'Null: tasks without a queue.')),
  waiting: Count,
  claimed: Count,
  oldest_waiting_since: orNull(Timestamp),
  workers: noted(Count, 'Live workers that poll for such tasks.'),
  open_polls: noted(Count, 'Long polls that would receive such a task immediately.'),
});
export type QueueInfo = Static<typeof QueueInfo>;

export const Queues = named('Queues', {
  queues: noted(listOf(QueueInfo), 'By handler and queue.'),
  complete: Complete(
    `Whether all open tasks are included; at most the oldest ${QUEUED_TASKS_LOOKED_AT_MAX} are.`,
  ),
});
export type Queues = Static<typeof Queues>;

const ActivityQuery = strictObject({
  tenant_id: Type.Optional(Type.String()),
  since: Type.Optional(noted(Timestamp, 'Default: an hour ago. At most seven days ago.')),
  step: noted(
    Type.Integer({ minimum: 60, maximum: STEP_SECS_MAX, multipleOf: 60, default: 60 }),
    'In seconds.',
  ),
});

export const ActivityInterval = named('ActivityInterval', {
  at: noted(Timestamp, 'Start of the interval.'),
  created: Count,
  completed: Count,
  failed: Count,
  cancelled: Count,
  duration_p50_ms: noted(
    orNull(Milliseconds),
    'Time from creation to completion or failure, within 10 %; null if none finished.',
  ),
  duration_p95_ms: orNull(Milliseconds),
});
export type ActivityInterval = Static<typeof ActivityInterval>;

export const Activity = named('Activity', 'Created and finished instances by interval.', {
  since: Timestamp,
  step_secs: Type.Integer({ minimum: 60 }),
  intervals: noted(listOf(ActivityInterval), 'Oldest first, including empty intervals.'),
  complete: Complete('False: the oldest intervals are incomplete.'),
});
export type Activity = Static<typeof Activity>;

const ReleaseSeriesQuery = strictObject({
  step: noted(
    Type.Optional(Type.Integer({ minimum: 1, maximum: STEP_SECS_MAX })),
    'In seconds. Default: a sixtieth of the time since the canary started.',
  ),
});

export const ReleasePoint = named('ReleasePoint', {
  at: noted(Timestamp, 'Start of the interval in which the instances were created.'),
  variant: Type.Unsafe<'baseline' | 'candidate'>(
    Type.String({ description: 'baseline or candidate.' }),
  ),
  ended: Count,
  failed: Count,
  cancelled: Count,
  error_rate: Type.Number({ minimum: 0, maximum: 1 }),
  cancel_rate: Type.Number({ minimum: 0, maximum: 1 }),
  duration_p50_ms: noted(Milliseconds, 'Time from creation to the end.'),
  duration_p95_ms: Milliseconds,
  share: noted(Type.Number({ minimum: 0, maximum: 1 }), 'Share of the finished instances of both.'),
});
export type ReleasePoint = Static<typeof ReleasePoint>;

export const ReleaseSeries = named(
  'ReleaseSeries',
  'Both versions since the canary started, by creation time of the finished instances.',
  {
    since: Timestamp,
    step_secs: Type.Integer({ minimum: 1 }),
    points: noted(listOf(ReleasePoint), 'Oldest first.'),
    complete: Complete(
      'Whether all finished instances are included; at most ' +
        `the newest ${OUTCOMES_LOOKED_AT_MAX} are.`,
    ),
  },
);
export type ReleaseSeries = Static<typeof ReleaseSeries>;

export const STATISTIC_ROWS = {
  'instances.failures': get(
    '/instances/failures',
    'Count failed instances by sequence and reason.',
    FailureGroups,
    { query: FailureGroupsQuery },
  ),
  'queues.list': get('/queues', 'Count open tasks and workers by handler and queue.', Queues, {
    query: QueuesQuery,
  }),
  'activity.get': get('/activity', 'Count created and finished instances over time.', Activity, {
    query: ActivityQuery,
  }),
  'releases.series': getById(
    '/releases/{id}/series',
    'Compare both versions of a release over time.',
    ReleaseSeries,
    { query: ReleaseSeriesQuery },
  ),
} as const satisfies Record<string, RouteRow>;
