/** The operations, typed, and the table by which they are sent. Written by `npm run generate`. */

import type {
  CallOptions,
  CreationOptions,
  EventStream,
  List,
  OperationRow,
} from '../client/operation.js';
import type {
  AcceptHandoff,
  Action,
  ActionsListQuery,
  Activity,
  ActivityGetQuery,
  AnswerApproval,
  ApiKey,
  ApiKeysListQuery,
  AppendProvenance,
  ApplyMigration,
  Approval,
  ApprovalAnswered,
  ApprovalLink,
  ApprovalsListQuery,
  AttachCapsule,
  AuditEntry,
  BatchAction,
  BatchActionResult,
  BatchCreated,
  BlockOutput,
  BlocksInjected,
  BulkJob,
  BulkJobsListQuery,
  BulkReschedule,
  BulkState,
  BulkUpdated,
  CapsuleAttached,
  CapsuleImported,
  Cells,
  CellsMovesQuery,
  ChangesListQuery,
  ChangesStreamQuery,
  Checkpoint,
  CheckpointBoundary,
  CheckpointBoundaryDetail,
  CheckpointSaved,
  CheckpointsPruned,
  ClaimExecution,
  CompareSequences,
  CompleteTask,
  ContextPatched,
  ContinuityCheckpointQuery,
  ContinuityCheckpointsQuery,
  ContinuityEffectsQuery,
  ContinuityExecution,
  ContinuityGetQuery,
  ContinuityLocation,
  ContinuityLocationsQuery,
  ContinuityProvenanceQuery,
  ContinuityVerifyProvenanceQuery,
  CreateBatch,
  CreateCredential,
  CreateExecution,
  CreateHandoff,
  CreateInstance,
  CreateRelease,
  CreateSchedule,
  CreateSequence,
  CreateSubscription,
  CreateTrigger,
  Credential,
  CredentialsListQuery,
  CronListQuery,
  CronNextFiresQuery,
  CronSchedule,
  DeliveryAttempt,
  DeliverySummary,
  DryRun,
  EffectReceipt,
  EvaluationReport,
  EventDetails,
  EventReceipt,
  EventReceipts,
  EventsListQuery,
  ExchangeTasks,
  ExportHandoff,
  FailTask,
  FailureAttributes,
  FailureGroups,
  ForkInstance,
  GateReport,
  HandlerNames,
  HandlersQuery,
  Handoff,
  HandoffAccepted,
  HandoffExported,
  HandoffPreview,
  HandoffsGetQuery,
  Health,
  HeartbeatAccepted,
  HeartbeatTask,
  ImportCapsule,
  Info,
  InjectBlocks,
  InstanceCounts,
  InstanceCreated,
  InstanceExplanation,
  InstanceForked,
  InstanceMigrated,
  InstanceResult,
  InstanceRetried,
  InstancesAttemptsQuery,
  InstancesAuditQuery,
  InstancesBatchActionQuery,
  InstancesBulkRescheduleQuery,
  InstancesBulkStateQuery,
  InstancesChildrenQuery,
  InstancesCountsQuery,
  InstancesCreateQuery,
  InstancesDeadLettersQuery,
  InstancesEffectsQuery,
  InstancesFailureAttributesQuery,
  InstancesFailuresQuery,
  InstancesListQuery,
  InstancesLogsQuery,
  InstancesMigrated,
  InstancesOutputsQuery,
  InstancesSignalQuery,
  InstancesSignalsQuery,
  InstancesSlowestQuery,
  InstancesStreamQuery,
  InstancesTimelineQuery,
  InstancesTreeQuery,
  KeyMinted,
  LogLine,
  LogsListQuery,
  MakeApprovalLink,
  MigratedInstance,
  MigrateInstance,
  MigrateInstances,
  MigrateTo,
  MigrationPlan,
  MigrationRecord,
  MigrationsGetQuery,
  MintKey,
  NextFires,
  OpenApiDocument,
  OutboxEntry,
  PatchContext,
  PatchState,
  PendingStart,
  PendingStartsListQuery,
  PlaceExecution,
  PlacementDecision,
  PlanMigration,
  PollQueue,
  PollTasks,
  PreviewHandoff,
  PreviewSchedule,
  PromoteRelease,
  ProvenanceEntry,
  ProvenanceVerdict,
  PruneCheckpoints,
  PutRateLimit,
  PutTenantLimits,
  PutWorkerEndpoint,
  QueueSeries,
  Queues,
  QueuesListQuery,
  QueuesSeriesQuery,
  RateLimit,
  RateLimitsListQuery,
  Redelivered,
  RedeliverPreview,
  RegisterRuntime,
  Release,
  ReleaseDecision,
  ReleaseSeries,
  ReleasesListQuery,
  ReleasesSeriesQuery,
  ResolveEffect,
  ResumedFrom,
  ResumeFrom,
  RetryInstance,
  RunSchedule,
  RuntimeCapabilities,
  RuntimesListQuery,
  SaveCheckpoint,
  ScheduleCreated,
  SchedulePreview,
  ScheduleRun,
  SearchHit,
  SearchListQuery,
  SemanticDiff,
  SendEvent,
  SendEvents,
  SendSignal,
  SequenceCreated,
  SequenceDefinition,
  SequenceDeletionPreview,
  SequenceListed,
  SequenceSteps,
  SequencesByNameQuery,
  SequencesCreateQuery,
  SequencesDeleteQuery,
  SequencesListQuery,
  SequencesStepsQuery,
  SequencesValidateQuery,
  SequencesVersionsQuery,
  SequenceValidated,
  SignalAccepted,
  SignalAnswer,
  SlowestRuns,
  StartCanary,
  StepAttempt,
  StepLogLine,
  StoredEvent,
  StoredSignal,
  SubscriptionCreated,
  TaskInstance,
  TaskStats,
  TasksExchanged,
  Tenant,
  TenantBody,
  TenantLimits,
  TenantMove,
  TenantsListQuery,
  Timeline,
  TreeNode,
  Trigger,
  TriggerFired,
  TriggersListQuery,
  UpdateCredential,
  UpdateSchedule,
  UpdateSequence,
  UpdateSubscription,
  UpdateTrigger,
  ValidateRelease,
  ValidationReport,
  WebhookSubscription,
  WebhooksDeliveriesQuery,
  WebhooksOutboxQuery,
  WebhooksSubscriptionDeliveriesQuery,
  WebhooksSubscriptionsQuery,
  WebhookTaken,
  WhoAmI,
  WorkerAttempt,
  WorkerEndpoint,
  WorkerEndpointsListQuery,
  WorkerInfo,
  WorkersAttemptsQuery,
  WorkersListQuery,
  WorkersStatsQuery,
  WorkersTasksQuery,
  WorkerTask,
} from './types.js';

/** Every operation of the server, by its name. */
export interface Operations {
  readonly health: {
    /**
     * Answer 200 while the process runs. Liveness probe. Open to everyone. Served at the root as
     * well: /health/live.
     */
    live(options?: CallOptions): Promise<Health>;
    /**
     * Answer 200 while this engine owns the database and can reach it. Readiness probe. Open to
     * everyone. Served at the root as well: /health/ready.
     */
    ready(options?: CallOptions): Promise<Health>;
  };
  /**
   * Get the versions of the server and of its schemas. Open to everyone. Served at the root as
   * well: /info.
   */
  info(options?: CallOptions): Promise<Info>;
  /**
   * Get the metrics in the text format of Prometheus. Text format version 0.0.4. For the root key
   * and for keys with the capability operator or auditor. Served at the root as well: /metrics.
   */
  metrics(options?: CallOptions): Promise<string>;
  /**
   * List built-in handlers and those of workers. For the root key and for keys with the
   * capability operator or worker or auditor. Unknown parameters are refused.
   */
  handlers(query?: HandlersQuery, options?: CallOptions): Promise<HandlerNames>;
  /**
   * Get the tenant and capabilities of the request's key. For the root key and for keys with the
   * capability operator or worker or device or publisher or approver or auditor or starter or
   * events or secrets.
   */
  whoami(options?: CallOptions): Promise<WhoAmI>;
  readonly docs: {
    /**
     * Get this document. Open, unless the deployment protects it by key and tenant. Served at the
     * root as well: /api-docs/openapi.json.
     */
    openapi(options?: CallOptions): Promise<OpenApiDocument>;
  };
  readonly sequences: {
    /**
     * Store an immutable sequence definition. Warnings report parts without effect or that never
     * work as written: unknown members, and misspelt functions, filters, blocks or handlers. With
     * strict they are answered 400. For the root key and for keys with the capability operator or
     * publisher.
     */
    create(
      body: CreateSequence,
      options?: CallOptions & { readonly query?: SequencesCreateQuery | undefined },
    ): Promise<SequenceCreated>;
    /**
     * Return the answer to storing the definition, without storing it. Does not check whether the
     * id or the version already exists. For the root key and for keys with the capability
     * operator or publisher.
     */
    validate(
      body: CreateSequence,
      options?: CallOptions & { readonly query?: SequencesValidateQuery | undefined },
    ): Promise<SequenceValidated>;
    /**
     * List definitions by tenant, namespace, name and descending version. For the root key and
     * for keys with the capability operator or publisher or auditor or starter. Unknown
     * parameters are refused.
     */
    list(query?: SequencesListQuery, options?: CallOptions): List<SequenceListed>;
    /**
     * Get a definition by name; default: the newest version not deprecated or on hold. For the
     * root key and for keys with the capability operator or publisher or auditor or starter.
     */
    byName(query: SequencesByNameQuery, options?: CallOptions): Promise<SequenceDefinition>;
    /**
     * List the versions of a name that are not deprecated, newest first. For the root key and for
     * keys with the capability operator or publisher or auditor or starter. Unknown parameters
     * are refused.
     */
    versions(
      query: SequencesVersionsQuery,
      options?: CallOptions,
    ): Promise<readonly SequenceDefinition[]>;
    /**
     * Get a definition. For the root key and for keys with the capability operator or publisher
     * or auditor or starter.
     */
    get(id: string, options?: CallOptions): Promise<SequenceDefinition>;
    /**
     * Lift the hold of a version, so that lookups by name include it. Answered once every
     * creation by name can use it. Repetitions are no error. For the root key and for keys with
     * the capability operator or publisher.
     */
    update(id: string, body: UpdateSequence, options?: CallOptions): Promise<void>;
    /**
     * Deprecate a version: it is no longer the newest for lookups by name. For the root key and
     * for keys with the capability operator or publisher.
     */
    deprecate(id: string, options?: CallOptions): Promise<void>;
    /**
     * Delete a definition that has no live or failed instances, with its finished ones. For the
     * root key and for keys with the capability operator or publisher. Unknown parameters are
     * refused.
     */
    delete(
      id: string,
      query?: SequencesDeleteQuery,
      options?: CallOptions,
    ): Promise<SequenceDeletionPreview | undefined>;
    /**
     * Move an idle instance to another version of its sequence. For the root key and for keys
     * with the capability operator or publisher.
     */
    migrateInstance(body: MigrateInstance, options?: CallOptions): Promise<InstanceMigrated>;
    /**
     * Compare two stored definitions. For the root key and for keys with the capability operator
     * or publisher.
     */
    compare(body: CompareSequences, options?: CallOptions): Promise<SemanticDiff>;
    /**
     * Migrate matching instances of a version to another one, where that is safe. For the root
     * key and for keys with the capability operator or publisher.
     */
    migrateInstances(
      id: string,
      body: MigrateInstances,
      options?: CallOptions,
    ): Promise<InstancesMigrated>;
    /**
     * Count runs, failures and durations of each block of a version. For the root key and for
     * keys with the capability operator or publisher or auditor or starter. Unknown parameters
     * are refused.
     */
    steps(id: string, query?: SequencesStepsQuery, options?: CallOptions): Promise<SequenceSteps>;
  };
  readonly instances: {
    /**
     * Create an instance of a sequence. If idempotency_key matches an instance of the tenant, its
     * id is returned with deduplicated true. Repeating a request without such a key may create a
     * second instance. For the root key and for keys with the capability operator or starter.
     */
    create(
      body: CreateInstance,
      options?: CreationOptions & { readonly query?: InstancesCreateQuery | undefined },
    ): Promise<InstanceResult | InstanceCreated>;
    /**
     * Create up to 10,000 instances, all or none. For the root key and for keys with the
     * capability operator or starter. The header x-tenant-id may be left out. Unknown parameters
     * are refused.
     */
    createBatch(body: CreateBatch, options?: CallOptions): Promise<BatchCreated>;
    /**
     * List instances, newest first. For the root key and for keys with the capability operator or
     * auditor or starter. Unknown parameters are refused.
     */
    list(query?: InstancesListQuery, options?: CallOptions): List<TaskInstance>;
    /**
     * List failed instances, newest first. For the root key and for keys with the capability
     * operator or auditor or starter. Unknown parameters are refused.
     */
    deadLetters(query?: InstancesDeadLettersQuery, options?: CallOptions): List<TaskInstance>;
    /**
     * Count matching instances by state. For the root key and for keys with the capability
     * operator or auditor or starter. Unknown parameters are refused.
     */
    counts(query?: InstancesCountsQuery, options?: CallOptions): Promise<InstanceCounts>;
    /**
     * Set the state of all matching instances that are neither completed nor cancelled. For the
     * root key and for keys with the capability operator.
     */
    bulkState(
      body: BulkState,
      options?: CallOptions & { readonly query?: InstancesBulkStateQuery | undefined },
    ): Promise<BulkUpdated | BulkJob>;
    /**
     * Get an instance. For the root key and for keys with the capability operator or auditor or
     * starter.
     */
    get(id: string, options?: CallOptions): Promise<TaskInstance>;
    /**
     * Change the state of an instance. A transition that the state does not allow is answered
     * 400. For the root key and for keys with the capability operator.
     */
    patchState(id: string, body: PatchState, options?: CallOptions): Promise<TaskInstance>;
    /**
     * Replace sections of the context. For the root key and for keys with the capability
     * operator.
     */
    patchContext(id: string, body: PatchContext, options?: CallOptions): Promise<ContextPatched>;
    /**
     * Send a signal to an instance. pause pauses, resume resumes a paused instance, cancel
     * cancels, update_context merges the payload into context.data, custom:<name> is free for any
     * use, and custom:human_input:<block> answers the approval of that step, the only signal
     * allowed to keys with approver only. For the root key and for keys with the capability
     * operator or approver or starter.
     */
    signal(
      id: string,
      body: SendSignal,
      options?: CallOptions & { readonly query?: InstancesSignalQuery | undefined },
    ): Promise<SignalAnswer | SignalAccepted>;
    /**
     * List the signals of an instance, oldest first, with their status. For the root key and for
     * keys with the capability operator or approver or auditor or starter. Unknown parameters are
     * refused.
     */
    signals(id: string, query?: InstancesSignalsQuery, options?: CallOptions): List<StoredSignal>;
    /**
     * Get the nodes of the execution tree. For the root key and for keys with the capability
     * operator or auditor or starter. Unknown parameters are refused.
     */
    tree(
      id: string,
      query?: InstancesTreeQuery,
      options?: CallOptions,
    ): Promise<readonly TreeNode[]>;
    /**
     * List block outputs, oldest first. For the root key and for keys with the capability
     * operator or auditor or starter. Unknown parameters are refused.
     */
    outputs(id: string, query?: InstancesOutputsQuery, options?: CallOptions): List<BlockOutput>;
    /**
     * List the child instances, oldest first. For the root key and for keys with the capability
     * operator or auditor or starter. Unknown parameters are refused.
     */
    children(id: string, query?: InstancesChildrenQuery, options?: CallOptions): List<TaskInstance>;
    /**
     * List the audit entries of an instance, newest first. For the root key and for keys with the
     * capability operator or auditor or starter. Unknown parameters are refused.
     */
    audit(id: string, query?: InstancesAuditQuery, options?: CallOptions): List<AuditEntry>;
    /**
     * Get state transitions and outputs in chronological order. For the root key and for keys
     * with the capability operator or auditor or starter. Unknown parameters are refused.
     */
    timeline(id: string, query?: InstancesTimelineQuery, options?: CallOptions): Promise<Timeline>;
    /**
     * List the step attempts of an instance in the order of their start. For the root key and for
     * keys with the capability operator or auditor or starter. Unknown parameters are refused.
     */
    attempts(id: string, query?: InstancesAttemptsQuery, options?: CallOptions): List<StepAttempt>;
    /**
     * Explain what an instance does and waits for, with suggested actions. For the root key and
     * for keys with the capability operator or auditor or starter.
     */
    explain(id: string, options?: CallOptions): Promise<InstanceExplanation>;
    /**
     * Shift the start of every matching scheduled instance. For the root key and for keys with
     * the capability operator.
     */
    bulkReschedule(
      body: BulkReschedule,
      options?: CallOptions & { readonly query?: InstancesBulkRescheduleQuery | undefined },
    ): Promise<BulkUpdated | BulkJob>;
    /**
     * Retry, pause, resume, cancel or signal matching instances. For the root key and for keys
     * with the capability operator.
     */
    batchAction(
      body: BatchAction,
      options?: CallOptions & { readonly query?: InstancesBatchActionQuery | undefined },
    ): Promise<BatchActionResult | BulkJob>;
    /**
     * List the log lines of steps, oldest first unless order says otherwise. For the root key and
     * for keys with the capability operator or auditor or starter. Unknown parameters are
     * refused.
     */
    logs(id: string, query?: InstancesLogsQuery, options?: CallOptions): List<StepLogLine>;
    /**
     * Stream states and outputs as server-sent events until the instance finishes. Events: state,
     * output, done and error, each with JSON as its data. For the root key and for keys with the
     * capability operator or auditor or starter.
     */
    stream(id: string, query?: InstancesStreamQuery, options?: CallOptions): EventStream;
    /**
     * Add blocks to this instance, after those of its sequence. For the root key and for keys
     * with the capability operator.
     */
    injectBlocks(id: string, body: InjectBlocks, options?: CallOptions): Promise<BlocksInjected>;
    /**
     * Retry a failed instance where it failed, optionally with changed data. Answers 400 unless
     * the instance has failed. It is due immediately. For the root key and for keys with the
     * capability operator.
     */
    retry(id: string, body?: RetryInstance, options?: CallOptions): Promise<InstanceRetried>;
    /**
     * Run an instance again from one of its top-level blocks. For the root key and for keys with
     * the capability operator.
     */
    resumeFrom(
      id: string,
      blockId: string,
      body?: ResumeFrom,
      options?: CallOptions,
    ): Promise<ResumedFrom>;
    /**
     * Create a copy of an instance that continues from one of its top-level blocks. For the root
     * key and for keys with the capability operator.
     */
    fork(id: string, body: ForkInstance, options?: CallOptions): Promise<InstanceForked>;
    /**
     * Save a value as a checkpoint of the instance. For the root key and for keys with the
     * capability operator.
     */
    saveCheckpoint(
      id: string,
      body: SaveCheckpoint,
      options?: CallOptions,
    ): Promise<CheckpointSaved>;
    /**
     * List the newest 100 checkpoints, newest first. For the root key and for keys with the
     * capability operator or auditor or starter.
     */
    checkpoints(id: string, options?: CallOptions): Promise<readonly Checkpoint[]>;
    /**
     * Get the newest checkpoint. For the root key and for keys with the capability operator or
     * auditor or starter.
     */
    latestCheckpoint(id: string, options?: CallOptions): Promise<Checkpoint>;
    /**
     * Delete all but the newest checkpoints. For the root key and for keys with the capability
     * operator.
     */
    pruneCheckpoints(
      id: string,
      body: PruneCheckpoints,
      options?: CallOptions,
    ): Promise<CheckpointsPruned>;
    /**
     * Run a definition that is not stored on the initial data of an instance, as a dry run. For
     * the root key and for keys with the capability operator.
     */
    dryRun(id: string, body: CreateSequence, options?: CallOptions): Promise<DryRun>;
    /**
     * List the effect receipts of an instance, oldest first. For the root key and for keys with
     * the capability operator or auditor or starter. Unknown parameters are refused.
     */
    effects(id: string, query?: InstancesEffectsQuery, options?: CallOptions): List<EffectReceipt>;
    /**
     * Count failed instances by sequence and reason. For the root key and for keys with the
     * capability operator or auditor or starter. Unknown parameters are refused.
     */
    failures(query?: InstancesFailuresQuery, options?: CallOptions): Promise<FailureGroups>;
    /**
     * Compare the failed instances of one cause with other runs. For the root key and for keys
     * with the capability operator or auditor or starter. Unknown parameters are refused.
     */
    failureAttributes(
      query: InstancesFailureAttributesQuery,
      options?: CallOptions,
    ): Promise<FailureAttributes>;
    /**
     * List the slowest of the newest instances of a version, as a whole or at a block. For the
     * root key and for keys with the capability operator or auditor or starter. Unknown
     * parameters are refused.
     */
    slowest(query: InstancesSlowestQuery, options?: CallOptions): Promise<SlowestRuns>;
  };
  readonly approvals: {
    /**
     * List open approvals, oldest first. For the root key and for keys with the capability
     * operator or approver or auditor. Unknown parameters are refused.
     */
    list(query?: ApprovalsListQuery, options?: CallOptions): List<Approval>;
    /**
     * Answer an approval. The first answer counts. Answers 409 if it was answered, has timed out
     * or was withdrawn. With the answer_id of the accepted answer, that answer is returned. For
     * the root key and for keys with the capability operator or approver.
     */
    answer(id: string, body: AnswerApproval, options?: CallOptions): Promise<ApprovalAnswered>;
    /**
     * Create a link with which one person can answer once, without a key. Requires an encryption
     * key, else 503. The link ends with the approval. For the root key and for keys with the
     * capability operator.
     */
    link(id: string, body?: MakeApprovalLink, options?: CallOptions): Promise<ApprovalLink>;
  };
  readonly logs: {
    /**
     * List the log lines of steps of all instances of a tenant, newest first. For the root key
     * and for keys with the capability operator or auditor. Unknown parameters are refused.
     */
    list(query?: LogsListQuery, options?: CallOptions): List<LogLine>;
  };
  readonly bulkJobs: {
    /**
     * List bulk jobs, newest first. For the root key and for keys with the capability operator or
     * auditor or starter. Unknown parameters are refused.
     */
    list(query?: BulkJobsListQuery, options?: CallOptions): List<BulkJob>;
    /**
     * Get the progress of a bulk job, and the outcome of a retry. For the root key and for keys
     * with the capability operator or auditor or starter.
     */
    get(id: string, options?: CallOptions): Promise<BulkJob>;
    /**
     * Cancel a bulk job. Completed changes remain. For the root key and for keys with the
     * capability operator.
     */
    cancel(id: string, options?: CallOptions): Promise<BulkJob>;
  };
  readonly rateLimits: {
    /**
     * Set the rate limit of a key, or with * in it of every key that matches. For the root key
     * and for keys with the capability operator.
     */
    put(key: string, body: PutRateLimit, options?: CallOptions): Promise<RateLimit>;
    /**
     * Get the rate limit that applies to a key. For the root key and for keys with the capability
     * operator or auditor.
     */
    get(key: string, options?: CallOptions): Promise<RateLimit>;
    /**
     * List rate limits and patterns by key. For the root key and for keys with the capability
     * operator or auditor. Unknown parameters are refused.
     */
    list(query?: RateLimitsListQuery, options?: CallOptions): List<RateLimit>;
    /**
     * Delete the rate limit of a key, to which then the best pattern applies, if any. For the
     * root key and for keys with the capability operator.
     */
    delete(key: string, options?: CallOptions): Promise<void>;
  };
  readonly credentials: {
    /**
     * Store a sealed secret for the steps of the tenant. It is never returned. For the root key
     * and for keys with the capability operator.
     */
    create(body: CreateCredential, options?: CallOptions): Promise<Credential>;
    /**
     * List the credentials of the tenant, oldest first, without their secrets. For the root key
     * and for keys with the capability operator or auditor. Unknown parameters are refused.
     */
    list(query?: CredentialsListQuery, options?: CallOptions): List<Credential>;
    /**
     * Get a credential without its secret. For the root key and for keys with the capability
     * operator or auditor.
     */
    get(id: string, options?: CallOptions): Promise<Credential>;
    /**
     * Change a credential. The next call of a step uses the new secret. For the root key and for
     * keys with the capability operator.
     */
    update(id: string, body: UpdateCredential, options?: CallOptions): Promise<Credential>;
    /**
     * Delete a credential. Steps that use it fail from then on. For the root key and for keys
     * with the capability operator.
     */
    delete(id: string, options?: CallOptions): Promise<void>;
  };
  readonly workers: {
    /**
     * Claim tasks of a handler. Each task is claimed by one worker only, by priority of its
     * instance, then age. The response is empty if there is none. For the root key and for keys
     * with the capability operator or worker.
     */
    poll(body: PollTasks, options?: CallOptions): Promise<readonly WorkerTask[]>;
    /**
     * Claim tasks of a handler from a named queue. For the root key and for keys with the
     * capability operator or worker.
     */
    pollQueue(body: PollQueue, options?: CallOptions): Promise<readonly WorkerTask[]>;
    /**
     * Report the results of many tasks, and claim new ones. Each result is checked separately and
     * durable before the response, whatever happens to the others and to the poll. With results
     * the response does not wait for tasks. For the root key and for keys with the capability
     * operator or worker.
     */
    exchange(body: ExchangeTasks, options?: CallOptions): Promise<TasksExchanged>;
    /**
     * List tasks, newest first. For the root key and for keys with the capability operator or
     * worker or auditor. Unknown parameters are refused.
     */
    tasks(query?: WorkersTasksQuery, options?: CallOptions): List<WorkerTask>;
    /**
     * Count tasks by state and handler. For the root key and for keys with the capability
     * operator or worker or auditor. Unknown parameters are refused.
     */
    stats(query?: WorkersStatsQuery, options?: CallOptions): Promise<TaskStats>;
    /**
     * Complete a claimed task with its output. The instance continues immediately. For the root
     * key and for keys with the capability operator or worker.
     */
    complete(id: string, body: CompleteTask, options?: CallOptions): Promise<WorkerTask>;
    /**
     * Fail a claimed task. With retryable true the step is retried; otherwise it fails, and with
     * it an instance that has only steps. For the root key and for keys with the capability
     * operator or worker.
     */
    fail(id: string, body: FailTask, options?: CallOptions): Promise<WorkerTask>;
    /**
     * Renew a claim and save a checkpoint. Recommended every 15 to 30 seconds. A task without one
     * for 60 seconds returns to its queue. For the root key and for keys with the capability
     * operator or worker.
     */
    heartbeat(id: string, body: HeartbeatTask, options?: CallOptions): Promise<HeartbeatAccepted>;
    /**
     * List the claim history of a task, oldest first. For the root key and for keys with the
     * capability operator or worker or auditor. Unknown parameters are refused.
     */
    attempts(id: string, query?: WorkersAttemptsQuery, options?: CallOptions): List<WorkerAttempt>;
    /**
     * List workers, last contact first. For the root key and for keys with the capability
     * operator or worker or auditor. Unknown parameters are refused.
     */
    list(query?: WorkersListQuery, options?: CallOptions): Promise<readonly WorkerInfo[]>;
  };
  readonly workerEndpoints: {
    /**
     * Set an endpoint to which the tasks of handlers are delivered by signed POST. For the root
     * key and for keys with the capability operator.
     */
    put(name: string, body: PutWorkerEndpoint, options?: CallOptions): Promise<WorkerEndpoint>;
    /**
     * List the worker endpoints of the tenant by name, with their current state. For the root key
     * and for keys with the capability operator or auditor. Unknown parameters are refused.
     */
    list(query?: WorkerEndpointsListQuery, options?: CallOptions): List<WorkerEndpoint>;
    /**
     * Get a worker endpoint with its current state. For the root key and for keys with the
     * capability operator or auditor.
     */
    get(name: string, options?: CallOptions): Promise<WorkerEndpoint>;
    /**
     * Delete a worker endpoint. Requests in flight still count. For the root key and for keys
     * with the capability operator.
     */
    delete(name: string, options?: CallOptions): Promise<void>;
  };
  readonly cron: {
    /**
     * Create a schedule, which creates instances. For the root key and for keys with the
     * capability operator.
     */
    create(body: CreateSchedule, options?: CallOptions): Promise<ScheduleCreated>;
    /**
     * Preview the next fires of an expression without creating a schedule. For the root key and
     * for keys with the capability operator or auditor.
     */
    preview(body: PreviewSchedule, options?: CallOptions): Promise<SchedulePreview>;
    /**
     * List schedules, oldest first or by next fire. For the root key and for keys with the
     * capability operator or auditor. Unknown parameters are refused.
     */
    list(query?: CronListQuery, options?: CallOptions): List<CronSchedule>;
    /** Get a schedule. For the root key and for keys with the capability operator or auditor. */
    get(id: string, options?: CallOptions): Promise<CronSchedule>;
    /**
     * Change a schedule. A changed cron_expr, timezone or enabled recomputes the next fire from
     * now. Other changes, and repeated values, keep a fire that is due or waits for an earlier
     * run. For the root key and for keys with the capability operator.
     */
    update(id: string, body: UpdateSchedule, options?: CallOptions): Promise<CronSchedule>;
    /**
     * Delete a schedule. Its instances continue. For the root key and for keys with the
     * capability operator.
     */
    delete(id: string, options?: CallOptions): Promise<void>;
    /**
     * Fire a schedule now, without changing its next fire. For the root key and for keys with the
     * capability operator.
     */
    run(id: string, body?: RunSchedule, options?: CreationOptions): Promise<ScheduleRun>;
    /**
     * List next fires of a schedule. For the root key and for keys with the capability operator
     * or auditor.
     */
    nextFires(id: string, query?: CronNextFiresQuery, options?: CallOptions): Promise<NextFires>;
  };
  readonly pendingStarts: {
    /**
     * List the instances that are yet to start from collected creations, oldest first. For the
     * root key and for keys with the capability operator or auditor or starter. Unknown
     * parameters are refused.
     */
    list(query?: PendingStartsListQuery, options?: CallOptions): List<PendingStart>;
    /**
     * Get an instance that is yet to start from collected creations. For the root key and for
     * keys with the capability operator or auditor or starter.
     */
    get(id: string, options?: CallOptions): Promise<PendingStart>;
    /**
     * Start the instance now, without waiting for more creations. For the root key and for keys
     * with the capability operator.
     */
    start(id: string, options?: CallOptions): Promise<PendingStart>;
    /**
     * Drop the collected creations: the instance does not start. For the root key and for keys
     * with the capability operator.
     */
    drop(id: string, options?: CallOptions): Promise<void>;
  };
  readonly releases: {
    /**
     * Draft a release from one version of a sequence to another. Answers 409 while another
     * release of the baseline routes instances. For the root key and for keys with the capability
     * operator or publisher.
     */
    create(body: CreateRelease, options?: CallOptions): Promise<Release>;
    /**
     * List releases, newest first. For the root key and for keys with the capability operator or
     * publisher or auditor. Unknown parameters are refused.
     */
    list(query?: ReleasesListQuery, options?: CallOptions): List<Release>;
    /**
     * Get a release. For the root key and for keys with the capability operator or publisher or
     * auditor.
     */
    get(id: string, options?: CallOptions): Promise<Release>;
    /**
     * Compare baseline and candidate. For the root key and for keys with the capability operator
     * or publisher or auditor.
     */
    diff(id: string, options?: CallOptions): Promise<SemanticDiff>;
    /**
     * Get current verdicts of gates. For the root key and for keys with the capability operator
     * or publisher or auditor.
     */
    gates(id: string, options?: CallOptions): Promise<GateReport>;
    /**
     * List the decisions about a release, oldest first. For the root key and for keys with the
     * capability operator or publisher or auditor.
     */
    decisions(id: string, options?: CallOptions): Promise<readonly ReleaseDecision[]>;
    /**
     * Replay finished runs of the baseline with the candidate, without side effects. Only for a
     * draft. It becomes ready whatever the replays find, or failed if the candidate cannot run at
     * all. For the root key and for keys with the capability operator or publisher.
     */
    validate(id: string, body?: ValidateRelease, options?: CallOptions): Promise<ValidationReport>;
    /**
     * Route a percentage of the baseline's new instances to the candidate. For a ready or paused
     * release. Answered once the whole server routes so. For the root key and for keys with the
     * capability operator or publisher.
     */
    canary(id: string, body: StartCanary, options?: CallOptions): Promise<Release>;
    /**
     * Evaluate the gates now. A failed gate rolls a canary back. Gates are also evaluated
     * automatically while instances finish. For the root key and for keys with the capability
     * operator or publisher.
     */
    evaluate(id: string, options?: CallOptions): Promise<EvaluationReport>;
    /**
     * Route all new instances of the baseline to the candidate permanently. Only for a canary.
     * Answers 409 unless every gate passes; a failed gate rolls back. For the root key and for
     * keys with the capability operator or publisher.
     */
    promote(id: string, body?: PromoteRelease, options?: CallOptions): Promise<Release>;
    /**
     * Route new instances to the baseline until the canary continues. Only for a canary; canary,
     * with any percentage, continues it. For the root key and for keys with the capability
     * operator or publisher.
     */
    pause(id: string, options?: CallOptions): Promise<Release>;
    /**
     * Route new instances to the baseline permanently. For a canary or a paused release;
     * repetitions are no error. For the root key and for keys with the capability operator or
     * publisher.
     */
    rollback(id: string, options?: CallOptions): Promise<Release>;
    /**
     * Compare both versions of a release over time. For the root key and for keys with the
     * capability operator or publisher or auditor. Unknown parameters are refused.
     */
    series(id: string, query?: ReleasesSeriesQuery, options?: CallOptions): Promise<ReleaseSeries>;
  };
  readonly continuity: {
    /**
     * Create an execution: a portable identity of an instance, with an owner and an epoch. In any
     * state of the instance. The id is that of the instance. For the root key and for keys with
     * the capability operator.
     */
    create(body: CreateExecution, options?: CallOptions): Promise<ContinuityExecution>;
    /**
     * Claim an imported execution that its source has granted to this server. The instance stays
     * paused until its state is changed or it is resumed. For the root key and for keys with the
     * capability operator.
     */
    claim(body: ClaimExecution, options?: CallOptions): Promise<ContinuityExecution>;
    /** Get an execution. For the root key and for keys with the capability operator or auditor. */
    get(
      id: string,
      query?: ContinuityGetQuery,
      options?: CallOptions,
    ): Promise<ContinuityExecution>;
    /**
     * List the locations of an execution by epoch. For the root key and for keys with the
     * capability operator or auditor. Unknown parameters are refused.
     */
    locations(
      id: string,
      query?: ContinuityLocationsQuery,
      options?: CallOptions,
    ): Promise<readonly ContinuityLocation[]>;
    /**
     * List the effect receipts of an execution; empty for an unknown one. Receipts of all
     * instances of the execution on this server. For the root key and for keys with the
     * capability operator or auditor. Unknown parameters are refused.
     */
    effects(
      id: string,
      query?: ContinuityEffectsQuery,
      options?: CallOptions,
    ): Promise<readonly EffectReceipt[]>;
    /**
     * List the boundaries at which checkpoints of an execution were saved. For the root key and
     * for keys with the capability operator or auditor. Unknown parameters are refused.
     */
    checkpoints(
      id: string,
      query?: ContinuityCheckpointsQuery,
      options?: CallOptions,
    ): Promise<readonly CheckpointBoundary[]>;
    /**
     * Get a boundary with the changes since the previous one. For the root key and for keys with
     * the capability operator or auditor.
     */
    checkpoint(
      id: string,
      checkpointId: string,
      query?: ContinuityCheckpointQuery,
      options?: CallOptions,
    ): Promise<CheckpointBoundaryDetail>;
    /**
     * List the provenance chain of an execution; empty for an unknown one. For the root key and
     * for keys with the capability operator or auditor. Unknown parameters are refused.
     */
    provenance(
      id: string,
      query?: ContinuityProvenanceQuery,
      options?: CallOptions,
    ): Promise<readonly ProvenanceEntry[]>;
    /**
     * Append an entry to the provenance chain. The server writes the other kinds itself. Answers
     * 409 once the chain has 10,000 entries. For the root key and for keys with the capability
     * operator.
     */
    appendProvenance(
      id: string,
      body: AppendProvenance,
      options?: CallOptions,
    ): Promise<ProvenanceEntry>;
    /**
     * Verify every link, hash and signature of the provenance chain. An empty chain is valid. The
     * deployment sets the trusted keys. For the root key and for keys with the capability
     * operator or auditor.
     */
    verifyProvenance(
      id: string,
      query?: ContinuityVerifyProvenanceQuery,
      options?: CallOptions,
    ): Promise<ProvenanceVerdict>;
    /**
     * Evaluate every live runtime as a place for an execution. The decision is stored, and
     * nothing is moved. For the root key and for keys with the capability operator.
     */
    place(id: string, body: PlaceExecution, options?: CallOptions): Promise<PlacementDecision>;
    /**
     * Evaluate one runtime as the destination of a handoff. Also answered if not compatible. 404
     * if the runtime is not live. For the root key and for keys with the capability operator.
     */
    preview(id: string, body: PreviewHandoff, options?: CallOptions): Promise<HandoffPreview>;
    /**
     * Record the result of an effect. unknown becomes verified, committed, compensated or
     * abandoned; committed and verified become compensated. Other transitions are answered 409.
     * For the root key and for keys with the capability operator.
     */
    resolveEffect(id: string, body: ResolveEffect, options?: CallOptions): Promise<EffectReceipt>;
  };
  readonly migrations: {
    /**
     * Migrate an instance to another version, if that is safe. For the root key and for keys with
     * the capability operator.
     */
    migrate(id: string, body: MigrateTo, options?: CallOptions): Promise<MigratedInstance>;
    /**
     * Plan the migration of a live execution to another version. Only for a waiting or paused
     * instance, which is not changed. For the root key and for keys with the capability operator.
     */
    plan(body: PlanMigration, options?: CallOptions): Promise<MigrationPlan>;
    /** Get a migration. For the root key and for keys with the capability operator or auditor. */
    get(id: string, query?: MigrationsGetQuery, options?: CallOptions): Promise<MigrationRecord>;
    /**
     * Migrate to the other version and leave the instance paused. Answers 409 if anything has
     * changed since the plan. Requires an encryption key, else 503. The instance is left paused,
     * in the next epoch. For the root key and for keys with the capability operator.
     */
    apply(id: string, body?: ApplyMigration, options?: CallOptions): Promise<MigrationRecord>;
    /**
     * Roll a migration back to its sealed capsule. Answers 409 once the target has run: if an
     * effect of its epoch was dispatched, committed or verified, or is unknown. For the root key
     * and for keys with the capability operator.
     */
    rollback(id: string, body?: TenantBody, options?: CallOptions): Promise<MigrationRecord>;
  };
  readonly runtimes: {
    /**
     * Register the facts of a runtime for some minutes. Repeat it while the runtime lives.
     * Earlier observations change nothing. For the root key and for keys with the capability
     * operator.
     */
    register(body: RegisterRuntime, options?: CallOptions): Promise<RuntimeCapabilities>;
    /**
     * List live runtimes, last seen first. For the root key and for keys with the capability
     * operator or auditor. Unknown parameters are refused.
     */
    list(query?: RuntimesListQuery, options?: CallOptions): Promise<readonly RuntimeCapabilities[]>;
  };
  readonly handoffs: {
    /**
     * Start the handoff of an execution to the runtime of a current preview. Answers 409 if
     * anything has changed since the preview. For the root key and for keys with the capability
     * operator.
     */
    create(body: CreateHandoff, options?: CallOptions): Promise<Handoff>;
    /** Get a handoff. For the root key and for keys with the capability operator or auditor. */
    get(id: string, query?: HandoffsGetQuery, options?: CallOptions): Promise<Handoff>;
    /**
     * Seal the execution into a capsule for its destination. The instance does not run here from
     * then on. Requires an encryption key, else 503. Exported once: after a lost response, revoke
     * the handoff and create another one. For the root key and for keys with the capability
     * operator.
     */
    export(id: string, body?: ExportHandoff, options?: CallOptions): Promise<HandoffExported>;
    /**
     * Import a capsule sealed by an isolated device, as the export of its handoff. For the root
     * key and for keys with the capability operator.
     */
    attach(id: string, body: AttachCapsule, options?: CallOptions): Promise<CapsuleAttached>;
    /**
     * Make the destination the owner. The epoch grows by 1. From then on the source never runs it
     * again. For the root key and for keys with the capability operator.
     */
    accept(id: string, body: AcceptHandoff, options?: CallOptions): Promise<HandoffAccepted>;
    /**
     * Start running at the destination. For the root key and for keys with the capability
     * operator.
     */
    resume(id: string, body?: TenantBody, options?: CallOptions): Promise<Handoff>;
    /**
     * Reject a handoff before its export. Owner and epoch do not change. For the root key and for
     * keys with the capability operator.
     */
    reject(id: string, body?: TenantBody, options?: CallOptions): Promise<Handoff>;
    /**
     * Revoke an exported capsule before it is accepted. Owner and epoch do not change; the next
     * handoff or migration takes the execution back. For the root key and for keys with the
     * capability operator.
     */
    revoke(id: string, body?: TenantBody, options?: CallOptions): Promise<Handoff>;
  };
  readonly capsules: {
    /**
     * Create the paused instance of a capsule. A repetition returns the same instance. Requires
     * an encryption key, else 503. For the root key and for keys with the capability operator.
     */
    import(body: ImportCapsule, options?: CallOptions): Promise<CapsuleImported>;
  };
  readonly apiKeys: {
    /** Create a key for a tenant. Only this response has its secret. For the root key only. */
    mint(body: MintKey, options?: CallOptions): Promise<KeyMinted>;
    /**
     * List the keys of a tenant, oldest first. For the root key only. Unknown parameters are
     * refused.
     */
    list(query: ApiKeysListQuery, options?: CallOptions): List<ApiKey>;
    /** Revoke a key immediately and permanently. For the root key only. */
    revoke(id: string, options?: CallOptions): Promise<void>;
  };
  readonly actions: {
    /**
     * List what people and keys have changed, newest first. For the root key and for keys with
     * the capability operator or auditor. Unknown parameters are refused.
     */
    list(query?: ActionsListQuery, options?: CallOptions): List<Action>;
  };
  readonly tenants: {
    /**
     * List the tenants that have sequences, instances, keys or limits, by name. For the root key
     * only. Unknown parameters are refused.
     */
    list(query?: TenantsListQuery, options?: CallOptions): List<Tenant>;
  };
  readonly tenantLimits: {
    /**
     * Replace the limits of a tenant; absent members are reset to the default. For the root key
     * only.
     */
    put(id: string, body: PutTenantLimits, options?: CallOptions): Promise<TenantLimits>;
    /** Get the limits that were set for a tenant. For the root key only. */
    get(id: string, options?: CallOptions): Promise<TenantLimits>;
    /** Reset a tenant to the default limits. For the root key only. */
    delete(id: string, options?: CallOptions): Promise<void>;
  };
  readonly cells: {
    /**
     * List the cells of the cluster with their engines, from the directory. For the root key
     * only.
     */
    list(options?: CallOptions): Promise<Cells>;
    /** List tenant moves, newest first. For the root key only. Unknown parameters are refused. */
    moves(query?: CellsMovesQuery, options?: CallOptions): List<TenantMove>;
  };
  readonly webhooks: {
    /**
     * Subscribe to finished instances of the tenant. Only this response has the secret. For the
     * root key and for keys with the capability operator.
     */
    subscribe(body: CreateSubscription, options?: CallOptions): Promise<SubscriptionCreated>;
    /**
     * List the webhook subscriptions of the tenant, oldest first. For the root key and for keys
     * with the capability operator or auditor. Unknown parameters are refused.
     */
    subscriptions(
      query?: WebhooksSubscriptionsQuery,
      options?: CallOptions,
    ): List<WebhookSubscription>;
    /** Get a subscription. For the root key and for keys with the capability operator or auditor. */
    subscription(id: string, options?: CallOptions): Promise<WebhookSubscription>;
    /**
     * Change a webhook subscription. A new secret signs from the next attempt on. For the root
     * key and for keys with the capability operator.
     */
    update(
      id: string,
      body: UpdateSubscription,
      options?: CallOptions,
    ): Promise<WebhookSubscription>;
    /**
     * Delete a webhook subscription. Undelivered webhooks are dropped. For the root key and for
     * keys with the capability operator.
     */
    unsubscribe(id: string, options?: CallOptions): Promise<void>;
    /**
     * List deliveries to a webhook subscription, newest first. For the root key and for keys with
     * the capability operator or auditor. Unknown parameters are refused.
     */
    subscriptionDeliveries(
      id: string,
      query?: WebhooksSubscriptionDeliveriesQuery,
      options?: CallOptions,
    ): List<DeliverySummary>;
    /**
     * List undelivered webhooks, oldest first. For the root key only. Unknown parameters are
     * refused.
     */
    outbox(query?: WebhooksOutboxQuery, options?: CallOptions): Promise<readonly OutboxEntry[]>;
    /** Deliver a webhook now; the response reports success or failure. For the root key only. */
    redeliver(id: string, options?: CallOptions): Promise<Redelivered>;
    /** Get the body that a redelivery would send. For the root key only. */
    redeliverPreview(id: string, options?: CallOptions): Promise<RedeliverPreview>;
    /** Drop an undelivered webhook. For the root key only. */
    discard(id: string, options?: CallOptions): Promise<void>;
    /** List deliveries, newest first. For the root key only. Unknown parameters are refused. */
    deliveries(query?: WebhooksDeliveriesQuery, options?: CallOptions): List<DeliverySummary>;
    /** List the attempts of one delivery, oldest first. For the root key only. */
    delivery(deliveryId: string, options?: CallOptions): Promise<readonly DeliveryAttempt[]>;
  };
  readonly triggers: {
    /**
     * Create a trigger, which starts instances or publishes events from outside. For the root key
     * and for keys with the capability operator.
     */
    create(body: CreateTrigger, options?: CallOptions): Promise<Trigger>;
    /**
     * List triggers of a tenant, oldest first. For the root key and for keys with the capability
     * operator or auditor. Unknown parameters are refused.
     */
    list(query?: TriggersListQuery, options?: CallOptions): List<Trigger>;
    /** Get a trigger. For the root key and for keys with the capability operator or auditor. */
    get(slug: string, options?: CallOptions): Promise<Trigger>;
    /** Change a trigger. For the root key and for keys with the capability operator. */
    update(slug: string, body: UpdateTrigger, options?: CallOptions): Promise<Trigger>;
    /**
     * Delete a trigger. Its instances continue. For the root key and for keys with the capability
     * operator.
     */
    delete(slug: string, options?: CallOptions): Promise<void>;
    /**
     * Start an instance with the body as its context.data, or publish the event. For the root key
     * and for keys with the capability operator.
     */
    fire(slug: string, body?: object, options?: CallOptions): Promise<TriggerFired>;
    /** Start an instance or publish an event with a verified request. Open to everyone. */
    receive(
      id: string,
      body: object | string | Uint8Array,
      options?: CallOptions,
    ): Promise<WebhookTaken>;
  };
  readonly events: {
    /**
     * Send an event to all steps that wait for it, or else to the first that will. For the root
     * key and for keys with the capability operator or starter or events.
     */
    send(body: SendEvent, options?: CallOptions): Promise<EventReceipt>;
    /**
     * Send up to 100 events; none is sent unless all are valid. For the root key and for keys
     * with the capability operator or starter or events.
     */
    sendBatch(body: SendEvents, options?: CallOptions): Promise<EventReceipts>;
    /**
     * List events, newest first. For the root key and for keys with the capability operator or
     * auditor. Unknown parameters are refused.
     */
    list(query?: EventsListQuery, options?: CallOptions): List<StoredEvent>;
    /**
     * Get an event with its consumers. For the root key and for keys with the capability operator
     * or auditor.
     */
    get(id: string, options?: CallOptions): Promise<EventDetails>;
  };
  readonly changes: {
    /**
     * List changes of instances of a tenant, oldest first. For the root key and for keys with the
     * capability operator or auditor. The header x-tenant-id may be left out. Unknown parameters
     * are refused.
     */
    list(query?: ChangesListQuery, options?: CallOptions): List<AuditEntry>;
    /**
     * Stream the changes of the tenant's instances as server-sent events. For the root key and
     * for keys with the capability operator or auditor. The header x-tenant-id may be left out.
     * Unknown parameters are refused.
     */
    stream(query?: ChangesStreamQuery, options?: CallOptions): EventStream;
  };
  readonly search: {
    /**
     * Find instances by id, idempotency key, metadata or searchable data, and sequences by name;
     * best first. For the root key and for keys with the capability operator or auditor or
     * starter. Unknown parameters are refused.
     */
    list(query: SearchListQuery, options?: CallOptions): Promise<readonly SearchHit[]>;
  };
  readonly queues: {
    /**
     * Count open tasks and workers by handler and queue. For the root key and for keys with the
     * capability operator or auditor. Unknown parameters are refused.
     */
    list(query?: QueuesListQuery, options?: CallOptions): Promise<Queues>;
    /**
     * Count tasks of a queue that came, were claimed and ended over time. For the root key and
     * for keys with the capability operator or auditor. Unknown parameters are refused.
     */
    series(query: QueuesSeriesQuery, options?: CallOptions): Promise<QueueSeries>;
  };
  readonly activity: {
    /**
     * Count created and finished instances over time. For the root key and for keys with the
     * capability operator or auditor. Unknown parameters are refused.
     */
    get(query?: ActivityGetQuery, options?: CallOptions): Promise<Activity>;
  };
}

/** How each operation is sent. */
export const OPERATIONS = {
  'health.live': { method: 'GET', path: '/health/live' },
  'health.ready': { method: 'GET', path: '/health/ready' },
  info: { method: 'GET', path: '/info' },
  metrics: { method: 'GET', path: '/metrics', answers: 'text' },
  'docs.openapi': { method: 'GET', path: '/api-docs/openapi.json' },
  'sequences.create': {
    method: 'POST',
    path: '/sequences',
    takes: 'body and query',
    fills: ['tenant_id', 'namespace'],
  },
  'sequences.validate': {
    method: 'POST',
    path: '/sequences/validate',
    takes: 'body and query',
    fills: ['tenant_id', 'namespace'],
    isRepeatable: true,
  },
  'sequences.list': { method: 'GET', path: '/sequences', takes: 'query', pages: 'cursor' },
  'sequences.byName': {
    method: 'GET',
    path: '/sequences/by-name',
    takes: 'query',
    fills: ['tenant_id', 'namespace'],
  },
  'sequences.versions': {
    method: 'GET',
    path: '/sequences/versions',
    takes: 'query',
    fills: ['namespace'],
  },
  'sequences.get': { method: 'GET', path: '/sequences/{id}' },
  'sequences.update': {
    method: 'PATCH',
    path: '/sequences/{id}',
    takes: 'body',
    isRepeatable: true,
  },
  'sequences.deprecate': { method: 'POST', path: '/sequences/{id}/deprecate', isRepeatable: true },
  'sequences.delete': { method: 'DELETE', path: '/sequences/{id}', takes: 'query' },
  'instances.create': {
    method: 'POST',
    path: '/instances',
    takes: 'body and query',
    fills: ['tenant_id', 'namespace'],
    key: 'idempotency_key',
    isParked: true,
  },
  'instances.createBatch': {
    method: 'POST',
    path: '/instances/batch',
    takes: 'body',
    each: 'instances',
    fills: ['tenant_id', 'namespace'],
    key: 'idempotency_key',
  },
  'instances.list': { method: 'GET', path: '/instances', takes: 'query', pages: 'cursor' },
  'instances.deadLetters': {
    method: 'GET',
    path: '/instances/dlq',
    takes: 'query',
    pages: 'cursor',
  },
  'instances.counts': { method: 'GET', path: '/instances/counts', takes: 'query' },
  'instances.bulkState': {
    method: 'PATCH',
    path: '/instances/bulk/state',
    takes: 'body and query',
  },
  'instances.get': { method: 'GET', path: '/instances/{id}' },
  'instances.patchState': { method: 'PATCH', path: '/instances/{id}/state', takes: 'body' },
  'instances.patchContext': {
    method: 'PATCH',
    path: '/instances/{id}/context',
    takes: 'body',
    isRepeatable: true,
  },
  'instances.signal': {
    method: 'POST',
    path: '/instances/{id}/signals',
    takes: 'body and query',
    isParked: true,
  },
  'instances.signals': {
    method: 'GET',
    path: '/instances/{id}/signals',
    takes: 'query',
    pages: 'cursor',
  },
  'instances.tree': { method: 'GET', path: '/instances/{id}/tree', takes: 'query' },
  'instances.outputs': {
    method: 'GET',
    path: '/instances/{id}/outputs',
    takes: 'query',
    pages: 'cursor',
  },
  'instances.children': {
    method: 'GET',
    path: '/instances/{id}/children',
    takes: 'query',
    pages: 'cursor',
  },
  'instances.audit': {
    method: 'GET',
    path: '/instances/{id}/audit',
    takes: 'query',
    pages: 'cursor',
  },
  'instances.timeline': { method: 'GET', path: '/instances/{id}/timeline', takes: 'query' },
  'instances.attempts': {
    method: 'GET',
    path: '/instances/{id}/attempts',
    takes: 'query',
    pages: 'cursor',
  },
  'instances.explain': { method: 'GET', path: '/instances/{id}/explain' },
  'approvals.list': { method: 'GET', path: '/approvals', takes: 'query', pages: 'page' },
  'approvals.answer': { method: 'POST', path: '/approvals/{id}', takes: 'body', key: 'answer_id' },
  'approvals.link': { method: 'POST', path: '/approvals/{id}/link', takes: 'body' },
  'sequences.migrateInstance': {
    method: 'POST',
    path: '/sequences/migrate-instance',
    takes: 'body',
  },
  'instances.bulkReschedule': {
    method: 'PATCH',
    path: '/instances/bulk/reschedule',
    takes: 'body and query',
  },
  'instances.batchAction': {
    method: 'POST',
    path: '/instances/batch-action',
    takes: 'body and query',
  },
  'instances.logs': {
    method: 'GET',
    path: '/instances/{id}/logs',
    takes: 'query',
    pages: 'cursor',
  },
  'instances.stream': {
    method: 'GET',
    path: '/instances/{id}/stream',
    takes: 'query',
    answers: 'events',
  },
  'instances.injectBlocks': {
    method: 'POST',
    path: '/instances/{id}/inject-blocks',
    takes: 'body',
  },
  'instances.retry': { method: 'POST', path: '/instances/{id}/retry', takes: 'body' },
  'instances.resumeFrom': {
    method: 'POST',
    path: '/instances/{id}/resume-from/{block_id}',
    takes: 'body',
  },
  'instances.fork': { method: 'POST', path: '/instances/{id}/fork', takes: 'body' },
  'instances.saveCheckpoint': {
    method: 'POST',
    path: '/instances/{id}/checkpoints',
    takes: 'body',
  },
  'instances.checkpoints': { method: 'GET', path: '/instances/{id}/checkpoints' },
  'instances.latestCheckpoint': { method: 'GET', path: '/instances/{id}/checkpoints/latest' },
  'instances.pruneCheckpoints': {
    method: 'POST',
    path: '/instances/{id}/checkpoints/prune',
    takes: 'body',
  },
  'instances.dryRun': {
    method: 'POST',
    path: '/instances/{id}/dry-run',
    takes: 'body',
    fills: ['tenant_id', 'namespace'],
    isRepeatable: true,
  },
  'logs.list': { method: 'GET', path: '/logs', takes: 'query', pages: 'cursor' },
  'bulkJobs.list': { method: 'GET', path: '/instances/bulk/jobs', takes: 'query', pages: 'cursor' },
  'bulkJobs.get': { method: 'GET', path: '/instances/bulk/jobs/{id}' },
  'bulkJobs.cancel': {
    method: 'POST',
    path: '/instances/bulk/jobs/{id}/cancel',
    isRepeatable: true,
  },
  'rateLimits.put': { method: 'PUT', path: '/rate-limits/{key}', takes: 'body' },
  'rateLimits.get': { method: 'GET', path: '/rate-limits/{key}' },
  'rateLimits.list': { method: 'GET', path: '/rate-limits', takes: 'query', pages: 'offset' },
  'rateLimits.delete': { method: 'DELETE', path: '/rate-limits/{key}' },
  'credentials.create': { method: 'POST', path: '/credentials', takes: 'body' },
  'credentials.list': { method: 'GET', path: '/credentials', takes: 'query', pages: 'cursor' },
  'credentials.get': { method: 'GET', path: '/credentials/{id}' },
  'credentials.update': {
    method: 'PATCH',
    path: '/credentials/{id}',
    takes: 'body',
    isRepeatable: true,
  },
  'credentials.delete': { method: 'DELETE', path: '/credentials/{id}' },
  'workers.poll': {
    method: 'POST',
    path: '/workers/tasks/poll',
    takes: 'body',
    isRepeatable: true,
    isParked: true,
  },
  'workers.pollQueue': {
    method: 'POST',
    path: '/workers/tasks/poll/queue',
    takes: 'body',
    isRepeatable: true,
    isParked: true,
  },
  'workers.exchange': {
    method: 'POST',
    path: '/workers/tasks/exchange',
    takes: 'body',
    isRepeatable: true,
    isParked: true,
  },
  'workers.tasks': { method: 'GET', path: '/workers/tasks', takes: 'query', pages: 'cursor' },
  'workers.stats': { method: 'GET', path: '/workers/tasks/stats', takes: 'query' },
  'workers.complete': {
    method: 'POST',
    path: '/workers/tasks/{id}/complete',
    takes: 'body',
    isRepeatable: true,
  },
  'workers.fail': {
    method: 'POST',
    path: '/workers/tasks/{id}/fail',
    takes: 'body',
    isRepeatable: true,
  },
  'workers.heartbeat': { method: 'POST', path: '/workers/tasks/{id}/heartbeat', takes: 'body' },
  'workers.attempts': {
    method: 'GET',
    path: '/workers/tasks/{id}/attempts',
    takes: 'query',
    pages: 'offset',
  },
  'workers.list': { method: 'GET', path: '/workers', takes: 'query' },
  handlers: { method: 'GET', path: '/handlers', takes: 'query' },
  'workerEndpoints.put': { method: 'PUT', path: '/worker-endpoints/{name}', takes: 'body' },
  'workerEndpoints.list': {
    method: 'GET',
    path: '/worker-endpoints',
    takes: 'query',
    pages: 'offset',
  },
  'workerEndpoints.get': { method: 'GET', path: '/worker-endpoints/{name}' },
  'workerEndpoints.delete': { method: 'DELETE', path: '/worker-endpoints/{name}' },
  'cron.create': {
    method: 'POST',
    path: '/cron',
    takes: 'body',
    fills: ['tenant_id', 'namespace'],
  },
  'cron.preview': { method: 'POST', path: '/cron/preview', takes: 'body', isRepeatable: true },
  'cron.list': { method: 'GET', path: '/cron', takes: 'query', pages: 'cursor' },
  'cron.get': { method: 'GET', path: '/cron/{id}' },
  'cron.update': { method: 'PUT', path: '/cron/{id}', takes: 'body' },
  'cron.delete': { method: 'DELETE', path: '/cron/{id}' },
  'cron.run': { method: 'POST', path: '/cron/{id}/run', takes: 'body', key: 'idempotency_key' },
  'cron.nextFires': { method: 'GET', path: '/cron/{id}/next-fires', takes: 'query' },
  'pendingStarts.list': { method: 'GET', path: '/pending-starts', takes: 'query', pages: 'cursor' },
  'pendingStarts.get': { method: 'GET', path: '/pending-starts/{id}' },
  'pendingStarts.start': { method: 'POST', path: '/pending-starts/{id}/start', isRepeatable: true },
  'pendingStarts.drop': { method: 'DELETE', path: '/pending-starts/{id}' },
  'releases.create': { method: 'POST', path: '/releases', takes: 'body' },
  'releases.list': { method: 'GET', path: '/releases', takes: 'query', pages: 'cursor' },
  'releases.get': { method: 'GET', path: '/releases/{id}' },
  'releases.diff': { method: 'GET', path: '/releases/{id}/diff' },
  'releases.gates': { method: 'GET', path: '/releases/{id}/gates' },
  'releases.decisions': { method: 'GET', path: '/releases/{id}/decisions' },
  'releases.validate': { method: 'POST', path: '/releases/{id}/validate', takes: 'body' },
  'releases.canary': { method: 'POST', path: '/releases/{id}/canary', takes: 'body' },
  'releases.evaluate': { method: 'POST', path: '/releases/{id}/evaluate', isRepeatable: true },
  'releases.promote': { method: 'POST', path: '/releases/{id}/promote', takes: 'body' },
  'releases.pause': { method: 'POST', path: '/releases/{id}/pause' },
  'releases.rollback': { method: 'POST', path: '/releases/{id}/rollback', isRepeatable: true },
  'sequences.compare': {
    method: 'POST',
    path: '/sequences/releases/diff',
    takes: 'body',
    isRepeatable: true,
  },
  'continuity.create': { method: 'POST', path: '/continuity/executions', takes: 'body' },
  'continuity.claim': {
    method: 'POST',
    path: '/continuity/executions/claim',
    takes: 'body',
    isRepeatable: true,
  },
  'continuity.get': { method: 'GET', path: '/continuity/executions/{id}', takes: 'query' },
  'continuity.locations': {
    method: 'GET',
    path: '/continuity/executions/{id}/locations',
    takes: 'query',
  },
  'continuity.effects': {
    method: 'GET',
    path: '/continuity/executions/{id}/effects',
    takes: 'query',
  },
  'continuity.checkpoints': {
    method: 'GET',
    path: '/continuity/executions/{id}/checkpoints',
    takes: 'query',
  },
  'continuity.checkpoint': {
    method: 'GET',
    path: '/continuity/executions/{id}/checkpoints/{checkpoint_id}',
    takes: 'query',
  },
  'continuity.provenance': {
    method: 'GET',
    path: '/continuity/executions/{id}/provenance',
    takes: 'query',
  },
  'continuity.appendProvenance': {
    method: 'POST',
    path: '/continuity/executions/{id}/provenance',
    takes: 'body',
  },
  'continuity.verifyProvenance': {
    method: 'GET',
    path: '/continuity/executions/{id}/provenance/verify',
    takes: 'query',
  },
  'continuity.place': {
    method: 'POST',
    path: '/continuity/executions/{id}/placement',
    takes: 'body',
  },
  'continuity.preview': {
    method: 'POST',
    path: '/continuity/executions/{id}/handoff-preview',
    takes: 'body',
  },
  'instances.effects': {
    method: 'GET',
    path: '/instances/{id}/effects',
    takes: 'query',
    pages: 'cursor',
  },
  'continuity.resolveEffect': {
    method: 'POST',
    path: '/continuity/effects/{id}/resolve',
    takes: 'body',
  },
  'migrations.migrate': { method: 'POST', path: '/instances/{id}/migrate', takes: 'body' },
  'sequences.migrateInstances': {
    method: 'POST',
    path: '/sequences/{id}/migrate-instances',
    takes: 'body',
  },
  'migrations.plan': { method: 'POST', path: '/continuity/migrations/plan', takes: 'body' },
  'migrations.get': { method: 'GET', path: '/continuity/migrations/{id}', takes: 'query' },
  'migrations.apply': { method: 'POST', path: '/continuity/migrations/{id}/apply', takes: 'body' },
  'migrations.rollback': {
    method: 'POST',
    path: '/continuity/migrations/{id}/rollback',
    takes: 'body',
  },
  'runtimes.register': {
    method: 'POST',
    path: '/runtimes/register',
    takes: 'body',
    isRepeatable: true,
  },
  'runtimes.list': { method: 'GET', path: '/runtimes', takes: 'query' },
  'handoffs.create': { method: 'POST', path: '/continuity/handoffs', takes: 'body' },
  'handoffs.get': { method: 'GET', path: '/continuity/handoffs/{id}', takes: 'query' },
  'handoffs.export': { method: 'POST', path: '/continuity/handoffs/{id}/export', takes: 'body' },
  'handoffs.attach': {
    method: 'POST',
    path: '/continuity/handoffs/{id}/attach-device-capsule',
    takes: 'body',
  },
  'handoffs.accept': {
    method: 'POST',
    path: '/continuity/handoffs/{id}/accept',
    takes: 'body',
    isRepeatable: true,
  },
  'handoffs.resume': { method: 'POST', path: '/continuity/handoffs/{id}/resume', takes: 'body' },
  'handoffs.reject': { method: 'POST', path: '/continuity/handoffs/{id}/reject', takes: 'body' },
  'handoffs.revoke': { method: 'POST', path: '/continuity/handoffs/{id}/revoke', takes: 'body' },
  'capsules.import': {
    method: 'POST',
    path: '/continuity/capsules/import',
    takes: 'body',
    isRepeatable: true,
  },
  whoami: { method: 'GET', path: '/whoami' },
  'apiKeys.mint': { method: 'POST', path: '/api-keys', takes: 'body' },
  'apiKeys.list': { method: 'GET', path: '/api-keys', takes: 'query', pages: 'cursor' },
  'apiKeys.revoke': { method: 'DELETE', path: '/api-keys/{id}' },
  'actions.list': { method: 'GET', path: '/actions', takes: 'query', pages: 'cursor' },
  'tenants.list': { method: 'GET', path: '/tenants', takes: 'query', pages: 'cursor' },
  'tenantLimits.put': { method: 'PUT', path: '/tenants/{id}/limits', takes: 'body' },
  'tenantLimits.get': { method: 'GET', path: '/tenants/{id}/limits' },
  'tenantLimits.delete': { method: 'DELETE', path: '/tenants/{id}/limits' },
  'cells.list': { method: 'GET', path: '/cells' },
  'cells.moves': { method: 'GET', path: '/cells/moves', takes: 'query', pages: 'cursor' },
  'webhooks.subscribe': { method: 'POST', path: '/webhooks', takes: 'body' },
  'webhooks.subscriptions': { method: 'GET', path: '/webhooks', takes: 'query', pages: 'offset' },
  'webhooks.subscription': { method: 'GET', path: '/webhooks/{id}' },
  'webhooks.update': { method: 'PATCH', path: '/webhooks/{id}', takes: 'body', isRepeatable: true },
  'webhooks.unsubscribe': { method: 'DELETE', path: '/webhooks/{id}' },
  'webhooks.subscriptionDeliveries': {
    method: 'GET',
    path: '/webhooks/{id}/deliveries',
    takes: 'query',
    pages: 'cursor',
  },
  'webhooks.outbox': { method: 'GET', path: '/webhooks/outbox', takes: 'query' },
  'webhooks.redeliver': { method: 'POST', path: '/webhooks/outbox/{id}/redeliver' },
  'webhooks.redeliverPreview': { method: 'GET', path: '/webhooks/outbox/{id}/redeliver-preview' },
  'webhooks.discard': { method: 'DELETE', path: '/webhooks/outbox/{id}' },
  'webhooks.deliveries': {
    method: 'GET',
    path: '/webhooks/deliveries',
    takes: 'query',
    pages: 'cursor',
  },
  'webhooks.delivery': { method: 'GET', path: '/webhooks/deliveries/{delivery_id}' },
  'triggers.create': { method: 'POST', path: '/triggers', takes: 'body', fills: ['tenant_id'] },
  'triggers.list': { method: 'GET', path: '/triggers', takes: 'query', pages: 'cursor' },
  'triggers.get': { method: 'GET', path: '/triggers/{slug}' },
  'triggers.update': {
    method: 'PATCH',
    path: '/triggers/{slug}',
    takes: 'body',
    isRepeatable: true,
  },
  'triggers.delete': { method: 'DELETE', path: '/triggers/{slug}' },
  'triggers.fire': { method: 'POST', path: '/triggers/{slug}/fire', takes: 'body' },
  'triggers.receive': { method: 'POST', path: '/webhooks/{id}', takes: 'body' },
  'events.send': { method: 'POST', path: '/events', takes: 'body', key: 'producer_event_id' },
  'events.sendBatch': {
    method: 'POST',
    path: '/events/batch',
    takes: 'body',
    each: 'events',
    key: 'producer_event_id',
  },
  'events.list': { method: 'GET', path: '/events', takes: 'query', pages: 'cursor' },
  'events.get': { method: 'GET', path: '/events/{id}' },
  'changes.list': { method: 'GET', path: '/changes', takes: 'query', pages: 'changes' },
  'changes.stream': { method: 'GET', path: '/changes/stream', takes: 'query', answers: 'events' },
  'search.list': { method: 'GET', path: '/search', takes: 'query' },
  'instances.failures': { method: 'GET', path: '/instances/failures', takes: 'query' },
  'instances.failureAttributes': {
    method: 'GET',
    path: '/instances/failures/attributes',
    takes: 'query',
  },
  'queues.list': { method: 'GET', path: '/queues', takes: 'query' },
  'queues.series': { method: 'GET', path: '/queues/series', takes: 'query' },
  'activity.get': { method: 'GET', path: '/activity', takes: 'query' },
  'sequences.steps': { method: 'GET', path: '/sequences/{id}/steps', takes: 'query' },
  'instances.slowest': { method: 'GET', path: '/instances/slowest', takes: 'query' },
  'releases.series': { method: 'GET', path: '/releases/{id}/series', takes: 'query' },
} as const satisfies Readonly<Record<string, OperationRow>>;
