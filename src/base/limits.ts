/** Limits that nobody needs to configure, with their reasons; those of the wire contract are in `schema/`. */

/** Reaching one has a defined answer (docs/limits.md). */
export const LIMITS = {
  /** Requests that wait for a reply, over all connections. Past it: 503, so that memory is bounded. */
  requestsInFlightMax: 20_000,
  /**
   * Refusals of one tenant, in a second and at once, that are sent without delay. Those beyond are delayed, so that a
   * loop of them does not take the front thread from others, but not for so long that a client gives up.
   */
  refusalsPerSecond: 50,
  refusalsAtOnce: 50,
  refusalHeldMsMax: 2_000,
  /**
   * For so long after requests of two tenants the server counts as shared. Each tenant then has so many requests with
   * the shards at once, and so much work of large ones, or one of them: enough to keep the writer busy, and few enough
   * that their part of the next flush takes some milliseconds. The others wait in the front thread, in turns.
   */
  sharedForMs: 2_000,
  sharedRequestsPerShard: 16,
  sharedWorkBytesPerShard: 512 * 1024,
  /** Polls among them, in all and of one tenant, so that other requests find room. */
  pollsInFlightMax: 15_000,
  pollsInFlightPerTenantMax: 11_250,
  /**
   * Work of those requests (`WorkInProgress`): bytes of their bodies, and 3 KiB for each instance that they create,
   * which takes about as long. Creations are refused earlier: when they would wait for more than a second, but not
   * below what 16 clients with batches of 500 of 4 KiB have in flight (56 MiB; one tenant may have three quarters)
   * unless that takes more than eight seconds, and never below the least, which keeps a slow database busy.
   */
  workBytesMax: 96 * 1024 * 1024,
  workBytesUnmeasured: 80 * 1024 * 1024,
  workBytesMin: 8 * 1024 * 1024,
  workBytesPerRow: 3 * 1024,
  workWaitMs: 1_000,
  workWaitMsMax: 8_000,
  /**
   * Work of requests beyond the second number that a shard has at once: a quarter of a second, and five times as much
   * memory. The others wait as text in the front thread.
   */
  workBytesPerShard: 12 * 1024 * 1024,
  workBytesLarge: 128 * 1024,
  /**
   * What the keys of a tenant may request in a second, and ten times as much at once, unless its own limits differ
   * (`Admission`): two to five times what one server does, so that a load test (10,000 creations a second, 50 MB a
   * second) is never refused, and a runaway loop is. Of definitions: two of 5,000 blocks a second.
   */
  tenantRates: { bytes: 128_000_000, rows: 50_000, blocks: 10_000, schedules: 1_000 },
  /** Each is a row that is read ahead, and 10,000 that fire every minute are 170 instances a second. */
  schedulesPerTenantMax: 10_000,
  /** A request without a reply by then gets a 503; its effect may still happen. */
  requestTimeoutMs: 30_000,
  startWaitMs: 10_000,
  /** After this silence a database is not ready: the lease is renewed every second, and that may take two. */
  databaseSilenceMs: 3_000,
  /** Keys of tenants that are not revoked: the front thread has all of them in memory, 20 MB. */
  apiKeysMax: 100_000,
  /** Request lines and headers together. */
  headerBytesMax: 16 * 1024,
  /** Open files reserved for the database, http_request and webhooks; with fewer in all, half of them are. */
  descriptorsReserved: 512,
  /** Connections beyond the bounds, to request the health of the engine: out of the reserved files. */
  spareConnections: 32,
  /** One of them without a request by then is closed. */
  spareSilenceMs: 2_000,
  /** Of all connections; the rest is left for other addresses. */
  connectionShareOfAddress: 0.75,
  /** Of all requests in flight, parked polls and streams included; the rest is left for other addresses. */
  requestShareOfAddress: 0.75,
  /** Requests on one connection that wait for answers; one more is refused, and the connection closed. */
  pipelinedRequestsMax: 100,
  /** A body that does not arrive is given up, so that slow clients hold no memory. */
  bodyIdleTimeoutMs: 30_000,
  /** Lists and polls are cut here, which their answers show. */
  responseBytesMax: 8 * 1024 * 1024,
  /** Records of instances that the front thread caches; one beyond the second number is never cached. */
  keptRecordsCharactersMax: 16 * 1024 * 1024,
  keptRecordCharactersMax: 1024 * 1024,
  /**
   * Rows that a filtered list reads for one page, at first and in all: 0.1 s at most. A page that ends there has a
   * cursor. Few at first, since an index gives few rows in order at once, while many may be sorted.
   */
  firstRowsWalkedMax: 500,
  rowsWalkedMax: 20_000,
  /** The same where another row is fetched by its key for each. */
  rowsFetchedMax: 5_000,
  slowReadMs: 10_000,
  /**
   * Connections for lists and reports, each with an answer of `responseBytesMax` at most. One tenant has half of them
   * at most, so that the list of another begins at once.
   */
  readsMax: 4,
  readsPerTenantMax: 2,
  /** Those that wait for a connection, in turns of their tenants: a few kilobytes each. */
  readsWaitingMax: 1_024,
  readsWaitingPerTenantMax: 256,
  /** Beyond this a read of a tenant with several at once is a long one (`ReadPace`). */
  longReadMs: 50,
  readWaitMs: 1_000,
  /** Large bodies that the front parses at once, in pieces between other work. The others wait, in turns. */
  frontBodiesMax: 2,
  frontBodiesPerTenantMax: 1,
  frontBodiesWaitingMax: 256,
  frontBodiesWaitingPerTenantMax: 64,
  /**
   * Open streams of instances, and as many of changes: each may hold a batch of a mebibyte. A third is
   * left to other tenants; some of it to the root key, and some to tenants that have few.
   */
  streamsMax: 384,
  streamsPerTenantMax: 256,
  streamsOfRoot: 32,
  streamsOfSmall: 64,
  streamsOfSmallMax: 8,
  /**
   * Estimated memory of the actors of one kind in a shard; less in a small heap (`thread-memory.ts`). Beyond it idle
   * actors are evicted, those first that are needed last.
   */
  residentBytesMax: 512 * 1024 * 1024,
  /** Unacknowledged units of one actor; beyond it its messages wait. */
  unitsPerActorMax: 16,
  /** Their JSON text, though one unit may be larger. */
  unitBytesPerActorMax: 4 * 1024 * 1024,
  /** After an outage: workers repeat within some seconds what they could not report during it. */
  reportGraceMs: 30_000,
  /** Unacknowledged units of one shard; beyond it new outside requests get a 503. */
  unitsPerShardMax: 20_000,
  unitBytesPerShardMax: 128 * 1024 * 1024,
  /** Outputs, items and parameters that one actor keeps, as JSON: an instance with more fails. */
  keptCharactersMax: 128 * 1024 * 1024,
  /** Messages that one loading or busy actor keeps; beyond it requests get a 503. */
  stashPerActorMax: 10_000,
  /** Leaf executions of one actor per turn, so that other actors run between the units of a long loop. */
  stepsPerTurn: 250,
  outputBytesPerTurn: 1024 * 1024,
  /** The longest turn of a shard, and part of one actor in it: messages and timers are handled between turns. */
  turnMs: 8,
  /** In-process steps with an outside effect that one shard runs at once; others wait their turn. */
  handlersPerShardMax: 256,
  /** Those of one instance, so that hanging handlers leave room for others. */
  handlersPerInstanceMax: 100,
  /** Those of one tenant: a quarter is left for the others. */
  handlersPerTenantMax: 192,
  /** Calls whose time limit is beyond this are long ones, and never hold the slots of the others. */
  shortCallMsMax: 60_000,
  /** The same three bounds of long calls, which mostly wait for others: each holds a socket. */
  longHandlersPerShardMax: 128,
  longHandlersPerTenantMax: 96,
  longHandlersPerInstanceMax: 50,
  /**
   * Calls of either sort that wait for a slot, a kilobyte and their parameters each; beyond it one fails retryably.
   * Far more than an hour of a slow service leaves, because a step without a retry policy fails with it.
   */
  handlersWaitingMax: 100_000,
  handlersWaitingPerTenantMax: 75_000,
  /**
   * Due instances in progress at once on one shard: those being loaded, and units of those that continue. With more,
   * requests would be committed behind all of them.
   */
  dueLoadsMax: 512,
  dueUnitsMax: 256,
  /**
   * The same while another tenant sends requests, which are committed behind few of them. With 24 a burst of 10,000
   * was late by 1.2 s instead of 0.3 s, and the other tenant waited a few milliseconds less.
   */
  dueUnitsSharedMax: 64,
  /** Uncommitted text beyond which outcomes wait, so that requests need not. */
  unitBytesForOutcomesMax: 32 * 1024 * 1024,
  /** Timers are read ahead this far; later ones stay in their table. */
  timerHorizonMs: 60_000,
  /**
   * So long before its time an instance is loaded: 10,000 of them take two seconds of a shard, in pieces of the second
   * number, so that a request waits behind one piece at most.
   */
  timerLeadMs: 10_000,
  aheadLoadsMax: 64,
  /** Rows of one page of what is read when a shard starts. */
  recoveryPageRows: 5_000,
  /**
   * Waiting tasks that a shard keeps in memory, 300 bytes each, in all and for polls of one kind (a handler, with a
   * tenant and a queue name or without). The rest is read when these run low: few at first, because most polls find
   * all there is, then four times as many each time.
   */
  readyTasksMax: 100_000,
  windowTasksMax: 20_000,
  readyPageRowsMin: 200,
  readyPageRowsMax: 5_000,
  /** Kinds of polls that a shard remembers; for others it reads the tasks again. */
  pollWindowsMax: 10_000,
  /** Parked long polls of one shard, and of one tenant in it; beyond it a poll is answered at once. */
  parkedPollsMax: 10_000,
  parkedPollsPerTenantMax: 7_500,
  pollWaitMsMax: 60_000,
  /** Entries of a task's history. */
  taskHistoryMax: 100,
  /** Signals that an instance keeps, in memory, for a step that does not wait yet. */
  keptSignalsMax: 1_000,
  keptSignalCharactersMax: 4 * 1024 * 1024,
  checkpointBytesMax: 262_144,
  /** JSON of the blocks injected into one instance: it is loaded with its row. */
  injectedBytesMax: 1024 * 1024,
  /** Children of children: a sequence that starts itself ends there. */
  childDepthMax: 16,
  /** Outputs that a fork copies: they are one unit, and in memory until it is committed. */
  forkBytesMax: 16 * 1024 * 1024,
  /** Compiled plans per shard, by the bytes of their definitions. */
  planCacheBytes: 64 * 1024 * 1024,
  /** How often a poll of the same worker writes its registry row. */
  workerSeenEveryMs: 15_000,
  /** Addresses that receive webhooks of ended instances: each is one row more with the end of an instance. */
  webhookUrlsMax: 32,
  /** A change of many instances that takes longer continues as a job, which the answer names. */
  bulkAnswerMs: 10_000,
  /** Unfinished jobs of one tenant, of which one runs at a time. */
  bulkJobsPerTenantMax: 100,
  /** How long a job can be read after its end; older ones are deleted when the tenant has a new one. */
  bulkJobKeptMs: 7 * 24 * 60 * 60 * 1_000,
  /** From the signal to the exit; unfinished work runs again after the restart. */
  shutdownMs: 2_500,
} as const;
