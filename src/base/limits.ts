/**
 * Every limit that is not part of a schema, as a named constant with its reason beside it. Reaching one
 * has a defined answer; docs/limits.md says what one meets there.
 */

/** Limits that no one needs to turn; those that the wire contract states are in `schema/`. */
export const LIMITS = {
  /** Requests that wait for a reply, over all connections. Past it: 503, so that memory is bounded. */
  requestsInFlightMax: 20_000,
  /**
   * Of one tenant, in a second and at once, that are told without delay that it asks too much. Those beyond are
   * held back, so that a loop of refusals does not take the front thread from the others; after the longest
   * time a client may rather believe that nobody answers.
   */
  refusalsPerSecond: 50,
  refusalsAtOnce: 50,
  refusalHeldMsMax: 2_000,
  /**
   * For so long after requests of two tenants none of them is alone. Then each has so many requests with the
   * shards at once, and so much work of large ones, or one of them: enough that a tenant keeps the writer
   * busy, and few enough that what they make of the next flush takes some milliseconds. The others wait
   * in the front thread, in turns of the tenants.
   */
  sharedForMs: 2_000,
  sharedRequestsPerShard: 16,
  sharedWorkBytesPerShard: 512 * 1024,
  /** Polls among them, and those of one tenant: however many wait for tasks, other requests find room. */
  pollsInFlightMax: 15_000,
  pollsInFlightPerTenantMax: 11_250,
  /**
   * Work of those requests: bytes of their bodies, and 3 KiB for each instance that they make, which takes
   * about as long. What makes instances is refused before that: when it would wait for longer than a second,
   * but not before it is what 16 clients with batches of 500 of 4 KiB have under way (56 MiB, of one tenant,
   * which may have three quarters), unless that takes more than eight seconds; and never below the least, with
   * which a slow database has enough to do. See `WorkInProgress`.
   */
  workBytesMax: 96 * 1024 * 1024,
  workBytesUnmeasured: 80 * 1024 * 1024,
  workBytesMin: 8 * 1024 * 1024,
  workBytesPerRow: 3 * 1024,
  workWaitMs: 1_000,
  workWaitMsMax: 8_000,
  /**
   * Of the work of requests beyond the second number, what a shard has at once: enough for a quarter of a second,
   * and five times as much memory. The others wait in the front thread, where they are their text.
   */
  workBytesPerShard: 12 * 1024 * 1024,
  workBytesLarge: 128 * 1024,
  /**
   * What a key of a tenant may ask for in a second, and ten times as much at once, unless its limits say
   * otherwise (`Admission`): two to five times what one server does, so that a load test of one tenant
   * (10,000 creations a second, batches of 1,000, 50 MB a second) is never refused, and a loop that has run
   * wild on a larger one is. Of definitions: two of 5,000 blocks a second.
   */
  tenantRates: { bytes: 128_000_000, rows: 50_000, blocks: 10_000, schedules: 1_000 },
  /** Each is a row that is read ahead, and 10,000 that fire every minute are 170 instances a second. */
  schedulesPerTenantMax: 10_000,
  /** A request that has no reply by then gets a 503; what it asked for may still happen. */
  requestTimeoutMs: 30_000,
  /**
   * How long requests wait for an engine that is starting
   * (docs/decisions/0003-ownership-and-engine-time.md).
   */
  startWaitMs: 10_000,
  /**
   * A database that has answered nothing for this long counts as away for readiness. The lease is
   * renewed every second, and a renewal may take two.
   */
  databaseSilenceMs: 3_000,
  /** Keys of tenants that are not revoked: the front thread has all of them in memory, 20 MB. */
  apiKeysMax: 100_000,
  /** Request lines and headers together. */
  headerBytesMax: 16 * 1024,
  /**
   * Open files that connections of clients never take: connections to the database, files, calls of
   * http_request and webhooks. Where so many are not to be had, connections take half of what there is.
   */
  descriptorsReserved: 512,
  /** Beyond the bounds, and out of the descriptors that connections never take: to ask how the engine is. */
  spareConnections: 32,
  /** One of them that has asked nothing by then is closed. */
  spareSilenceMs: 2_000,
  /** Of all connections; the rest is left for other addresses. */
  connectionShareOfAddress: 0.75,
  /** Of all requests in flight, parked polls and streams included; the rest is left for other addresses. */
  requestShareOfAddress: 0.75,
  /** Requests on one connection that wait for answers; one more is refused, and the connection closed. */
  pipelinedRequestsMax: 100,
  /** A body that does not arrive is given up, so that slow clients hold no memory. */
  bodyIdleTimeoutMs: 30_000,
  /** Lists and polls stop here and say so (docs/limits.md). */
  responseBytesMax: 8 * 1024 * 1024,
  /**
   * Records of instances that the front thread keeps for those who read them again; one that is longer
   * than the second is asked for each time.
   */
  keptRecordsCharactersMax: 16 * 1024 * 1024,
  keptRecordCharactersMax: 1024 * 1024,
  /**
   * Rows that a list with filters of its own looks at for one page, at first and in all: 0.1 s at most. A page
   * that ends there says where to go on. At first few, because an index gives few rows in order at once, for
   * more of them it may be sorted.
   */
  firstRowsWalkedMax: 500,
  rowsWalkedMax: 20_000,
  /** The same where another row is fetched by its key for each. */
  rowsFetchedMax: 5_000,
  /** A list that takes longer is answered 503. */
  slowReadMs: 10_000,
  /**
   * Connections for lists and reports: each may hold an answer of `responseBytesMax`. One tenant has half of
   * them at most, so that another one's list begins at once and shares the processor with two others only.
   */
  readsMax: 4,
  readsPerTenantMax: 2,
  /** Those that wait for a connection, in turns of their tenants: a few kilobytes each. */
  readsWaitingMax: 1_024,
  readsWaitingPerTenantMax: 256,
  /** Beyond this a read of a tenant that asks for several at once is a long one (`ReadPace`). */
  longReadMs: 50,
  /** How long one waits: what would take longer is refused soon, so that its caller may come again. */
  readWaitMs: 1_000,
  /**
   * Large bodies that the front parses at once, a piece of each in turn with all else that it does: the others
   * wait, in turns of their tenants, in the memory of bodies under way.
   */
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
   * What the actors of one kind may take in the memory of a shard, estimated; in a small heap it is less
   * (`thread-memory.ts`). Beyond it idle ones are let go, those first that are needed last.
   */
  residentBytesMax: 512 * 1024 * 1024,
  /** Units of one actor that are not acknowledged: beyond it its messages wait. */
  unitsPerActorMax: 16,
  /** Their JSON text, though one may be larger: neighbours share the way to the database. */
  unitBytesPerActorMax: 4 * 1024 * 1024,
  /** Behind an outage: workers say again within some seconds what they could not say in it. */
  reportGraceMs: 30_000,
  /** Units of one shard that are not acknowledged: beyond it new outside requests get a 503. */
  unitsPerShardMax: 20_000,
  unitBytesPerShardMax: 128 * 1024 * 1024,
  /** Outputs, items and parameters that one actor keeps, as JSON: an instance with more fails. */
  keptCharactersMax: 128 * 1024 * 1024,
  /** Messages that one loading or busy actor keeps; beyond it requests get a 503. */
  stashPerActorMax: 10_000,
  /** Leaf executions of one actor per turn: a long loop is many units, and neighbours run between. */
  stepsPerTurn: 250,
  outputBytesPerTurn: 1024 * 1024,
  /**
   * A turn of a shard ends after this long, so that messages and timers are seen in between; and so
   * does the part of one actor in it, should its steps be costly ones.
   */
  turnMs: 8,
  /** In-process steps with an outside effect that one shard runs at once; others wait their turn. */
  handlersPerShardMax: 256,
  /** Those of one instance, so that one whose handlers hang leaves room for the others. */
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
   * Calls of either sort that wait for a slot, a kilobyte and their parameters each; beyond it one fails
   * retryably. It is far above what an hour of a slow service leaves, because a step without a retry
   * policy fails with it.
   */
  handlersWaitingMax: 100_000,
  handlersWaitingPerTenantMax: 75_000,
  /**
   * Instances that are due and on their way at once on one shard: those that are read for it, and units of
   * those that go on. More would only lie in memory, and requests would be committed behind all of them.
   */
  dueLoadsMax: 512,
  dueUnitsMax: 256,
  /**
   * The same while another tenant asks: its requests are committed behind few of them. With 24 a burst of 10,000 was
   * late by 1.2 s instead of 0.3 s, and the other tenant waited a few milliseconds less.
   */
  dueUnitsSharedMax: 64,
  /** Text on its way to the database beyond which outcomes wait, so that requests need not. */
  unitBytesForOutcomesMax: 32 * 1024 * 1024,
  /** Timers are read ahead this far; later ones stay in their table. */
  timerHorizonMs: 60_000,
  /**
   * So long before its time an instance is loaded: 10,000 of them take two seconds of a shard, in pieces of the
   * second number, so that what somebody asks for waits behind one piece at most.
   */
  timerLeadMs: 10_000,
  aheadLoadsMax: 64,
  /** Rows taken at a time from what is read when a shard starts. */
  recoveryPageRows: 5_000,
  /**
   * Waiting tasks that a shard keeps in memory, 300 bytes each, and those of them that polls of one
   * kind (a handler, with a tenant and a queue name or without) may get. The rest is read when these
   * run low: few at first, because most polls find all there is, then four times as many each time.
   */
  readyTasksMax: 100_000,
  windowTasksMax: 20_000,
  readyPageRowsMin: 200,
  readyPageRowsMax: 5_000,
  /** Kinds of polls that a shard remembers; of others it reads the tasks when they come again. */
  pollWindowsMax: 10_000,
  /**
   * Parked long polls of one shard, and of one tenant in it, so that a quarter is left to the others.
   * Beyond it a poll is answered at once.
   */
  parkedPollsMax: 10_000,
  parkedPollsPerTenantMax: 7_500,
  pollWaitMsMax: 60_000,
  /** Entries of a task's history. */
  taskHistoryMax: 100,
  /** Signals that an instance keeps for a step that has yet to wait: its actor has them in memory. */
  keptSignalsMax: 1_000,
  keptSignalCharactersMax: 4 * 1024 * 1024,
  checkpointBytesMax: 262_144,
  /** JSON of the blocks that one instance runs beside its sequence's: it is loaded with its row. */
  injectedBytesMax: 1024 * 1024,
  /** Children of children: a sequence that starts itself ends there. */
  childDepthMax: 16,
  /** Outputs that a fork copies: they are one unit, and in memory until it is committed. */
  forkBytesMax: 16 * 1024 * 1024,
  /** Compiled plans per shard, by the bytes of their definitions. */
  planCacheBytes: 64 * 1024 * 1024,
  /** How often a poll of the same worker writes its registry row. */
  workerSeenEveryMs: 15_000,
  /** Addresses that are told of ended instances: each is one row more with the end of an instance. */
  webhookUrlsMax: 32,
  /** A change of many instances that is not done by then goes on as a job, which its caller is told. */
  bulkAnswerMs: 10_000,
  /** Such jobs of one tenant that have not ended: one is worked on at a time. */
  bulkJobsPerTenantMax: 100,
  /** How long one can be asked for after its end; older ones go when the tenant has a new one. */
  bulkJobKeptMs: 7 * 24 * 60 * 60 * 1_000,
  /** From the signal to the exit; what is not finished by then runs again after the restart. */
  shutdownMs: 2_500,
} as const;
