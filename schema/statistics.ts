/**
 * Wire shapes and routes of statistics: failures by reason, queues, created and finished instances by interval, blocks of a
 * sequence, and the two versions of a release (docs/operate/statistics.md).
 */

import * as t from './common.js';
import type { FailureCode } from './failure.js';
import { front, get, getById, ok, type RouteRow } from './route-row.js';

/** Each failed instance is fetched by its key, in some tens of milliseconds together. */
export const FAILURES_LOOKED_AT_MAX = 10_000;
/** The smallest groups are omitted. */
export const FAILURE_GROUPS_MAX = 200;
/** Intervals of a period of failures. */
export const FAILURE_INTERVALS = 24;
/** Newest runs of a version that its failures are compared with, for the versions with the most failures. */
export const FAILURE_RUNS_MAX = 500;
export const FAILURE_VERSIONS_MAX = 20;
/** Open tasks read for one response. */
export const QUEUED_TASKS_LOOKED_AT_MAX = 20_000;
/** Finished instances of a release read for one response. */
export const OUTCOMES_LOOKED_AT_MAX = 10_000;
/** Stored minutes of tenants read for one response. */
export const ACTIVITY_ROWS_MAX = 20_000;
/** Stored intervals of a version, or of all versions of a name, read for one response. */
export const STEP_ROWS_MAX = 5_000;
/** Newest instances of a sequence examined for what is open, or for the slowest. */
export const RUNS_LOOKED_AT_MAX = 3_000;
export const INTERVALS_MAX = 1_500;
/** A year. */
const STEP_SECS_MAX = 366 * 86_400;

const Count = t.integer({ minimum: 0 });
const Milliseconds = t.number({ minimum: 0 });

const FailureGroupsQuery = t.strictObject({
  tenant_id: t.optional(t.text()),
  namespace: t.optional(t.text()),
  sequence_name: t.optional(t.text()),
  failed_after: t.optional(
    t.Timestamp,
    'Only instances that failed after this time: the start of the period of counts, new and share.',
  ),
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
    counts: t.list(
      Count,
      `Failures in ${FAILURE_INTERVALS} equal intervals from failed_after to failed_before or now, oldest first; ` +
        'empty without failed_after.',
    ),
    new: t.nullable(
      t.boolean(),
      'Whether no instance of any sequence that failed with this code, handler and reason in as long before ' +
        'failed_after is still failed; null if unknown.',
    ),
    runs: t.nullable(
      t.object({
        finished: Count,
        failed: t.noted(Count, 'Of them, failed instances of this group.'),
      }),
      `Of the newest ${FAILURE_RUNS_MAX} runs of this version that were created after failed_after; null without it, ` +
        `and but for the ${FAILURE_VERSIONS_MAX} versions with the most failures.`,
    ),
  },
);
export type FailureGroup = t.Static<typeof FailureGroup>;

export const FailureGroups = t.named('FailureGroups', {
  groups: t.list(FailureGroup, `Largest first, at most ${FAILURE_GROUPS_MAX}.`),
  looked_at: t.noted(Count, `Examined newest failed instances, at most ${FAILURES_LOOKED_AT_MAX}.`),
  complete: t.boolean('Whether all failed instances of the period and all groups are included.'),
});
export type FailureGroups = t.Static<typeof FailureGroups>;

/** Failed instances of a cause, and runs of its sequences, that are compared. */
export const FAILURES_COMPARED_MAX = 500;
/** Versions whose newest runs are compared. */
export const VERSIONS_COMPARED_MAX = 20;

const FailureCauseQuery = t.strictObject({
  ...FailureGroupsQuery.properties,
  failure_code: t.text({ minLength: 1 }),
  failure_reason: t.text({ minLength: 1 }),
  failure_handler: t.optional(t.text()),
});

const Part = t.number({ minimum: 0, maximum: 1 });

export const FailureAttribute = t.named('FailureAttribute', 'An attribute of failed instances.', {
  name: t.text(
    'version, block, attempt, queue, worker, worker_version, or metadata. and a key of metadata.',
  ),
  distinct: t.noted(Count, 'Number of different values.'),
  values: t.list(
    t.object({
      value: t.text(),
      count: t.noted(Count, 'Failed instances with it.'),
      share: t.noted(Part, 'Share of the failed instances.'),
      share_of_runs: t.nullable(Part, 'Share of the runs they are compared with; null: not known.'),
    }),
    'Most frequent first, at most five.',
  ),
});
export type FailureAttribute = t.Static<typeof FailureAttribute>;

export const FailureAttributes = t.named(
  'FailureAttributes',
  'What failed instances have in common.',
  {
    failed: t.noted(Count, `Examined newest instances, at most ${FAILURES_COMPARED_MAX}.`),
    runs: t.noted(
      Count,
      `Newest runs of the same sequences since failed_after, at most ${FAILURES_COMPARED_MAX}.`,
    ),
    complete: t.boolean('Whether all instances of the cause were examined.'),
    attributes: t.list(FailureAttribute),
  },
);
export type FailureAttributes = t.Static<typeof FailureAttributes>;

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

const QueueSeriesQuery = t.strictObject({
  tenant_id: t.optional(t.text()),
  handler: t.Name,
  queue: t.optional(t.text('Default: tasks without a queue.')),
  since: t.optional(t.Timestamp, 'Default: an hour ago. At most seven days ago.'),
  step: t.noted(
    t.integer({ minimum: 60, maximum: STEP_SECS_MAX, multipleOf: 60, default: 60 }),
    'Length of an interval in seconds.',
  ),
});

export const QueueInterval = t.named('QueueInterval', {
  at: t.noted(t.Timestamp, 'Start of the interval.'),
  arrived: t.noted(Count, 'Tasks that came to the queue, or returned to it.'),
  taken: t.noted(Count, 'Tasks that workers claimed.'),
  withdrawn: t.noted(Count, 'Tasks that were withdrawn before a worker claimed them.'),
  ended: t.noted(Count, 'Claimed tasks that ended.'),
  longest_wait_ms: t.noted(
    Milliseconds,
    'Longest time from creation to claim; 0 if none was claimed.',
  ),
});
export type QueueInterval = t.Static<typeof QueueInterval>;

export const QueueSeries = t.named('QueueSeries', 'Tasks of a handler and queue by interval.', {
  since: t.Timestamp,
  step_secs: t.integer({ minimum: 60 }),
  intervals: t.list(QueueInterval, 'Oldest first, including empty intervals.'),
  complete: t.boolean('False: the oldest intervals are incomplete.'),
});
export type QueueSeries = t.Static<typeof QueueSeries>;

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

const SequenceStepsQuery = t.strictObject({
  since: t.optional(t.Timestamp, 'Default: an hour ago. At most seven days ago.'),
  all_versions: t.noted(
    t.boolean({ default: false }),
    'Runs of all versions of the name. Open executions are always those of this version.',
  ),
});

export const StepStatistics = t.named('StepStatistics', 'Runs of one block of a sequence.', {
  block_id: t.text(),
  runs: t.noted(Count, 'Completed and failed executions; in loops one for each iteration.'),
  failures: t.noted(Count, 'Failed ones, after their last attempt.'),
  duration_p50_ms: t.nullable(
    Milliseconds,
    'Time from start to end, with waits and retries, within 10 %; null without runs.',
  ),
  duration_p95_ms: t.nullable(Milliseconds),
  total_ms: t.noted(Milliseconds, 'Sum of all durations.'),
  share: t.noted(
    t.number({ minimum: 0, maximum: 1 }),
    'Share of the time of all steps; of a block with blocks inside, the share of the steps inside.',
  ),
  here_now: t.noted(Count, 'Open executions.'),
});
export type StepStatistics = t.Static<typeof StepStatistics>;

export const SequenceSteps = t.named('SequenceSteps', 'Where the time of a sequence goes.', {
  since: t.noted(t.Timestamp, 'Start of the first counted interval of five minutes.'),
  steps: t.list(
    StepStatistics,
    'The blocks of the version in their order, then other blocks with runs. Without hooks.',
  ),
  complete: t.boolean(`False: only the newest ${STEP_ROWS_MAX} stored intervals count.`),
  here_complete: t.boolean(
    `False: open executions of the newest ${RUNS_LOOKED_AT_MAX} instances only.`,
  ),
});
export type SequenceSteps = t.Static<typeof SequenceSteps>;

export const SLOWEST_MAX = 100;
const SlowestQuery = t.strictObject({
  sequence_id: t.noted(t.Uuid, 'The version.'),
  block: t.optional(t.text(), 'Id of a block of the version. Default: the whole instance.'),
  limit: t.integer({ minimum: 1, maximum: SLOWEST_MAX, default: 20 }),
});

export const SlowRun = t.named('SlowRun', {
  instance_id: t.Uuid,
  state: t.InstanceStateWord,
  created_at: t.Timestamp,
  duration_ms: t.noted(
    Milliseconds,
    'Of the instance, or of its last execution of the block; until now if it is open.',
  ),
  is_open: t.boolean('Whether the instance, or the block, has not ended.'),
});
export type SlowRun = t.Static<typeof SlowRun>;

export const SlowestRuns = t.named('SlowestRuns', 'Instances of a version by duration.', {
  runs: t.list(SlowRun, 'Longest first.'),
  complete: t.boolean(`False: only the newest ${RUNS_LOOKED_AT_MAX} instances were examined.`),
});
export type SlowestRuns = t.Static<typeof SlowestRuns>;

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
  'instances.failureAttributes': get(
    '/instances/failures/attributes',
    'Compare the failed instances of one cause with other runs.',
    FailureAttributes,
    { query: FailureCauseQuery },
  ),
  'queues.list': get('/queues', 'Count open tasks and workers by handler and queue.', Queues, {
    query: t.strictObject({
      tenant_id: t.optional(t.text()),
      alive_within_secs: t.integer({ minimum: 0, default: 60 }),
    }),
  }),
  'queues.series': get(
    '/queues/series',
    'Count tasks of a queue that came, were claimed and ended over time.',
    QueueSeries,
    { query: QueueSeriesQuery },
  ),
  'activity.get': get('/activity', 'Count created and finished instances over time.', Activity, {
    query: ActivityQuery,
  }),
  'sequences.steps': getById(
    '/sequences/{id}/steps',
    'Count runs, failures and durations of each block of a version.',
    SequenceSteps,
    { query: SequenceStepsQuery },
  ),
  'instances.slowest': front.get('/instances/slowest', {
    summary: 'List the slowest of the newest instances of a version, as a whole or at a block.',
    query: SlowestQuery,
    replies: ok(SlowestRuns, 400, 404),
  }),
  'releases.series': getById(
    '/releases/{id}/series',
    'Compare both versions of a release over time.',
    ReleaseSeries,
    { query: ReleaseSeriesQuery },
  ),
} as const satisfies Record<string, RouteRow>;
