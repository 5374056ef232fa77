/** Every metric by name, with its description for `/metrics` and `docs/reference/metrics.md`. */

/** The names up to `engine_cron_triggered_total` must stay: other software relies on them. */
export const COUNTERS = {
  engine_instances_claimed_total:
    'Times a scheduled instance was started or continued: its first start, the end of a delay, a resume or a retry.',
  engine_instances_completed_total: 'Instances that completed, by themselves or by request.',
  engine_instances_failed_total: 'Instances that entered the dead letter queue.',
  engine_steps_executed_total:
    'Attempts of steps that were started, including dispatched tasks; an attempt that a crash repeats counts again.',
  engine_steps_failed_total: 'Attempts of steps that failed, retried or not.',
  engine_steps_retried_total: 'Attempts of steps that were scheduled after a failed one.',
  engine_timeouts_total:
    'Time limits that passed: of attempts, unclaimed tasks, blocks, steps and instances.',
  engine_deadlines_breached_total: 'Steps that missed their deadline.',
  engine_signals_delivered_total: 'Signals that were handled.',
  engine_rate_limits_exceeded_total: 'Attempts of steps that a rate limit delayed.',
  engine_recovery_stale_instances_total:
    'Instances that were continued after a crash, when a shard started.',
  engine_approvals_answered_total: 'Approvals that were answered.',
  engine_approvals_timed_out_total: 'Approvals that timed out.',
  engine_webhooks_sent_total: 'Webhooks that were delivered.',
  engine_webhooks_failed_total: 'Webhooks that were given up.',
  engine_cron_triggered_total: 'Instances that schedules created.',
  engine_push_completed_total: 'Tasks that a worker endpoint answered with an output.',
  engine_push_accepted_total: 'Tasks that a worker endpoint accepted with 202, to report later.',
  engine_push_failed_total:
    'Deliveries of tasks to a worker endpoint that count as a failed attempt.',
  engine_push_returned_total:
    'Tasks that went back to their queue, because the endpoint was not reached or takes no more.',
  engine_collected_creations_total: 'Creations that a sequence with debounce or batch collected.',
  engine_collected_starts_total: 'Instances that were started from collected creations.',
  engine_retention_removed_total: 'Ended instances that retention removed.',
  engine_events_received_total: 'Events that were stored, without duplicates.',
  engine_events_matched_total: 'Waits of steps that an event ended.',
  engine_events_cancelled_total:
    'Instances and collected creations that an event cancelled by `cancel_on`.',
  engine_events_expired_total: 'Events that expired before a step waited for them.',
  engine_release_decisions_total: 'Decisions about releases: creations and changes of state.',
  engine_release_rollbacks_total: 'Releases that were rolled back, by request or by a gate.',
  engine_creations_skipped_total:
    'Creations that created nothing, because all slots of their key were taken (`when_full: skip`).',
  engine_key_cancellations_total:
    'Instances that were cancelled because all slots of their key were taken (`when_full`).',
  engine_starts_put_off_total: 'Instances whose start the throttle of their sequence put off.',
  engine_child_instances_total: 'Child instances that sub_sequence blocks started.',
  engine_activity_left_out_total:
    'Changes of instances that `GET /activity` leaves out, because too many tenants changed something in the same minute.',
  engine_queue_changes_left_out_total:
    'Changes of tasks that `GET /queues/series` leaves out, because too many queues had some in the same minute.',
  engine_steps_left_out_total:
    'Ended blocks that `GET /sequences/{id}/steps` leaves out, because too many different ones ended in the same five minutes.',
  engine_instances_loaded_total:
    'Instances that were loaded from the database, because they were not in memory when needed.',
} as const;

export type CounterName = keyof typeof COUNTERS;

/** Labelled with names that users chose; `meter.ts` bounds their number. */
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
    help: 'Total time of those attempts: from claim to result, or in the server.',
  },
} as const satisfies Record<string, { readonly label: string; readonly help: string }>;

export type NamedCounterName = keyof typeof NAMED_COUNTERS;

const SECONDS = [
  0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60,
];
const UNITS = [1, 2, 5, 10, 25, 50, 100, 250, 500, 1_000];

/** The names of the first three must stay. */
export const HISTOGRAMS = {
  engine_tick_duration_seconds: {
    help: 'Duration of one turn of a shard, which serves everything received since the last one.',
    buckets: SECONDS,
  },
  engine_step_duration_seconds: {
    help: 'Duration of one attempt of a step: in the server its run time, of a worker from claim to result, of a pure step its share of the turn. Sleeps are not measured.',
    buckets: SECONDS,
  },
  engine_instance_processing_seconds: {
    help: 'Time to advance one instance once.',
    buckets: SECONDS,
  },
  engine_push_duration_seconds: {
    help: 'Time from the beginning of a request to a worker endpoint to the end of its response.',
    buckets: SECONDS,
  },
  engine_writer_flush_seconds: {
    help: 'Time from the first statement of a flush to its commit, including repetitions.',
    buckets: SECONDS,
  },
  engine_writer_flush_units: { help: 'Changes that one flush committed together.', buckets: UNITS },
} as const satisfies Record<string, { readonly help: string; readonly buckets: readonly number[] }>;

export type HistogramName = keyof typeof HISTOGRAMS;

/** Measured by each thread and added up. The names of the first two must stay. */
export const THREAD_GAUGES = {
  engine_queue_depth: 'Instances that the shards advanced in their latest turns.',
  engine_active_tasks: 'Steps that run in the server, or whose result waits for its instance.',
  engine_steps_waiting:
    'Steps that wait for a slot in the server, in all or of their tenant or instance.',
  engine_push_in_flight: 'Requests to worker endpoints.',
  engine_instances_due: 'Instances that are due and wait for their turn.',
  engine_writer_backlog_units: 'Uncommitted changes.',
  engine_writer_backlog_bytes: 'Characters of the rows of uncommitted changes.',
} as const;

export type ThreadGaugeName = keyof typeof THREAD_GAUGES;

export const FRONT_COUNTERS = {
  engine_connections_refused_total:
    'Client connections that were refused, because of the limit in all or per address.',
  engine_requests_refused_total:
    'Requests that were refused, because of the limit in flight per address.',
  engine_requests_misdirected_total:
    'Requests that were refused with 421, because another cell of the cluster has their tenant.',
  engine_webhooks_accepted_total:
    'Requests to triggers that started an instance or published an event.',
  engine_webhooks_repeated_total:
    'Requests to triggers that repeated a delivery, and so had no second effect.',
  engine_webhooks_refused_total: 'Requests to triggers that were refused with a status below 500.',
  engine_instance_reads_kept_total:
    'Reads of an instance that the front thread answered from its unchanged cached record.',
} as const;

export const FRONT_GAUGES = {
  engine_ready: '1 while /health/ready answers 200, else 0.',
  engine_database_up:
    '1 while this engine owns the database and got a response from it within 3 s, else 0; 0 on a standby.',
  engine_clock_skew_seconds:
    "How far the clock of the database, which the engine follows, is ahead of this machine's; 0 until it owns the database. A slope is drift, a step an adjusted clock.",
  engine_cluster_directory_up:
    '0 while the directory of the cluster is unreachable, else 1; 1 without a cluster.',
  engine_cluster_tenants: 'Tenants known to live in this cell; 0 without a cluster.',
  engine_cluster_held_tenants:
    'Tenants that are suspended while they move from this cell or to it.',
  engine_cluster_held_seconds:
    'How long the first of them has been suspended, as far as this engine knows; 0 without any.',
  engine_cluster_split_tenants:
    'Tenants that have rows in this cell but are placed in another one without a move; their requests are refused here.',
  engine_connections: 'Open client connections.',
  engine_requests_in_flight:
    'Requests that wait for a shard, including polls that wait for a task.',
  engine_polls_in_flight: 'Polls of workers that are not answered yet.',
  engine_streams_open: 'Open streams of instances and of changes.',
  engine_reads_active: 'Lists and reports that are being read from the database.',
  engine_reads_waiting: 'Lists and reports that wait for their turn.',
  engine_work_under_way_bytes:
    'Bodies that shards are processing, plus 3 KiB for each instance that they create; at most 64 MiB.',
} as const;

export type FrontMetricName = keyof typeof FRONT_COUNTERS | keyof typeof FRONT_GAUGES;

/** Read from the operating system, under the usual names. */
export const PROCESS_METRICS = {
  process_cpu_seconds_total: { type: 'counter', help: 'CPU time of all threads.' },
  process_start_time_seconds: {
    type: 'gauge',
    help: 'When the process was started, in seconds since 1970.',
  },
  process_resident_memory_bytes: { type: 'gauge', help: 'Memory of the process that is in RAM.' },
} as const;

export type ProcessMetricName = keyof typeof PROCESS_METRICS;

export const INFO_METRIC = {
  name: 'engine_info',
  help: 'Always 1; its labels have the version and the cell.',
} as const;

/** Read from the database by the sampler; each is counted up to `SAMPLE_ROWS_MAX`. */
export const ROW_GAUGES = {
  engine_instances_pending: 'Instances that are due and have not been advanced.',
  engine_instances_scheduled:
    'Instances that wait for a time: a start, a delay, a sleep, a time limit.',
  engine_instances_in_flight:
    'Instances with running steps in the server, or with work that can continue.',
  engine_oldest_pending_seconds: 'How long the oldest pending instance has been due.',
  engine_open_tasks: 'Worker tasks that are pending or claimed.',
  engine_approvals_open: 'Open approvals.',
  engine_dead_letters: 'Instances in the dead letter queue.',
  engine_pending_starts: 'Instances that are yet to start from collected creations.',
  engine_webhook_outbox_depth: 'Webhooks that wait to be delivered, or are parked.',
} as const;

export type RowGaugeName = keyof typeof ROW_GAUGES;
/** Bounds the cost of a sample, however many rows there are. */
export const SAMPLE_ROWS_MAX = 10_000;
/** By position in shared memory; all threads are of the same build. */
export const COUNTER_NAMES = Object.keys(COUNTERS) as CounterName[];

export const COUNTER_INDEX = Object.fromEntries(
  COUNTER_NAMES.map((name, index) => [name, index]),
) as Readonly<Record<CounterName, number>>;
