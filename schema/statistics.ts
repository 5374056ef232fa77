/**
 * Wire shapes and routes of statistics: failures by reason, queues, created and finished instances by interval, and the
 * two versions of a release (docs/operate/statistics.md).
 */

import * as t from './common.js';
import type { FailureCode } from './failure.js';
import { get, getById, type RouteRow } from './route-row.js';

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

const Count = t.integer({ minimum: 0 });
const Milliseconds = t.number({ minimum: 0 });

const FailureGroupsQuery = t.strictObject({
  tenant_id: t.optional(t.text()),
  namespace: t.optional(t.text()),
  sequence_name: t.optional(t.text()),
  failed_after: t.optional(t.Timestamp, 'Only instances that failed after this time.'),
  failed_before: t.optional(t.Timestamp, 'Only instances that failed before this time.'),
});

export const FailureGroup = t.named(
  'FailureGroup',
  'Instances with the same reason of failure. To select them in lists and bulk changes: ' +
    'sequence_id, failure_code, failure_block, failure_handler and failure_reason.',
  {
    namespace: t.text(),
    sequence_id: t.Uuid,
    sequence_name: t.text(),
    version: t.integer(),
    block_id: t.nullable(t.text()),
    handler: t.nullable(t.text()),
    code: t.typed<FailureCode>(t.text('Code of the failure.')),
    reason: t.text('The message, with # for numbers and ids, and "…" for quoted text.'),
    count: Count,
    first_at: t.Timestamp,
    last_at: t.Timestamp,
    example_instance_id: t.noted(t.Uuid, 'Instance with the newest failure.'),
    example_message: t.text(),
  },
);
export type FailureGroup = t.Static<typeof FailureGroup>;

export const FailureGroups = t.named('FailureGroups', {
  groups: t.list(FailureGroup, `Largest first, at most ${FAILURE_GROUPS_MAX}.`),
  looked_at: t.noted(Count, `Examined newest failed instances, at most ${FAILURES_LOOKED_AT_MAX}.`),
  complete: t.boolean('Whether all failed instances and all groups are included.'),
});
export type FailureGroups = t.Static<typeof FailureGroups>;

export const QueueInfo = t.named('QueueInfo', 'Open tasks of a handler and queue.', {
  handler: t.text(),
  queue: t.nullable(t.text('Null: tasks without a queue.')),
  waiting: Count,
  claimed: Count,
  oldest_waiting_since: t.nullable(t.Timestamp),
  workers: t.noted(Count, 'Live workers that poll for such tasks.'),
  open_polls: t.noted(Count, 'Long polls that would receive such a task immediately.'),
});
export type QueueInfo = t.Static<typeof QueueInfo>;

export const Queues = t.named('Queues', {
  queues: t.list(QueueInfo, 'Sorted by handler and queue.'),
  complete: t.boolean(`False: only the oldest ${QUEUED_TASKS_LOOKED_AT_MAX} open tasks count.`),
});
export type Queues = t.Static<typeof Queues>;

const ActivityQuery = t.strictObject({
  tenant_id: t.optional(t.text()),
  since: t.optional(t.Timestamp, 'Default: an hour ago. At most seven days ago.'),
  step: t.noted(
    t.integer({ minimum: 60, maximum: STEP_SECS_MAX, multipleOf: 60, default: 60 }),
    'Length of an interval in seconds.',
  ),
});

export const ActivityInterval = t.named('ActivityInterval', {
  at: t.noted(t.Timestamp, 'Start of the interval.'),
  created: Count,
  completed: Count,
  failed: Count,
  cancelled: Count,
  duration_p50_ms: t.nullable(
    Milliseconds,
    'Time from creation to completion or failure, within 10 %; null if none finished.',
  ),
  duration_p95_ms: t.nullable(Milliseconds),
});
export type ActivityInterval = t.Static<typeof ActivityInterval>;

export const Activity = t.named('Activity', 'Created and finished instances by interval.', {
  since: t.Timestamp,
  step_secs: t.integer({ minimum: 60 }),
  intervals: t.list(ActivityInterval, 'Oldest first, including empty intervals.'),
  complete: t.boolean('False: the oldest intervals are incomplete.'),
});
export type Activity = t.Static<typeof Activity>;

const ReleaseSeriesQuery = t.strictObject({
  step: t.optional(
    t.integer({ minimum: 1, maximum: STEP_SECS_MAX }),
    'Length of an interval in seconds. Default: a sixtieth of the time since the canary started.',
  ),
});

export const ReleasePoint = t.named('ReleasePoint', {
  at: t.noted(t.Timestamp, 'Start of the interval in which the instances were created.'),
  variant: t.typed<'baseline' | 'candidate'>(t.text('baseline or candidate.')),
  ended: Count,
  failed: Count,
  cancelled: Count,
  error_rate: t.number({ minimum: 0, maximum: 1 }),
  cancel_rate: t.number({ minimum: 0, maximum: 1 }),
  duration_p50_ms: t.noted(Milliseconds, 'Time from creation to the end.'),
  duration_p95_ms: Milliseconds,
  share: t.noted(t.number({ minimum: 0, maximum: 1 }), 'Share of all finished instances.'),
});
export type ReleasePoint = t.Static<typeof ReleasePoint>;

export const ReleaseSeries = t.named('ReleaseSeries', 'Both versions since the canary started.', {
  since: t.Timestamp,
  step_secs: t.integer({ minimum: 1 }),
  points: t.list(ReleasePoint, 'Intervals, oldest first.'),
  complete: t.boolean(`False: only the newest ${OUTCOMES_LOOKED_AT_MAX} finished instances count.`),
});
export type ReleaseSeries = t.Static<typeof ReleaseSeries>;

export const STATISTIC_ROWS = {
  'instances.failures': get(
    '/instances/failures',
    'Count failed instances by sequence and reason.',
    FailureGroups,
    { query: FailureGroupsQuery },
  ),
  'queues.list': get('/queues', 'Count open tasks and workers by handler and queue.', Queues, {
    query: t.strictObject({
      tenant_id: t.optional(t.text()),
      alive_within_secs: t.integer({ minimum: 0, default: 60 }),
    }),
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
