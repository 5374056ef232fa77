/**
 * Every metric by its name, with the words that `/metrics` and `docs/reference/metrics.md` have for it.
 */

/** Other software relies on the names up to `engine_cron_triggered_total`. */
export const COUNTERS = {
  engine_instances_claimed_total:
    'Times that the engine goes on with a scheduled instance: its first start, the end of a delay, after a resume or a retry.',
  engine_instances_completed_total:
    'Instances that moved to completed, by themselves or by request.',
  engine_instances_failed_total: 'Instances that entered the dead letter queue.',
  engine_steps_executed_total:
    'Attempts of steps that were started, and tasks that were given to workers; one that is started again because its process died counts again.',
  engine_steps_failed_total: 'Attempts of steps that failed, whether or not another one followed.',
  engine_steps_retried_total: 'Attempts of steps that were scheduled after a failed one.',
  engine_timeouts_total:
    'Limits of time that were passed: of attempts, of tasks that nobody claimed, of blocks, of steps and of instances.',
  engine_deadlines_breached_total: 'Steps that missed their deadline.',
  engine_signals_delivered_total: 'Signals that were handled.',
  engine_rate_limits_exceeded_total: 'Times that a rate limit put an attempt of a step off.',
  engine_recovery_stale_instances_total:
    'Instances that were taken up again when a shard started: work that a crash cut off.',
  engine_approvals_answered_total: 'Questions to people that were answered.',
  engine_approvals_timed_out_total:
    'Questions to people whose time was over before anybody answered.',
  engine_webhooks_sent_total: 'Webhooks that were delivered.',
  engine_webhooks_failed_total: 'Webhooks that were given up.',
  engine_cron_triggered_total: 'Instances that schedules created.',
  engine_retention_removed_total: 'Ended instances that were removed.',
  engine_events_received_total: 'Events that were stored; one that was sent again is not counted.',
  engine_events_matched_total: 'Waits of steps that an event ended.',
  engine_events_expired_total: 'Events that no step had waited for when their time was over.',
  engine_release_decisions_total:
    'Decisions about releases: each creation and each change of a state.',
  engine_release_rollbacks_total: 'Releases that were rolled back, by request or by a gate.',
  engine_child_instances_total: 'Child instances that sub_sequence blocks started.',
  engine_activity_left_out_total:
    'Changes of instances that `GET /activity` does not count, since too many tenants changed something in the same minute.',
  engine_instances_loaded_total:
    'Instances that were read from the database, since something happened to them while they were not in memory.',
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
    help: 'Time that those attempts took together: from the claim to the answer, or in the server.',
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
  engine_tick_duration_seconds: {
    help: 'Duration of one turn of a shard, in which it serves whatever has come in.',
    buckets: SECONDS,
  },
  engine_step_duration_seconds: {
    help: 'Duration of one attempt of a step. Of a handler in the server: its run time. Of a worker: from its claim to its answer. Of a step that needs nothing from outside: its share of the turn. A sleep is not measured.',
    buckets: SECONDS,
  },
  engine_instance_processing_seconds: {
    help: 'Time to advance one instance once.',
    buckets: SECONDS,
  },
  engine_writer_flush_seconds: {
    help: 'Time from the first statement of a flush to its commit, repetitions included.',
    buckets: SECONDS,
  },
  engine_writer_flush_units: { help: 'Changes that one flush committed together.', buckets: UNITS },
} as const satisfies Record<string, HistogramFacts>;

export type HistogramName = keyof typeof HISTOGRAMS;

/** What the threads know, added up over them. Of the specification: the first two. */
export const THREAD_GAUGES = {
  engine_queue_depth: 'Instances that the shards advanced in their latest turns.',
  engine_active_tasks: 'Steps that run in the server, or whose result waits for its instance.',
  engine_steps_waiting:
    'Steps that wait for their turn in the server, because as many run as may, in all or of their tenant or instance.',
  engine_instances_due: 'Instances that have something to do now and wait for their turn.',
  engine_writer_backlog_units: 'Changes that are not committed yet.',
  engine_writer_backlog_bytes: 'Characters of the rows of the changes that are not committed yet.',
} as const;

export type ThreadGaugeName = keyof typeof THREAD_GAUGES;

/** What the front counts by itself. */
export const FRONT_COUNTERS = {
  engine_connections_refused_total:
    'Connections of clients that were refused, because too many were open in all or of their address.',
  engine_requests_refused_total:
    'Requests that were refused, because too many of their address were in flight.',
  engine_requests_misdirected_total:
    'Requests that were refused with 421, because another cell of the cluster has their tenant.',
  engine_instance_reads_kept_total:
    'Reads of one instance that were answered from the record that the front thread had kept of it, which had not changed.',
} as const;

/** What the front knows by itself. */
export const FRONT_GAUGES = {
  engine_ready: '1 while /health/ready answers 200, else 0.',
  engine_database_up:
    '1 while this engine owns the database and had an answer of it within 3 s, else 0; 0 on a standby.',
  engine_clock_skew_seconds:
    "By how much the clock of the database, which the engine follows, is ahead of this machine's; 0 until it owns the database. A slope is drift, a step a clock that was set.",
  engine_cluster_directory_up:
    '0 while the directory of the cluster cannot be asked, else 1; 1 without a cluster.',
  engine_cluster_tenants:
    'Tenants of which this engine knows that they live in its cell; 0 without a cluster.',
  engine_cluster_held_tenants:
    'Tenants that are on their way from this cell or to it, whose requests wait for the end of the move.',
  engine_cluster_held_seconds:
    'For how long the first of them is held, since this engine knows of it; 0 while none is.',
  engine_cluster_split_tenants:
    'Tenants that have rows in this cell and are settled in another one without a move; their requests are refused here.',
  engine_connections: 'Connections of clients that are open.',
  engine_requests_in_flight:
    'Requests that wait for a shard, polls that wait for a task among them.',
  engine_polls_in_flight: 'Polls of workers that have no answer yet.',
  engine_streams_open: 'Streams that clients read, of instances and of changes.',
  engine_reads_active: 'Lists and reports that are being read from the database.',
  engine_reads_waiting: 'Lists and reports that wait for their turn.',
  engine_work_under_way_bytes:
    'Bodies that shards have been given and have not answered, and 3 KiB for each instance that they make; at most 64 MiB.',
} as const;

export type FrontMetricName = keyof typeof FRONT_COUNTERS | keyof typeof FRONT_GAUGES;

/** What the system tells of the process, under the usual names. */
export const PROCESS_METRICS = {
  process_cpu_seconds_total: { type: 'counter', help: 'CPU time of all threads.' },
  process_start_time_seconds: {
    type: 'gauge',
    help: 'When the process was started, in seconds since 1970.',
  },
  process_resident_memory_bytes: {
    type: 'gauge',
    help: 'Memory of the process that is in RAM.',
  },
} as const;

export type ProcessMetricName = keyof typeof PROCESS_METRICS;

/** What the engine is, in labels; always 1. */
export const INFO_METRIC = {
  name: 'engine_info',
  help: 'Always 1; says in its labels which version runs, and in which cell.',
} as const;

/** What only rows tell, as last looked at; each is counted up to `SAMPLE_ROWS_MAX`. */
export const ROW_GAUGES = {
  engine_instances_pending: 'Instances that are due and have not been advanced.',
  engine_instances_scheduled:
    'Instances that wait for a time: a start, a delay, a sleep, a time-out.',
  engine_instances_in_flight:
    'Instances with steps at work in the server, or with work left to go on with.',
  engine_oldest_pending_seconds: 'For how long the first of the pending instances has been due.',
  engine_open_tasks: 'Worker tasks that are pending or claimed.',
  engine_approvals_open: 'Questions that wait for the answer of a person.',
  engine_dead_letters: 'Instances in the dead letter queue.',
  engine_webhook_outbox_depth: 'Webhooks that wait to be delivered, or are parked.',
} as const;

export type RowGaugeName = keyof typeof ROW_GAUGES;

/** Counting goes no further, so that a look costs the same however many rows there are. */
export const SAMPLE_ROWS_MAX = 10_000;

/** By position in shared memory; each thread is of the same build. */
export const COUNTER_NAMES = Object.keys(COUNTERS) as CounterName[];

export const COUNTER_INDEX = Object.fromEntries(
  COUNTER_NAMES.map((name, index) => [name, index]),
) as Readonly<Record<CounterName, number>>;
