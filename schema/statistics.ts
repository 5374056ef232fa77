/**
 * Wire shapes and routes of what is summed up over many instances and tasks: failures by reason, queues,
 * what was created and ended in each interval, and the versions of a release side by side
 * (docs/operate/statistics.md).
 */

import { type Static, Type } from '@sinclair/typebox';
import { named, noted, orNull, Timestamp, Uuid } from './common.js';
import type { FailureCode } from './failure.js';
import { listOf, type RouteRow, read, readById, refusals } from './route-row.js';
import { strict } from './strict.js';

/** Failed instances that one answer looks at: each is fetched by its key, within some tens of milliseconds. */
export const FAILURES_LOOKED_AT_MAX = 10_000;
/** More than anybody reads; those left out are the smallest. */
export const FAILURE_GROUPS_MAX = 200;
/** Open tasks that one answer looks at. */
export const QUEUED_TASKS_LOOKED_AT_MAX = 20_000;
/** Ended instances of a release that one answer looks at. */
export const OUTCOMES_LOOKED_AT_MAX = 10_000;
/** Minutes of tenants, as they are stored, that one answer is made of. */
export const ACTIVITY_ROWS_MAX = 20_000;
/** Intervals of a release, or of the activity, in one answer. */
export const INTERVALS_MAX = 1_500;
/** A year. */
const STEP_SECS_MAX = 366 * 86_400;

const Count = Type.Integer({ minimum: 0 });
const Milliseconds = Type.Number({ minimum: 0 });
const Complete = (note: string) => Type.Boolean({ description: note });

// ---------------------------------------------------------------- failures

export const FailureGroupsQuery = strict(
  Type.Object({
    tenant_id: Type.Optional(Type.String()),
    namespace: Type.Optional(Type.String()),
    sequence_name: Type.Optional(Type.String()),
    failed_after: Type.Optional(noted(Timestamp, 'Exclusive.')),
    failed_before: Type.Optional(noted(Timestamp, 'Exclusive.')),
  }),
);

export const FailureGroup = named(
  'FailureGroup',
  'Instances that failed for the same reason. Lists and changes of many select just these by sequence_id, failure_code, failure_block, failure_handler and failure_reason.',
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
      description: 'The message, with # for numbers and ids, and "…" for what is quoted.',
    }),
    count: Count,
    first_at: Timestamp,
    last_at: Timestamp,
    example_instance_id: noted(Uuid, 'The newest.'),
    example_message: Type.String(),
  },
);
export type FailureGroup = Static<typeof FailureGroup>;

export const FailureGroups = named('FailureGroups', {
  groups: noted(listOf(FailureGroup), `The largest first, at most ${FAILURE_GROUPS_MAX}.`),
  looked_at: noted(Count, `The newest failed instances, at most ${FAILURES_LOOKED_AT_MAX}.`),
  complete: Complete('Whether there are no more failed instances, and no more groups.'),
});
export type FailureGroups = Static<typeof FailureGroups>;

// ---------------------------------------------------------------- queues

export const QueuesQuery = strict(
  Type.Object({
    tenant_id: Type.Optional(Type.String()),
    alive_within_secs: Type.Integer({ minimum: 0, default: 60 }),
  }),
);

export const QueueInfo = named('QueueInfo', 'The open tasks of a handler and a queue.', {
  handler: Type.String(),
  queue: orNull(noted(Type.String(), 'Null: tasks without a queue.')),
  waiting: Count,
  claimed: Count,
  oldest_waiting_since: orNull(Timestamp),
  workers: noted(Count, 'Those alive that poll for such tasks; with 0 of them nobody serves it.'),
  open_polls: noted(
    Count,
    'Polls that wait for such a task now, and would be answered with it at once.',
  ),
});
export type QueueInfo = Static<typeof QueueInfo>;

export const Queues = named('Queues', {
  queues: noted(listOf(QueueInfo), 'By handler and queue.'),
  complete: Complete(
    `Whether there are no more open tasks than the oldest ${QUEUED_TASKS_LOOKED_AT_MAX}, which are counted.`,
  ),
});
export type Queues = Static<typeof Queues>;

// ---------------------------------------------------------------- activity

export const ActivityQuery = strict(
  Type.Object({
    tenant_id: Type.Optional(Type.String()),
    since: Type.Optional(noted(Timestamp, 'Default: an hour ago. At most seven days ago.')),
    step: Type.Integer({
      minimum: 60,
      maximum: STEP_SECS_MAX,
      multipleOf: 60,
      default: 60,
      description: 'In seconds.',
    }),
  }),
);

export const ActivityInterval = named('ActivityInterval', {
  at: noted(Timestamp, 'When it begins.'),
  created: Count,
  completed: Count,
  failed: Count,
  cancelled: Count,
  duration_p50_ms: noted(
    orNull(Milliseconds),
    'From creation to completion or failure, within a tenth; null when none of these ended.',
  ),
  duration_p95_ms: orNull(Milliseconds),
});
export type ActivityInterval = Static<typeof ActivityInterval>;

export const Activity = named('Activity', 'Instances created and ended in each interval.', {
  since: Timestamp,
  step_secs: Type.Integer({ minimum: 60 }),
  intervals: noted(listOf(ActivityInterval), 'Oldest first, also those in which nothing happened.'),
  complete: Complete('False: so much was noted that the oldest intervals lack some of it.'),
});
export type Activity = Static<typeof Activity>;

// ---------------------------------------------------------------- releases

export const ReleaseSeriesQuery = strict(
  Type.Object({
    step: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: STEP_SECS_MAX,
        description: 'In seconds. Default: a sixtieth of the time since the canary began.',
      }),
    ),
  }),
);

export const ReleasePoint = named('ReleasePoint', {
  at: noted(Timestamp, 'When the interval begins in which the instances were created.'),
  variant: Type.Unsafe<'baseline' | 'candidate'>(
    Type.String({ description: 'baseline or candidate.' }),
  ),
  ended: Count,
  failed: Count,
  cancelled: Count,
  error_rate: Type.Number({ minimum: 0, maximum: 1 }),
  cancel_rate: Type.Number({ minimum: 0, maximum: 1 }),
  duration_p50_ms: noted(Milliseconds, 'From creation to the end.'),
  duration_p95_ms: Milliseconds,
  share: Type.Number({
    minimum: 0,
    maximum: 1,
    description: 'Of what has ended of both versions.',
  }),
});
export type ReleasePoint = Static<typeof ReleasePoint>;

export const ReleaseSeries = named(
  'ReleaseSeries',
  'Both versions since the canary began, in each interval in which instances were created that have ended.',
  {
    since: Timestamp,
    step_secs: Type.Integer({ minimum: 1 }),
    points: noted(listOf(ReleasePoint), 'Oldest first.'),
    complete: Complete(
      `Whether there are no more ended instances than the newest ${OUTCOMES_LOOKED_AT_MAX}, which are counted.`,
    ),
  },
);
export type ReleaseSeries = Static<typeof ReleaseSeries>;

// ---------------------------------------------------------------- routes

export const STATISTIC_ROWS = {
  'instances.failures': {
    ...read,
    path: '/instances/failures',
    summary: 'Failed instances by sequence and reason.',
    query: FailureGroupsQuery,
    replies: { 200: FailureGroups, ...refusals(400) },
  },
  'queues.list': {
    ...read,
    path: '/queues',
    summary: 'Open tasks and workers by handler and queue.',
    query: QueuesQuery,
    replies: { 200: Queues, ...refusals(400) },
  },
  'activity.get': {
    ...read,
    path: '/activity',
    summary: 'Instances created and ended over time.',
    query: ActivityQuery,
    replies: { 200: Activity, ...refusals(400) },
  },
  'releases.series': {
    ...readById,
    path: '/releases/{id}/series',
    summary: 'Both versions of a release over time.',
    query: ReleaseSeriesQuery,
    replies: { 200: ReleaseSeries, ...refusals(400, 404) },
  },
} as const satisfies Record<string, RouteRow>;
