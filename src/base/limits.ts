/** Limits without a setting, with their reasons; those of the wire contract are in `schema/`. */

/** The behaviour at each limit is defined in docs/limits.md. */
export const LIMITS = {
  /** Requests that wait for a reply, over all connections. Beyond it 503, to bound memory. */
  requestsInFlightMax: 20_000,
  /**
   * Refusals of one tenant that are sent without delay, per second and as a burst. Further ones are delayed, so that
   * a loop of them does not take the front thread from others, but for less than the time-out of clients.
   */
  refusalsPerSecond: 50,
  refusalsAtOnce: 50,
  refusalHeldMsMax: 2_000,
  /**
   * The server counts as shared for this long after requests of two tenants. While shared, each tenant may have this
   * many requests in the shards, and this much work of large ones, or a single request: enough to keep the writer
   * busy, and few enough that their part of the next flush takes some milliseconds. Further requests wait in the
   * front thread, in turns.
   */
  sharedForMs: 2_000,
  sharedRequestsPerShard: 16,
  sharedWorkBytesPerShard: 512 * 1024,
  /** Polls among the requests in flight, in all and per tenant, so that other requests find room. */
  pollsInFlightMax: 15_000,
  pollsInFlightPerTenantMax: 11_250,
  /**
   * Work of the requests in flight (`WorkInProgress`): bytes of their bodies, and 3 KiB for each instance that they
   * create, which takes about as long. Creations are refused earlier: when they would wait for more than a second,
   * but not below the work of 16 clients with batches of 500 of 4 KiB (56 MiB; one tenant may have three quarters)
   * unless it takes more than eight seconds, and never below the minimum, which keeps a slow database busy.
   */
  workBytesMax: 96 * 1024 * 1024,
  workBytesUnmeasured: 80 * 1024 * 1024,
  workBytesMin: 8 * 1024 * 1024,
  workBytesPerRow: 3 * 1024,
  workWaitMs: 1_000,
  workWaitMsMax: 8_000,
  /**
   * Work of requests larger than the second number that one shard has at once: a quarter of a second, and five times
   * as much memory. Further requests wait as text in the front thread.
   */
  workBytesPerShard: 12 * 1024 * 1024,
  workBytesLarge: 128 * 1024,
  /**
   * The request rates of a tenant per second, with ten times as much as a burst, unless its own limits differ
   * (`Admission`). Two to five times the throughput of one server, so that a load test (10,000 creations and 50 MB
   * per second) is never refused, but a runaway loop is. For definitions: two of 5,000 blocks per second.
   */
  tenantRates: { bytes: 128_000_000, rows: 50_000, blocks: 10_000, schedules: 1_000 },
  /** Each schedule is a row that is read ahead, and 10,000 that fire every minute are 170 instances a second. */
  schedulesPerTenantMax: 10_000,
  /** A request without a reply gets a 503; its effect may still happen. */
  requestTimeoutMs: 30_000,
  startWaitMs: 10_000,
  /** The database is not ready after this silence: the lease is renewed every second, which may take two. */
  databaseSilenceMs: 3_000,
  /** Live keys of tenants: the front thread has all of them in memory, 20 MB. */
  apiKeysMax: 100_000,
  headerBytesMax: 16 * 1024,
  /** File descriptors reserved for the database, http_request and webhooks; half of them when the process has fewer. */
  descriptorsReserved: 512,
  /** Connections beyond the bounds for health checks, from the reserved descriptors. */
  spareConnections: 32,
  /** A spare connection without a request is closed after this time. */
  spareSilenceMs: 2_000,
  /** The share of one address; the rest is left for other addresses. */
  connectionShareOfAddress: 0.75,
  /** The share of one address, parked polls and streams included. */
  requestShareOfAddress: 0.75,
  /** Unanswered requests on one connection. The next one is refused, and the connection closed. */
  pipelinedRequestsMax: 100,
  /** A body that stalls is refused, so that slow clients hold no memory. */
  bodyIdleTimeoutMs: 30_000,
  /** Lists and polls are cut at this size; the response shows it. */
  responseBytesMax: 8 * 1024 * 1024,
  /** Instance records that the front thread caches; one larger than the second number is never cached. */
  keptRecordsCharactersMax: 16 * 1024 * 1024,
  keptRecordCharactersMax: 1024 * 1024,
  /**
   * Rows that a filtered list reads for one page, at first and in total: 0.1 s at most. A page that ends there has a
   * cursor. The first read is small, because an index returns a few rows in order at once, while many may be sorted.
   */
  firstRowsWalkedMax: 500,
  rowsWalkedMax: 20_000,
  /** The total when each row requires a lookup of another row. */
  rowsFetchedMax: 5_000,
  slowReadMs: 10_000,
  /**
   * Connections for lists and reports, each with a response of `responseBytesMax` at most. One tenant has half of
   * them at most, so that the list of another tenant begins at once.
   */
  readsMax: 4,
  readsPerTenantMax: 2,
  /** Reads that wait for a connection, in turns of their tenants: a few kilobytes each. */
  readsWaitingMax: 1_024,
  readsWaitingPerTenantMax: 256,
  /** A longer read counts as long for a tenant with several reads at once (`ReadPace`). */
  longReadMs: 50,
  readWaitMs: 1_000,
  /** Large bodies that the front thread parses at once, in pieces between other work. Further ones wait, in turns. */
  frontBodiesMax: 2,
  frontBodiesPerTenantMax: 1,
  frontBodiesWaitingMax: 256,
  frontBodiesWaitingPerTenantMax: 64,
  /**
   * Open streams of instances, and as many of changes: each may hold a batch of a mebibyte. A third is left to other
   * tenants, some to the root key, and some to tenants that have few.
   */
  streamsMax: 384,
  streamsPerTenantMax: 256,
  streamsOfRoot: 32,
  streamsOfSmall: 64,
  streamsOfSmallMax: 8,
  /**
   * Estimated memory of the actors of one kind in a shard; less in a small heap (`thread-memory.ts`). Beyond it idle
   * actors are evicted, first those that are needed last.
   */
  residentBytesMax: 512 * 1024 * 1024,
  /** Unacknowledged units of one actor. Beyond it its messages wait. */
  unitsPerActorMax: 16,
  /** JSON text of these units; a single unit may be larger. */
  unitBytesPerActorMax: 4 * 1024 * 1024,
  /** The grace period after an outage, in which workers repeat the reports that failed during it. */
  reportGraceMs: 30_000,
  /** Unacknowledged units of one shard. Beyond it external requests get a 503. */
  unitsPerShardMax: 20_000,
  unitBytesPerShardMax: 128 * 1024 * 1024,
  /** JSON of the outputs, items and parameters of one actor. An instance with more fails. */
  keptCharactersMax: 128 * 1024 * 1024,
  /** Messages that wait for one loading or busy actor. Beyond it requests get a 503. */
  stashPerActorMax: 10_000,
  /** Leaf executions of one actor per turn, so that other actors run between the units of a long loop. */
  stepsPerTurn: 250,
  outputBytesPerTurn: 1024 * 1024,
  /** The longest turn of a shard, and of one actor in it. Messages and timers are handled between turns. */
  turnMs: 8,
  /** In-process steps with an outside effect that one shard runs at once; further ones wait. */
  handlersPerShardMax: 256,
  /** Per instance, so that hanging handlers leave room for others. */
  handlersPerInstanceMax: 100,
  /** Per tenant: a quarter is left for others. */
  handlersPerTenantMax: 192,
  /** Calls with a longer time limit count as long, and never hold the slots of short ones. */
  shortCallMsMax: 60_000,
  /** The same three limits for long calls, which mostly wait: each holds a socket. */
  longHandlersPerShardMax: 128,
  longHandlersPerTenantMax: 96,
  longHandlersPerInstanceMax: 50,
  /**
   * Short and long calls that wait for a slot, a kilobyte and their parameters each. Beyond it a call fails retryably.
   * Far more than an hour of a slow service leaves, because a step without a retry policy fails with its call.
   */
  handlersWaitingMax: 100_000,
  handlersWaitingPerTenantMax: 75_000,
  /**
   * Due instances in progress on one shard: those that are loading, and units of those that continue. With more,
   * requests would be committed behind all of them.
   */
  dueLoadsMax: 512,
  dueUnitsMax: 256,
  /**
   * `dueUnitsMax` while another tenant sends requests, which are committed behind few units then. With 24 a burst of
   * 10,000 was late by 1.2 s instead of 0.3 s, and the other tenant waited a few milliseconds less.
   */
  dueUnitsSharedMax: 64,
  /** Uncommitted text beyond which outcomes wait, so that requests do not. */
  unitBytesForOutcomesMax: 32 * 1024 * 1024,
  /** Timers are read ahead this far; later ones stay in their table. */
  timerHorizonMs: 60_000,
  /**
   * How early an instance is loaded: 10,000 take two seconds of a shard, in pieces of the second number, so that a
   * request waits behind one piece at most.
   */
  timerLeadMs: 10_000,
  aheadLoadsMax: 64,
  recoveryPageRows: 5_000,
  /**
   * Waiting tasks that a shard keeps in memory, 300 bytes each, in all and for polls of one kind (a handler, with or
   * without a tenant and a queue name). When these run low, more are read: few at first, because most polls find all
   * there is, then four times as many each time.
   */
  readyTasksMax: 100_000,
  windowTasksMax: 20_000,
  readyPageRowsMin: 200,
  readyPageRowsMax: 5_000,
  /** Kinds of polls that a shard caches; for others it reads the tasks again. */
  pollWindowsMax: 10_000,
  /** Parked long polls of one shard, in all and per tenant. Further polls are answered at once. */
  parkedPollsMax: 10_000,
  parkedPollsPerTenantMax: 7_500,
  pollWaitMsMax: 60_000,
  taskHistoryMax: 100,
  /** Signals that an instance keeps in memory until a step waits for them. */
  keptSignalsMax: 1_000,
  keptSignalCharactersMax: 4 * 1024 * 1024,
  checkpointBytesMax: 262_144,
  /** JSON of the blocks injected into one instance, which is loaded with its row. */
  injectedBytesMax: 1024 * 1024,
  /** The depth of child instances, so that a sequence that starts itself ends. */
  childDepthMax: 16,
  /** Outputs that a fork copies: one unit, in memory until it is committed. */
  forkBytesMax: 16 * 1024 * 1024,
  /** Compiled plans per shard, by the bytes of their definitions. */
  planCacheBytes: 64 * 1024 * 1024,
  /** The interval at which polls of a worker update its registry row. */
  workerSeenEveryMs: 15_000,
  /** Addresses that receive webhooks of ended instances: each adds a row at the end of an instance. */
  webhookUrlsMax: 32,
  bulkAnswerMs: 10_000,
  /** Unfinished bulk jobs of one tenant, of which one runs at a time. */
  bulkJobsPerTenantMax: 100,
  /** The retention of finished bulk jobs; older ones are deleted when the tenant has a new one. */
  bulkJobKeptMs: 7 * 24 * 60 * 60 * 1_000,
  /** From the signal to the exit; unfinished work runs again after the restart. */
  shutdownMs: 2_500,
} as const;
