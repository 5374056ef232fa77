/**
 * Every metric by its name. `docs/metrics.md` says when each one counts.
 */

/** Other software relies on the names up to `engine_cron_triggered_total`. */
export const COUNTERS = {
  engine_instances_claimed_total: 'Times that an instance was taken up from the state scheduled.',
  engine_instances_completed_total: 'Instances that completed.',
  engine_instances_failed_total: 'Instances that entered the dead letter queue.',
  engine_steps_executed_total: 'Attempts of steps that were started, and tasks given to workers.',
  engine_steps_failed_total: 'Attempts of steps that failed.',
  engine_steps_retried_total: 'Retries that were scheduled.',
  engine_signals_delivered_total: 'Signals that were handled.',
  engine_rate_limits_exceeded_total: 'Times that a rate limit put a step off.',
  engine_recovery_stale_instances_total: 'Instances that were recovered at start.',
  engine_webhooks_sent_total: 'Webhooks that were delivered.',
  engine_webhooks_failed_total: 'Webhooks that could not be delivered.',
  engine_cron_triggered_total: 'Instances that schedules created.',
  engine_retention_removed_total: 'Ended instances that were removed.',
  engine_release_decisions_total: 'Decisions about releases.',
  engine_release_rollbacks_total: 'Releases that were rolled back.',
} as const;

export type CounterName = keyof typeof COUNTERS;

/** By names that users chose; see `named.ts` for how many of them. */
export const NAMED_COUNTERS = {
  engine_sequence_instances_completed_total: {
    label: 'sequence',
    help: 'Instances that completed, by the name of their sequence.',
  },
  engine_sequence_instances_failed_total: {
    label: 'sequence',
    help: 'Instances that entered the dead letter queue, by the name of their sequence.',
  },
  engine_handler_attempts_succeeded_total: {
    label: 'handler',
    help: 'Attempts of workers and of http_request that succeeded.',
  },
  engine_handler_attempts_failed_total: {
    label: 'handler',
    help: 'Attempts of workers and of http_request that failed.',
  },
  engine_handler_attempt_seconds_total: {
    label: 'handler',
    help: 'Time that those attempts took together.',
  },
} as const satisfies Record<string, { readonly label: string; readonly help: string }>;

export type NamedCounterName = keyof typeof NAMED_COUNTERS;

interface HistogramFacts {
  readonly help: string;
  readonly buckets: readonly number[];
}

/** From a pure step to a slow handler; the specification names no buckets. */
const SECONDS = [
  0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60,
];
const UNITS = [1, 2, 5, 10, 25, 50, 100, 250, 500, 1_000];

/** Of the specification: the first three. */
export const HISTOGRAMS = {
  engine_tick_duration_seconds: { help: 'Duration of one turn of a shard.', buckets: SECONDS },
  engine_step_duration_seconds: {
    help: 'Duration of one attempt of a step; of a worker, from its claim.',
    buckets: SECONDS,
  },
  engine_instance_processing_seconds: {
    help: 'Time to advance one instance once.',
    buckets: SECONDS,
  },
  engine_writer_flush_seconds: {
    help: 'Time from the first statement of a flush to its commit.',
    buckets: SECONDS,
  },
  engine_writer_flush_units: { help: 'Commit units in one flush.', buckets: UNITS },
} as const satisfies Record<string, HistogramFacts>;

export type HistogramName = keyof typeof HISTOGRAMS;

/** What the threads know, added up over them. Of the specification: the first two. */
export const THREAD_GAUGES = {
  engine_queue_depth: 'Instances advanced in the current turn.',
  engine_active_tasks: 'Step executions in flight in this process.',
  engine_writer_backlog_units: 'Commit units that wait for their flush or are in it.',
  engine_writer_backlog_bytes: 'Characters of the rows of those units.',
} as const;

export type ThreadGaugeName = keyof typeof THREAD_GAUGES;

/** What the front knows by itself. */
export const FRONT_GAUGES = {
  engine_ready: '1 while this engine serves with all of its threads, else 0.',
  engine_database_up: '1 while this engine owns the database and reaches it, else 0.',
  engine_clock_skew_seconds: "By how much the database's clock is ahead of this machine's.",
  engine_requests_in_flight: 'Requests that shards have not answered yet.',
} as const;

export type FrontGaugeName = keyof typeof FRONT_GAUGES;

/** What only rows tell, as last looked at; each is counted up to `SAMPLE_ROWS_MAX`. */
export const ROW_GAUGES = {
  engine_instances_pending: 'Instances that are due and wait to be advanced.',
  engine_instances_scheduled: 'Instances that wait for a time to come.',
  engine_instances_in_flight: 'Instances with work under way in this process.',
  engine_oldest_pending_seconds: 'For how long the longest waiting due instance has been due.',
  engine_open_tasks: 'Worker tasks that are pending or claimed.',
  engine_dead_letters: 'Instances in the dead letter queue.',
  engine_webhook_outbox_depth: 'Webhooks that wait to be delivered or are parked.',
} as const;

export type RowGaugeName = keyof typeof ROW_GAUGES;

/** Counting goes no further, so that a look costs the same however many rows there are. */
export const SAMPLE_ROWS_MAX = 10_000;

/** By position in shared memory; each thread is of the same build. */
export const COUNTER_NAMES = Object.keys(COUNTERS) as CounterName[];

export const COUNTER_INDEX = Object.fromEntries(
  COUNTER_NAMES.map((name, index) => [name, index]),
) as Readonly<Record<CounterName, number>>;
