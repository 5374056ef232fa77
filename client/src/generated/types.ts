/** The shapes of requests and answers. Written by `npm run generate`. */

/** Any value that JSON can hold. */
export type JsonValue = string | number | boolean | null | readonly JsonValue[] | JsonObject;

export interface JsonObject {
  readonly [name: string]: JsonValue;
}

/**
 * Runs one of its variants, chosen in proportion to the weights by a hash of instance and block
 * id. Names are unique, and at least one weight is above 0.
 */
export interface AbSplitBlock {
  /** Kind of the block; both names mean the same. */
  readonly type: 'ab_split' | 'a_b_split';
  /**
   * Unique in the sequence. Expressions use it to refer to the output. Must not be __proto__,
   * constructor, prototype, . or ..
   */
  readonly id: string;
  /** If false, skips the block. */
  readonly when?: string | null | undefined;
  /** Time limit in ms; then the block is cancelled, and fails. */
  readonly timeout?: number | null | undefined;
  /** Variants, one of which is chosen. */
  readonly variants: readonly SplitVariant[];
}

export interface AcceptHandoff {
  readonly tenant_id?: string | null | undefined;
  readonly destination_instance_id: string;
  /** For an instance on another server. */
  readonly import_receipt?: ImportReceipt | null | undefined;
}

/** A change by a request of a person or a program. */
export interface Action {
  readonly id: string;
  readonly tenant_id: string;
  /** ISO 8601. */
  readonly at: string;
  /**
   * Name of the key, or its id if it has none; root: the root key or none; of a link: the
   * recipient.
   */
  readonly by: string;
  /** Id of the key; null: the root key, no key or a link. */
  readonly key_id: string | null;
  /** Operation of the request, such as sequences.deprecate. */
  readonly operation: string;
  /** Kind of the changed object, one of those of the filter. */
  readonly kind: string;
  /** Id of the changed object, or its name if it has no id. */
  readonly target: string;
  /** Name and version of the sequence of the object; block of an approval; null: none, or deleted. */
  readonly name: string | null;
  /** The instance, for an instance or an approval. */
  readonly instance_id: string | null;
  /** Some members of the request, and in changed the names of others. */
  readonly details: JsonObject;
  /** The action as a sentence without subject. */
  readonly summary: string;
}

/** Created and finished instances by interval. */
export interface Activity {
  /** ISO 8601. */
  readonly since: string;
  readonly step_secs: number;
  /** Oldest first, including empty intervals. */
  readonly intervals: readonly ActivityInterval[];
  /** False: the oldest intervals are incomplete. */
  readonly complete: boolean;
}

export interface ActivityInterval {
  /** Start of the interval. */
  readonly at: string;
  readonly created: number;
  readonly completed: number;
  readonly failed: number;
  readonly cancelled: number;
  /** Time from creation to completion or failure, within 10 %; null if none finished. */
  readonly duration_p50_ms: number | null;
  readonly duration_p95_ms: number | null;
}

export interface AnswerApproval {
  /** One of the values in choices. */
  readonly value: string;
  /** Comment, allowed only with allow_comment. An empty text counts as absent. */
  readonly comment?: string | null | undefined;
  /** A repetition with the same id returns the first answer. An empty text counts as absent. */
  readonly answer_id?: string | null | undefined;
}

export interface ApiKey {
  /** Id of a key: ak_ and 32 hexadecimal digits. */
  readonly id: string;
  readonly tenant_id: string;
  readonly name: string;
  readonly capabilities: readonly Capability[];
  /** Groups for which the key answers approvals. */
  readonly groups: readonly string[];
  /** ISO 8601. */
  readonly created_at: string;
  /** ISO 8601. */
  readonly last_used_at: string | null;
  /** ISO 8601. */
  readonly expires_at: string | null;
  readonly revoked: boolean;
}

export interface AppendProvenance {
  readonly tenant_id?: string | null | undefined;
  readonly kind: 'package_identity' | 'model_selected' | 'terminal_outcome';
  readonly payload_sha256: string;
}

export interface ApplyMigration {
  readonly tenant_id?: string | null | undefined;
  /** Default: false. */
  readonly approved?: boolean | null | undefined;
}

/** A step that waits for a person's answer. */
export interface Approval {
  readonly id: string;
  readonly instance_id: string;
  readonly tenant_id: string;
  readonly namespace: string;
  readonly sequence_id: string;
  readonly sequence_name: string | null;
  readonly block_id: string;
  /** Path from the outermost block, such as orders[2]/charge. */
  readonly path: string;
  /** Question to the person. */
  readonly prompt: string;
  readonly choices: readonly GateChoice[];
  /** Key of context.data that receives the value. */
  readonly store_as: string;
  readonly timeout_seconds: number | null;
  readonly escalation_handler: string | null;
  readonly allow_comment: boolean;
  /** Groups whose members may answer; empty: every key that may answer. */
  readonly approvers: readonly string[];
  /** ISO 8601. */
  readonly waiting_since: string;
  /** Time of the time-out; null: never. */
  readonly deadline: string | null;
  /** Metadata of the instance. */
  readonly metadata: JsonObject;
}

/** The accepted answer. */
export interface ApprovalAnswered {
  readonly id: string;
  readonly instance_id: string;
  readonly block_id: string;
  readonly value: string;
  readonly comment: string | null;
  /** Name of the key, or recipient of the link. */
  readonly answered_by: string | null;
  /** ISO 8601. */
  readonly answered_at: string;
  /** True: the answer with this answer_id was accepted before. */
  readonly repeated: boolean;
}

export interface ApprovalLink {
  /** Allows its holder to answer once, without a key. */
  readonly url: string;
  /** ISO 8601. */
  readonly expires_at: string;
}

export interface ApprovalPage {
  readonly items: readonly Approval[];
  /** Number of approvals, counted up to 10000. */
  readonly total: number;
}

export interface AttachCapsule {
  readonly tenant_id?: string | null | undefined;
  readonly destination_instance_id: string;
  readonly capsule: Capsule;
  readonly payload_base64: string;
  readonly payload_key_base64: string;
}

export interface AuditEntry {
  readonly id: string;
  readonly instance_id: string;
  readonly tenant_id: string;
  readonly event_type: string;
  readonly from_state?: InstanceState;
  readonly to_state?: InstanceState;
  readonly block_id?: string;
  readonly details: JsonValue;
  /** Present for a change to failed. */
  readonly failure?: Failure;
  /** ISO 8601. */
  readonly created_at: string;
}

/** The action signal requires signal_type. */
export interface BatchAction {
  readonly filter: {
    readonly tenant_id?: string | null | undefined;
    readonly namespace?: string | null | undefined;
    readonly sequence_id?: string | null | undefined;
    /** Includes every version of the sequences with this name. */
    readonly sequence_name?: string | null | undefined;
    /** Alias of sequence_name. */
    readonly sequence?: string | null | undefined;
    /** Version of the sequence. */
    readonly sequence_version?: number | null | undefined;
    /** Children of this instance. */
    readonly parent_instance_id?: string | null | undefined;
    /** At most 1000 instances. */
    readonly ids?: readonly string[] | null | undefined;
    /** Instances with a step that waits for it (see explain). */
    readonly waiting_for?:
      | 'task'
      | 'handler'
      | 'approval'
      | 'sleep'
      | 'delay'
      | 'retry'
      | 'child'
      | 'rate_limit'
      | 'event'
      | 'slot'
      | null
      | undefined;
    /** Only objects created after this time. */
    readonly created_after?: string | null | undefined;
    /** Only objects created before this time. */
    readonly created_before?: string | null | undefined;
    /** Only instances changed after this time. */
    readonly updated_after?: string | null | undefined;
    /** Only instances changed before this time. */
    readonly updated_before?: string | null | undefined;
    /** Only instances that failed after this time. */
    readonly failed_after?: string | null | undefined;
    /** Only instances that failed before this time. */
    readonly failed_before?: string | null | undefined;
    /** Part of the failure's message or code; case-insensitive. */
    readonly failure?: string | null | undefined;
    /** Code of the failure. */
    readonly failure_code?: string | null | undefined;
    /** block_id of the failure. */
    readonly failure_block?: string | null | undefined;
    /** Handler of the failure. */
    readonly failure_handler?: string | null | undefined;
    /** Reason of the failure, as in /instances/failures. */
    readonly failure_reason?: string | null | undefined;
    readonly metadata?: { readonly [name: string]: string } | null | undefined;
    readonly states?: readonly InstanceState[] | null | undefined;
  };
  readonly action: 'retry' | 'pause' | 'resume' | 'cancel' | 'signal';
  readonly signal_type?: string | null | undefined;
  readonly payload?: unknown;
  /** Only counts: nothing is changed. Default: false. */
  readonly dry_run?: boolean | null | undefined;
  /**
   * Also retries children whose parents continued without them. Default: skips them. Default:
   * false.
   */
  readonly orphans?: boolean | null | undefined;
  /** Maximum number of instances changed per minute, spread evenly; runs as a job. */
  readonly per_minute?: number | null | undefined;
  /** Default: 1000. */
  readonly limit?: number | null | undefined;
}

export interface BatchActionResult {
  readonly matched: number;
  readonly applied: number;
  readonly skipped: number;
  readonly failed: number;
  readonly dry_run: boolean;
  /** With dry_run: retried instances that would repeat external effects; else 0. */
  readonly repeats_effects: number;
  /** The record of the change; absent with dry_run. */
  readonly job_id?: string;
  /** The first failures; absent if none. */
  readonly refusals?: readonly ChangeRefusal[];
}

export interface BatchCreated {
  /** Number of accepted items. */
  readonly count: number;
  /** Number of new instances. */
  readonly created: number;
  /** Number of items that created nothing (when_full: skip). */
  readonly skipped?: number;
}

/**
 * A block of a sequence. Nested at most 64 levels; a sequence has at most 5000 blocks with unique
 * ids.
 */
export type Block =
  | StepBlock
  | ParallelBlock
  | RaceBlock
  | RouterBlock
  | TryCatchBlock
  | LoopBlock
  | ForEachBlock
  | SubSequenceBlock
  | CancellationScopeBlock
  | SagaBlock
  | AbSplitBlock;

/** Output of a block. attempt counts from 0. */
export interface BlockOutput {
  readonly id: string;
  readonly instance_id: string;
  readonly block_id: string;
  readonly output: JsonValue;
  readonly output_ref: string | null;
  readonly output_size: number;
  readonly attempt: number;
  /** Counters of the enclosing loops, such as 2.0. */
  readonly iteration?: string;
  /** ISO 8601. */
  readonly created_at: string;
}

export type BlockState =
  | 'pending'
  | 'running'
  | 'waiting'
  | 'completed'
  | 'failed'
  | 'cancelled'
  | 'skipped';

export interface BlocksInjected {
  readonly injected_block_ids: readonly string[];
  readonly position: number;
  readonly total_injected: number;
  /** At most 100; the last counts the rest. */
  readonly warnings?: readonly {
    /** Such as blocks[2].branches[0][1].retry.initialBackoff. */
    readonly path: string;
    readonly message: string;
    /** Name or value that was probably meant. */
    readonly suggestion?: string;
  }[];
}

/** A change of many instances. */
export interface BulkJob {
  readonly id: string;
  readonly tenant_id: string;
  readonly operation: 'state' | 'reschedule' | 'batch_action';
  /** Body of the request. */
  readonly request: JsonObject;
  readonly state: BulkJobState;
  /** Number of matches so far: applied, skipped and failed. */
  readonly matched: number;
  /** Number of instances changed or, with dry_run, to be changed. */
  readonly applied: number;
  /** Number of matches that needed no change or were deleted. */
  readonly skipped: number;
  /** Number of matches whose change was refused. */
  readonly failed: number;
  /** With dry_run: retried instances that would repeat external effects; else 0. */
  readonly repeats_effects: number;
  /** Why the job failed. */
  readonly error: string | null;
  /** Name of the key; null: unknown. */
  readonly requested_by: string | null;
  /** ISO 8601. */
  readonly created_at: string;
  /** ISO 8601. */
  readonly updated_at: string;
  /** ISO 8601. */
  readonly ended_at: string | null;
  /** When a job with per_minute changes the next instances. */
  readonly next_at: string | null;
  /** Null unless it retries. Only in the job by its id. */
  readonly outcome?: RetryOutcome | null;
}

export type BulkJobState = 'running' | 'cancelling' | 'completed' | 'cancelled' | 'failed';

export interface BulkReschedule {
  readonly filter: {
    readonly tenant_id?: string | null | undefined;
    readonly namespace?: string | null | undefined;
    readonly sequence_id?: string | null | undefined;
    /** Includes every version of the sequences with this name. */
    readonly sequence_name?: string | null | undefined;
    /** Alias of sequence_name. */
    readonly sequence?: string | null | undefined;
    /** Version of the sequence. */
    readonly sequence_version?: number | null | undefined;
    /** Children of this instance. */
    readonly parent_instance_id?: string | null | undefined;
    /** At most 1000 instances. */
    readonly ids?: readonly string[] | null | undefined;
    /** Instances with a step that waits for it (see explain). */
    readonly waiting_for?:
      | 'task'
      | 'handler'
      | 'approval'
      | 'sleep'
      | 'delay'
      | 'retry'
      | 'child'
      | 'rate_limit'
      | 'event'
      | 'slot'
      | null
      | undefined;
    /** Only objects created after this time. */
    readonly created_after?: string | null | undefined;
    /** Only objects created before this time. */
    readonly created_before?: string | null | undefined;
    /** Only instances changed after this time. */
    readonly updated_after?: string | null | undefined;
    /** Only instances changed before this time. */
    readonly updated_before?: string | null | undefined;
    /** Only instances that failed after this time. */
    readonly failed_after?: string | null | undefined;
    /** Only instances that failed before this time. */
    readonly failed_before?: string | null | undefined;
    /** Part of the failure's message or code; case-insensitive. */
    readonly failure?: string | null | undefined;
    /** Code of the failure. */
    readonly failure_code?: string | null | undefined;
    /** block_id of the failure. */
    readonly failure_block?: string | null | undefined;
    /** Handler of the failure. */
    readonly failure_handler?: string | null | undefined;
    /** Reason of the failure, as in /instances/failures. */
    readonly failure_reason?: string | null | undefined;
    readonly metadata?: { readonly [name: string]: string } | null | undefined;
    readonly states?: readonly InstanceState[] | null | undefined;
  };
  readonly offset_secs: number;
  /** Only counts: nothing is changed. Default: false. */
  readonly dry_run?: boolean | null | undefined;
}

export interface BulkState {
  readonly filter: {
    readonly tenant_id?: string | null | undefined;
    readonly namespace?: string | null | undefined;
    readonly sequence_id?: string | null | undefined;
    /** Includes every version of the sequences with this name. */
    readonly sequence_name?: string | null | undefined;
    /** Alias of sequence_name. */
    readonly sequence?: string | null | undefined;
    /** Version of the sequence. */
    readonly sequence_version?: number | null | undefined;
    /** Children of this instance. */
    readonly parent_instance_id?: string | null | undefined;
    /** At most 1000 instances. */
    readonly ids?: readonly string[] | null | undefined;
    /** Instances with a step that waits for it (see explain). */
    readonly waiting_for?:
      | 'task'
      | 'handler'
      | 'approval'
      | 'sleep'
      | 'delay'
      | 'retry'
      | 'child'
      | 'rate_limit'
      | 'event'
      | 'slot'
      | null
      | undefined;
    /** Only objects created after this time. */
    readonly created_after?: string | null | undefined;
    /** Only objects created before this time. */
    readonly created_before?: string | null | undefined;
    /** Only instances changed after this time. */
    readonly updated_after?: string | null | undefined;
    /** Only instances changed before this time. */
    readonly updated_before?: string | null | undefined;
    /** Only instances that failed after this time. */
    readonly failed_after?: string | null | undefined;
    /** Only instances that failed before this time. */
    readonly failed_before?: string | null | undefined;
    /** Part of the failure's message or code; case-insensitive. */
    readonly failure?: string | null | undefined;
    /** Code of the failure. */
    readonly failure_code?: string | null | undefined;
    /** block_id of the failure. */
    readonly failure_block?: string | null | undefined;
    /** Handler of the failure. */
    readonly failure_handler?: string | null | undefined;
    /** Reason of the failure, as in /instances/failures. */
    readonly failure_reason?: string | null | undefined;
    readonly metadata?: { readonly [name: string]: string } | null | undefined;
    readonly states?: readonly InstanceState[] | null | undefined;
  };
  readonly state: InstanceState;
  /** Only counts: nothing is changed. Default: false. */
  readonly dry_run?: boolean | null | undefined;
  /**
   * Also retries children whose parents continued without them. Default: skips them. Default:
   * false.
   */
  readonly orphans?: boolean | null | undefined;
}

export interface BulkUpdated {
  /** Number of instances changed or, with dry_run, to be changed. */
  readonly count: number;
  /** Alias of count for older clients; 0 with dry_run. */
  readonly updated: number;
  readonly dry_run?: true;
  /** Absent: 0. With dry_run: retried instances that would repeat external effects; else 0. */
  readonly repeats_effects?: number;
}

/** A step that runs in the server after an instance was cancelled. */
export interface CancelHook {
  /** Kind of the block. */
  readonly type: 'step';
  /**
   * Unique in the sequence. Expressions use it to refer to the output. Must not be __proto__,
   * constructor, prototype, . or ..
   */
  readonly id: string;
  /** If false, skips the block. */
  readonly when?: string | null | undefined;
  /** Time limit in ms. Default and maximum: 30000. */
  readonly timeout?: number | null | undefined;
  /** A built-in handler; hooks cannot use workers. */
  readonly handler: 'noop' | 'log' | 'sleep' | 'http_request' | 'fail' | 'transform' | 'assert';
  /**
   * Parameters of the handler. Invalid ones of built-in handlers are answered 400. noop: none.
   * log: message, level (debug, info, warn). sleep: duration_ms (default 100). wait_for_event:
   * name (required), key, timeout_ms, schema. http_request: url (required), method (GET, POST,
   * PUT, PATCH, DELETE, HEAD), headers, body, timeout_ms (default 10000). fail: message,
   * retryable. transform: anything. assert: condition (required), message.
   */
  readonly params?: object | null | undefined;
  /** Not supported. */
  readonly delay?: false | null | undefined;
  /** Not supported. */
  readonly retry?: false | null | undefined;
  /** Not supported. */
  readonly send_window?: false | null | undefined;
  /** Not supported. */
  readonly rate_limit_key?: false | null | undefined;
  /** Not supported. */
  readonly queue_name?: false | null | undefined;
  /** Not supported. */
  readonly cancellable?: false | null | undefined;
  /** Not supported. */
  readonly merge_output?: false | null | undefined;
  /** Not supported. */
  readonly output_schema?: false | null | undefined;
}

/** An event that cancels the instances of the sequence. */
export interface CancelOn {
  /** Name of the event. */
  readonly event: string;
  /**
   * Correlation key of the event. A template over the data and config of the instance at its
   * creation. Default: every event with the name.
   */
  readonly key?: string | null | undefined;
}

/** Runs its blocks in order; the signal cancel takes effect after them. */
export interface CancellationScopeBlock {
  /** Kind of the block. */
  readonly type: 'cancellation_scope';
  /**
   * Unique in the sequence. Expressions use it to refer to the output. Must not be __proto__,
   * constructor, prototype, . or ..
   */
  readonly id: string;
  /** If false, skips the block. */
  readonly when?: string | null | undefined;
  /** Time limit in ms; then the block is cancelled, and fails. */
  readonly timeout?: number | null | undefined;
  /** Blocks to run. */
  readonly blocks: readonly Block[];
}

/** Protected work of a cancelled instance. */
export interface Cancelling {
  /** ISO 8601. */
  readonly since: string;
  readonly reason: 'cancel' | 'timeout';
  /** Ids of running blocks, at most 20. */
  readonly waiting_for: readonly string[];
}

export type Capability =
  | 'operator'
  | 'worker'
  | 'device'
  | 'publisher'
  | 'approver'
  | 'auditor'
  | 'starter'
  | 'events'
  | 'secrets';

/** Content, recipient and expiry, signed by its sealer. */
export interface Capsule {
  readonly manifest: CapsuleManifest;
  readonly manifest_sha256: string;
  readonly signature: string;
  readonly public_key: string;
}

export interface CapsuleAttached {
  readonly handoff: Handoff;
  readonly destination_instance_id: string;
}

export interface CapsuleImported {
  readonly instance_id: string;
  readonly state: 'paused';
  readonly import_receipt: ImportReceipt;
}

export interface CapsuleManifest {
  readonly schema: {
    readonly major: number;
    readonly minor: number;
  };
  readonly capsule_id: string;
  readonly continuity_id: string;
  readonly source_instance_id: string;
  readonly epoch: number;
  readonly tenant_id: string;
  readonly source_runtime_id: string;
  readonly allowed_destination_runtime_id: string | null;
  readonly sequence: {
    readonly id: string;
    readonly version: number;
    readonly content_sha256: string;
  };
  readonly checkpoint: {
    readonly block_id: string;
    readonly sha256: string;
  };
  readonly requirements_sha256: string;
  readonly payload_artifact: PayloadArtifact;
  readonly provenance_head: string | null;
  /** ISO 8601. */
  readonly issued_at: string;
  /** ISO 8601. */
  readonly expires_at: string;
  readonly signing_key_id: string;
  readonly encryption_key_id: string;
}

export interface Cell {
  /** Also the name of its Postgres schema. */
  readonly name: string;
  readonly state: 'open' | 'closed' | 'draining';
  /** Address of the database, without password. */
  readonly database_url: string;
  /** Addresses of its engines, for proxies. */
  readonly addresses: readonly string[];
  readonly engines: readonly CellEngine[];
  /** Number of tenants of the cell. */
  readonly tenants: number;
  /** Number of tenants that move from or to the cell. */
  readonly moves_under_way: number;
  /** ISO 8601. */
  readonly created_at: string;
}

/** An engine of a cell, as it last reported. */
export interface CellEngine {
  readonly address: string;
  readonly role: 'owner' | 'standby';
  readonly version: string;
  /** Delay in ms of uncommitted writes; null: no writes. */
  readonly lag_ms: number | null;
  /** ISO 8601. */
  readonly seen_at: string;
  /** True: no report for 15 seconds; considered down. */
  readonly is_silent: boolean;
}

export interface Cells {
  /** False: without a directory there are no cells. */
  readonly cluster: boolean;
  /** The cell of the answering engine. */
  readonly own: string;
  readonly cells: readonly Cell[];
}

export interface ChangeRefusal {
  readonly instance_id: string;
  /** Error, as in the response to a change of only this instance. */
  readonly error: string;
}

export interface ChangedCall {
  readonly block_id: string;
  /** handler, or a path such as params.body.amount. */
  readonly member: string;
}

export interface Changes {
  readonly changes: readonly AuditEntry[];
  readonly next_cursor?: string;
  readonly has_more: boolean;
}

export interface Checkpoint {
  readonly id: string;
  readonly instance_id: string;
  readonly checkpoint_data: JsonValue;
  /** ISO 8601. */
  readonly created_at: string;
}

/** A checkpoint at an epoch of its instance. */
export interface CheckpointBoundary {
  readonly checkpoint_id: string;
  readonly instance_id: string;
  readonly continuity_id: string;
  readonly epoch: number;
  readonly sequence_id: string;
  readonly sequence_version: number;
  readonly block_id: string;
  readonly checkpoint_sha256: string;
  readonly provenance_head: string | null;
  /** ISO 8601. */
  readonly created_at: string;
}

export interface CheckpointBoundaryDetail {
  readonly boundary: CheckpointBoundary;
  /** Value of the checkpoint; not redacted, unlike the diff. */
  readonly checkpoint_data: JsonValue;
  readonly previous_checkpoint_id: string | null;
  readonly redacted_state_diff: readonly {
    readonly path: string;
    readonly before: JsonValue;
    readonly after: JsonValue;
  }[];
}

export interface CheckpointSaved {
  readonly id: string;
}

export interface CheckpointsPruned {
  readonly count: number;
  readonly dry_run?: true;
}

export interface ClaimExecution {
  readonly tenant_id?: string | null | undefined;
  readonly ownership_grant: OwnershipGrant;
}

export interface CompareSequences {
  readonly tenant_id?: string | null | undefined;
  readonly baseline_sequence_id: string;
  readonly candidate_sequence_id: string;
}

export interface CompleteTask {
  /** Must equal the claim's worker_id. */
  readonly worker_id: string;
  /** Its top-level keys are merged into context.data. */
  readonly output: object;
  /** Must equal the claim's epoch; required by some deployments. */
  readonly claim_epoch?: number | null | undefined;
  readonly logs?:
    | readonly {
        /** ISO 8601. */
        readonly ts?: string | null | undefined;
        readonly level?: string | null | undefined;
        readonly message: string;
      }[]
    | null
    | undefined;
}

export interface CompleteTaskResult {
  readonly kind: 'complete';
  readonly task_id: string;
  /** Its top-level keys are merged into context.data. */
  readonly output: object;
  /** Must equal the claim's epoch; required by some deployments. */
  readonly claim_epoch?: number | null | undefined;
  readonly logs?:
    | readonly {
        /** ISO 8601. */
        readonly ts?: string | null | undefined;
        readonly level?: string | null | undefined;
        readonly message: string;
      }[]
    | null
    | undefined;
}

export interface ContextPatched {
  readonly context: InstanceContext;
}

/** Portable identity of an instance. */
export interface ContinuityExecution {
  readonly continuity_id: string;
  readonly tenant_id: string;
  readonly current_instance_id: string;
  readonly owner_runtime_id: string;
  /** Ownership epoch, raised by changes of owner or version. */
  readonly epoch: number;
  readonly state: 'owned' | 'transferring' | 'completed' | 'failed' | 'cancelled';
  /** ISO 8601. */
  readonly updated_at: string;
}

export interface ContinuityLocation {
  readonly continuity_id: string;
  readonly tenant_id: string;
  readonly epoch: number;
  readonly runtime_id: string;
  readonly instance_id: string;
  readonly handoff_id: string | null;
  /** ISO 8601. */
  readonly entered_at: string;
}

/** Creates all instances or none, except items that may be skipped. */
export interface CreateBatch {
  readonly instances: readonly CreateInstance[];
}

export interface CreateCredential {
  /**
   * Must equal the header x-tenant-id, if sent. Must not be . or .., or begin or end with spaces
   * or tabs.
   */
  readonly tenant_id?: string | null | undefined;
  /**
   * Default: the name. Used in templates as {{secrets.id}}. Letters, digits, dots, _ and -. Must
   * not be . or ..
   */
  readonly id?: string | null | undefined;
  /** Default: the id. */
  readonly name?: string | null | undefined;
  /**
   * The secret: a text of at most 262144 bytes. If it is a JSON object, templates can use
   * {{secrets.id.member}}. Never returned. Must not be [REDACTED].
   */
  readonly value: string;
  /** Kind, a label for people. Default: "api_key". */
  readonly kind?: CredentialKind | null | undefined;
  readonly description?: string | null | undefined;
  /** Time from which steps cannot use the credential. */
  readonly expires_at?: string | null | undefined;
  /** Public address, for clients that renew the secret; with oauth2 only. */
  readonly refresh_url?: string | null | undefined;
  /** Refresh token, sealed like the value. Must not be [REDACTED]. */
  readonly refresh_token?: string | null | undefined;
}

export interface CreateExecution {
  readonly tenant_id?: string | null | undefined;
  readonly instance_id: string;
  readonly runtime_id: string;
}

/** Must equal the previewed terms. */
export interface CreateHandoff {
  readonly tenant_id?: string | null | undefined;
  readonly requirements?: Requirements | null | undefined;
  /** Alias of locality_policy. */
  readonly policy?:
    | {
        readonly version: number;
        readonly rules: readonly {
          readonly classification: 'public' | 'internal' | 'confidential' | 'restricted';
          readonly allowed_runtime_ids?: readonly string[] | null | undefined;
          readonly allowed_runtime_kinds?:
            | readonly ('server' | 'edge' | 'mobile' | 'desktop' | 'browser')[]
            | null
            | undefined;
          readonly allowed_regions?: readonly string[] | null | undefined;
          readonly minimum_trust?:
            | 'unverified'
            | 'registered'
            | 'signed'
            | 'attested'
            | null
            | undefined;
          readonly require_offline?: boolean | null | undefined;
          /** At most 256 bytes. */
          readonly require_hardware?: string | null | undefined;
          readonly allowed_connectivity?:
            | readonly ('offline' | 'metered' | 'wifi' | 'ethernet')[]
            | null
            | undefined;
          readonly minimum_battery_percent?: number | null | undefined;
          readonly maximum_cost_microunits?: number | null | undefined;
          readonly maximum_latency_ms?: number | null | undefined;
        }[];
      }
    | null
    | undefined;
  readonly locality_policy?:
    | {
        readonly version: number;
        readonly rules: readonly {
          readonly classification: 'public' | 'internal' | 'confidential' | 'restricted';
          readonly allowed_runtime_ids?: readonly string[] | null | undefined;
          readonly allowed_runtime_kinds?:
            | readonly ('server' | 'edge' | 'mobile' | 'desktop' | 'browser')[]
            | null
            | undefined;
          readonly allowed_regions?: readonly string[] | null | undefined;
          readonly minimum_trust?:
            | 'unverified'
            | 'registered'
            | 'signed'
            | 'attested'
            | null
            | undefined;
          readonly require_offline?: boolean | null | undefined;
          /** At most 256 bytes. */
          readonly require_hardware?: string | null | undefined;
          readonly allowed_connectivity?:
            | readonly ('offline' | 'metered' | 'wifi' | 'ethernet')[]
            | null
            | undefined;
          readonly minimum_battery_percent?: number | null | undefined;
          readonly maximum_cost_microunits?: number | null | undefined;
          readonly maximum_latency_ms?: number | null | undefined;
        }[];
      }
    | null
    | undefined;
  /** Alias of data_classification. */
  readonly classification?:
    | 'public'
    | 'internal'
    | 'confidential'
    | 'restricted'
    | null
    | undefined;
  /** Default: "internal". */
  readonly data_classification?:
    | 'public'
    | 'internal'
    | 'confidential'
    | 'restricted'
    | null
    | undefined;
  readonly continuity_id?: string | null | undefined;
  readonly placement_decision_id: string;
  readonly preview_sha256: string;
  readonly destination_runtime_id: string;
}

/**
 * One instance, alone or in a batch. Exactly one of sequence_id and sequence; version goes with
 * sequence.
 */
export interface CreateInstance {
  /**
   * Id of a version, from which a release may route to another one. Exactly one of sequence_id
   * and sequence is required.
   */
  readonly sequence_id?: string | null | undefined;
  /** Name of a sequence in the namespace, instead of sequence_id. */
  readonly sequence?: string | null | undefined;
  /**
   * With sequence: pins this version; no release routes it elsewhere. Default: the newest version
   * that is not deprecated, on hold, or held back by a release.
   */
  readonly version?: number | null | undefined;
  /**
   * Must equal the header x-tenant-id, if sent. Must not be . or .., or begin or end with spaces
   * or tabs. The client's own when absent.
   */
  readonly tenant_id?: string | undefined;
  /** The client's own when absent. */
  readonly namespace?: string | undefined;
  /** Case-insensitive. Default: "normal". */
  readonly priority?: 'low' | 'normal' | 'high' | 'critical' | null | undefined;
  /** IANA time zone, such as Europe/Berlin. Default: "UTC". */
  readonly timezone?: string | null | undefined;
  readonly metadata?: object | null | undefined;
  /** At most 256 KiB as JSON; deployments may set another limit. */
  readonly context?:
    | {
        readonly data?: object | null | undefined;
        readonly config?: object | null | undefined;
      }
    | null
    | undefined;
  /** Start time; default: now. */
  readonly next_fire_at?: string | null | undefined;
  /** Maximum duration in ms from the first step, without pauses; then it fails. */
  readonly timeout?: number | null | undefined;
  /** Instances with this key share max_concurrency. */
  readonly concurrency_key?: string | null | undefined;
  /** Maximum number of these instances that run at once. */
  readonly max_concurrency?: number | null | undefined;
  /** A repeated key returns the id of the first instance. An empty text counts as absent. */
  readonly idempotency_key?: string | null | undefined;
  /** Default: false. */
  readonly dry_run?: boolean | null | undefined;
  /** In a dry run, approvals get their first choice. Default: false. */
  readonly dry_run_auto_approve?: boolean | null | undefined;
  /** Not supported. */
  readonly budget?: false | null | undefined;
}

/** Two versions of one sequence. */
export interface CreateRelease {
  /** Must equal the header x-tenant-id, if sent. */
  readonly tenant_id?: string | null | undefined;
  readonly baseline_sequence_id: string;
  readonly candidate_sequence_id: string;
  /** Default: []. */
  readonly gates?: readonly Gate[] | null | undefined;
  /**
   * Neither migrates running instances: with operator_decision an operator does so explicitly.
   * Default: "pin".
   */
  readonly in_flight_policy?: 'pin' | 'operator_decision' | null | undefined;
}

/**
 * A schedule that creates an instance of the sequence at each fire. Exactly one of sequence_id
 * and sequence; version goes with sequence.
 */
export interface CreateSchedule {
  /** Must not be . or .., or begin or end with spaces or tabs. The client's own when absent. */
  readonly tenant_id?: string | undefined;
  /** The client's own when absent. */
  readonly namespace?: string | undefined;
  /**
   * Id of a version, from which a release may route to another one. Exactly one of sequence_id
   * and sequence is required.
   */
  readonly sequence_id?: string | null | undefined;
  /** Name of a sequence in the namespace, instead of sequence_id. */
  readonly sequence?: string | null | undefined;
  /**
   * With sequence: pins this version; no release routes it elsewhere. Default: the newest version
   * that is not deprecated, on hold, or held back by a release.
   */
  readonly version?: number | null | undefined;
  /**
   * Seven fields: second minute hour day month day_of_week year. Also accepted: six (without
   * year) or five (without second and year), ?, and @hourly, @daily, @weekly, @monthly, @yearly.
   */
  readonly cron_expr: string;
  /** IANA time zone, such as Europe/Berlin. Default: "UTC". */
  readonly timezone?: string | null | undefined;
  /** Metadata of the created instances. */
  readonly metadata?: object | null | undefined;
  /** Initial context; data must conform to the input_schema. */
  readonly context?:
    | {
        readonly data?: object | null | undefined;
        readonly config?: object | null | undefined;
      }
    | null
    | undefined;
  /** Maximum duration in ms from the first step, without pauses; then it fails. */
  readonly timeout?: number | null | undefined;
  /** Case-insensitive. Default: "normal". */
  readonly priority?: 'low' | 'normal' | 'high' | 'critical' | null | undefined;
  /** Default: true. */
  readonly enabled?: boolean | null | undefined;
  /** Action of a fire while an earlier run has not finished. Default: "allow". */
  readonly overlap_policy?: OverlapPolicy | null | undefined;
}

/** A definition; immutable once stored. */
export interface CreateSequence {
  /** Default: generated. */
  readonly id?: string | null | undefined;
  /**
   * Required. May be blank with the header x-tenant-id; else both must be equal. Must not be . or
   * .., or begin or end with spaces or tabs. The client's own when absent.
   */
  readonly tenant_id?: string | undefined;
  /** The client's own when absent. */
  readonly namespace?: string | undefined;
  readonly name: string;
  /** Unique with tenant, namespace and name. */
  readonly version: number;
  /** At most 5000 blocks in total, 64 levels deep. */
  readonly blocks: readonly Block[];
  /** Default: false. */
  readonly deprecated?: boolean | null | undefined;
  /** Lookups by name without version exclude it until lifted or promoted. Default: false. */
  readonly hold?: boolean | null | undefined;
  /** Default: "production". */
  readonly status?: SequenceStatus | null | undefined;
  /**
   * Schema of context.data; other data is answered 422. JSON Schema 2020-12 without pattern,
   * patternProperties and recursive references. At most 65536 bytes, and with references followed
   * 5000 values, 1000 schemas, keywords and listed names, and 100 schemas within one another.
   */
  readonly input_schema?: object | null | undefined;
  /** ISO 8601. */
  readonly created_at?: string | null | undefined;
  /**
   * Steps that run in the server after an instance has failed, in order. A failed step does not
   * stop the next.
   */
  readonly on_failure?: readonly FailureHook[] | null | undefined;
  /**
   * Steps that run in the server after an instance was cancelled, in order. A failed step does
   * not stop the next.
   */
  readonly on_cancel?: readonly CancelHook[] | null | undefined;
  /** Limits how many instances of the sequence, in all versions, run at once. */
  readonly concurrency?:
    | {
        /** Template over data and config of the creation; default: one key for all. */
        readonly key?: string | null | undefined;
        /** Maximum number of instances of a key that run at once. */
        readonly limit: number;
        /** Action of a creation while no slot is free. Default: "queue". */
        readonly when_full?:
          | 'queue'
          | 'skip'
          | 'cancel_oldest'
          | 'cancel_newest'
          | null
          | undefined;
      }
    | null
    | undefined;
  /** Puts off starts of instances of the sequence, in all versions. */
  readonly throttle?:
    | {
        /** Template over data and config of the creation; default: one key for all. */
        readonly key?: string | null | undefined;
        /** Maximum number of starts in any window of per_ms. */
        readonly limit: number;
        readonly per_ms: number;
        /**
         * Maximum number of starts at once, at most limit; further ones are per_ms / limit apart.
         * Default: limit.
         */
        readonly burst?: number | null | undefined;
      }
    | null
    | undefined;
  /** Events, sent after the creation of an instance, that cancel it. */
  readonly cancel_on?: readonly CancelOn[] | null | undefined;
  /** Of creations in quick succession, only the last one starts an instance. */
  readonly debounce?:
    | {
        /**
         * Template over data and config of a creation. Creations with different keys are collected
         * separately. Default: one key.
         */
        readonly key?: string | null | undefined;
        /** Time without another creation after which the last one starts. */
        readonly wait_ms: number;
        /** Maximum time from the first creation to the start; at least wait_ms. Default: none. */
        readonly max_wait_ms?: number | null | undefined;
      }
    | null
    | undefined;
  /** One instance starts with the data of several creations: context.data.items is their list. */
  readonly batch?:
    | {
        /**
         * Template over data and config of a creation. Creations with different keys are collected
         * separately. Default: one key.
         */
        readonly key?: string | null | undefined;
        /** Number of creations with which the instance starts at once. */
        readonly size: number;
        /** Maximum time from the first creation to the start. */
        readonly wait_ms: number;
      }
    | null
    | undefined;
  /**
   * Paths below context.data, such as customer.email, or with metadata as their first name below
   * the metadata. Instances are found by the texts and numbers there.
   */
  readonly searchable?: readonly string[] | null | undefined;
  /** Not supported. */
  readonly interceptors?: false | null | undefined;
  /** Not supported. */
  readonly sla?: false | null | undefined;
}

export interface CreateSubscription {
  /**
   * Must equal the header x-tenant-id, if sent. Must not be . or .., or begin or end with spaces
   * or tabs.
   */
  readonly tenant_id?: string | null | undefined;
  /** http or https, without credentials; a public address unless the deployment allows others. */
  readonly url: string;
  /** Default: all events. */
  readonly events?: readonly WebhookEventType[] | null | undefined;
  /** Default: generated. Key of the webhooks' signatures. Must not be [REDACTED]. */
  readonly secret?: string | null | undefined;
}

export interface CreateTrigger {
  /**
   * Part of the address, unique on the server: letters, digits, dots, _, ~ and -. Must not be .
   * or ..
   */
  readonly slug: string;
  /**
   * Must equal the header x-tenant-id, if sent. Must not be . or .., or begin or end with spaces
   * or tabs. The client's own when absent.
   */
  readonly tenant_id?: string | undefined;
  /** Name of the sequence, resolved at each fire. Exactly one of sequence_name and publish. */
  readonly sequence_name?: string | null | undefined;
  /** Publishes an event instead. */
  readonly publish?: TriggerPublish | null | undefined;
  /** Of webhook triggers, instead of secret: how requests are verified. */
  readonly verify?: TriggerVerify | null | undefined;
  /** Pins this version. Default: as for an instance created by name. */
  readonly version?: number | null | undefined;
  /** Default: "default". */
  readonly namespace?: string | null | undefined;
  /**
   * webhook: a signed request to /webhooks/{slug}. event: every event with a given name. Default:
   * "webhook".
   */
  readonly trigger_type?: TriggerType | null | undefined;
  /** Authenticates callers. Never returned. Must not be [REDACTED]. */
  readonly secret?: string | null | undefined;
  /** For event triggers: event_name, and optionally correlation_key to filter events. */
  readonly config?: object | null | undefined;
  /** Default: true. */
  readonly enabled?: boolean | null | undefined;
}

/** A credential without its secrets. */
export interface Credential {
  readonly id: string;
  readonly tenant_id: string;
  readonly name: string;
  readonly kind: CredentialKind;
  readonly description: string | null;
  readonly enabled: boolean;
  /** ISO 8601. */
  readonly expires_at: string | null;
  readonly refresh_url: string | null;
  readonly has_refresh_token: boolean;
  /** ISO 8601. */
  readonly created_at: string;
  /** ISO 8601. */
  readonly updated_at: string;
}

export type CredentialKind = 'api_key' | 'oauth2' | 'basic';

export interface CronSchedule {
  readonly id: string;
  readonly tenant_id: string;
  readonly namespace: string;
  readonly sequence_id: string | null;
  readonly sequence: string | null;
  readonly version: number | null;
  readonly cron_expr: string;
  readonly timezone: string;
  readonly enabled: boolean;
  readonly metadata: JsonObject;
  readonly context: {
    readonly data: JsonObject;
    readonly config: JsonObject;
  };
  readonly priority: Priority;
  readonly timeout: number | null;
  /** Action of a fire while an earlier run has not finished. */
  readonly overlap_policy: OverlapPolicy;
  readonly skipped_fires: number;
  /** ISO 8601. */
  readonly last_skipped_at: string | null;
  /** ISO 8601. */
  readonly last_triggered_at: string | null;
  /** ISO 8601. */
  readonly next_fire_at: string | null;
  readonly last_error: string | null;
  /** ISO 8601. */
  readonly created_at: string;
  /** ISO 8601. */
  readonly updated_at: string;
}

/** Waits before the first attempt. */
export interface Delay {
  /** Duration of the delay in ms. */
  readonly duration?: number | null | undefined;
  /** Local end YYYY-MM-DDTHH:MM:SS; instead of duration. */
  readonly fire_at_local?: string | null | undefined;
  /** Time zone of fire_at_local; default: the instance's. IANA time zone, such as Europe/Berlin. */
  readonly timezone?: string | null | undefined;
  /** Moves ends on weekends or holidays to the next business day. Default: false. */
  readonly business_days_only?: boolean | null | undefined;
  /** Moves the end by a random time up to this many ms, either way. */
  readonly jitter?: number | null | undefined;
  /** Holidays besides those in context.config.holidays. */
  readonly holidays?: readonly string[] | null | undefined;
}

export interface DeliveryAttempt {
  readonly id: string;
  readonly delivery_id: string;
  readonly url: string;
  readonly event_type: WebhookEventType;
  readonly instance_id?: string;
  /** Number of the attempt, from 1. */
  readonly attempt_number: number;
  /** ISO 8601. */
  readonly attempted_at: string;
  readonly duration_ms: number;
  readonly success: boolean;
  readonly status_code?: number;
  readonly error_class?: DeliveryErrorClass;
  readonly error_excerpt?: string;
  readonly signed: boolean;
  readonly subscription_id?: string;
}

export type DeliveryErrorClass =
  | 'dns'
  | 'connect'
  | 'tls'
  | 'timeout'
  | 'redirect_rejected'
  | 'http_status'
  | 'signature_configuration'
  | 'response_too_large'
  | 'internal_policy'
  | 'serialization'
  | 'aborted'
  | 'other';

export interface DeliverySummary {
  readonly delivery_id: string;
  readonly url: string;
  readonly event_type: WebhookEventType;
  readonly instance_id?: string;
  readonly attempts: number;
  readonly delivered: boolean;
  /** ISO 8601. */
  readonly first_attempted_at: string;
  /** ISO 8601. */
  readonly last_attempted_at: string;
  readonly status_code?: number | null;
  readonly error_class?: DeliveryErrorClass | null;
  readonly subscription_id?: string | null;
}

export interface DiffEntry {
  readonly category:
    | 'block_added'
    | 'block_removed'
    | 'block_type_changed'
    | 'blocks_reordered'
    | 'structure_changed'
    | 'handler_changed'
    | 'params_changed'
    | 'retry_changed'
    | 'timeout_changed'
    | 'delay_changed'
    | 'rate_limit_changed'
    | 'router_changed'
    | 'loop_changed'
    | 'race_changed'
    | 'saga_changed'
    | 'split_changed'
    | 'sub_sequence_changed'
    | 'missing_output_reference'
    | 'queue_changed'
    | 'send_window_changed'
    | 'approval_gate_changed'
    | 'output_schema_changed'
    | 'when_guard_changed'
    | 'cancellable_changed'
    | 'credential_requirement_added'
    | 'input_schema_narrowed'
    | 'input_schema_changed'
    | 'hooks_changed'
    | 'limits_changed'
    | 'cancel_on_changed'
    | 'collecting_changed'
    | 'searchable_changed';
  readonly severity: Severity;
  readonly block_id?: string;
  readonly summary: string;
}

/** A run that differs with the candidate. */
export interface Divergence {
  readonly instance_id: string;
  readonly recorded_state: InstanceState;
  readonly replayed_state: InstanceState;
  readonly blocks_added: readonly string[];
  readonly blocks_removed: readonly string[];
  /** Steps with a changed request; absent if none. */
  readonly calls_changed?: readonly ChangedCall[];
}

/** The end of a dry run; times are virtual. */
export interface DryRun {
  /** Not an end state if it waits for what does not come. */
  readonly state: InstanceState;
  readonly failure: Failure | null;
  /** context.data at the end. */
  readonly data: JsonObject;
  readonly tree: readonly TreeNode[];
  /** The last output of each block, by block id. */
  readonly outputs: JsonObject;
}

/** An external effect of a step attempt. */
export interface EffectReceipt {
  readonly id: string;
  readonly tenant_id: string;
  readonly continuity_id: string;
  readonly epoch: number;
  readonly instance_id: string;
  readonly block_id: string;
  readonly attempt: number;
  readonly kind:
    | 'http'
    | 'worker'
    | 'webhook'
    | 'message'
    | 'storage'
    | 'model'
    | 'human_decision'
    | 'custom';
  /** prepared: unclaimed; dispatched: in progress. */
  readonly state: EffectState;
  readonly destination_fingerprint: string;
  readonly idempotency_key: string | null;
  readonly request_sha256: string;
  readonly provider_receipt_id: string | null;
  /** ISO 8601. */
  readonly created_at: string;
  /** ISO 8601. */
  readonly updated_at: string;
}

/** prepared: unclaimed; dispatched: in progress. */
export type EffectState =
  | 'planned'
  | 'prepared'
  | 'dispatched'
  | 'committed'
  | 'failed'
  | 'unknown'
  | 'verified'
  | 'compensated'
  | 'abandoned';

/** Finished instances by final state. */
export interface EndedCounts {
  readonly total: number;
  readonly completed: number;
  readonly failed: number;
  readonly cancelled: number;
}

export type EndpointState = 'idle' | 'delivering' | 'paused' | 'disabled';

export interface EndpointStatus {
  readonly state: EndpointState;
  /** Claimed tasks whose delivery has not ended. */
  readonly in_flight: number;
  readonly last_error: string | null;
  /** ISO 8601. */
  readonly last_success_at: string | null;
  /** ISO 8601. */
  readonly paused_until: string | null;
}

/**
 * Finished instances since the canary started, and verdicts. baseline_history: the baseline's
 * newest runs before the canary, for gates with too few since then.
 */
export interface EvaluationReport {
  readonly baseline: EndedCounts;
  readonly baseline_history?: EndedCounts;
  readonly candidate: EndedCounts;
  readonly gates: readonly GateJudgement[];
  readonly auto_rolled_back: boolean;
  readonly release_state: ReleaseState;
}

/** An instance that the event cancels. */
export interface EventCancel {
  readonly instance_id: string;
  /**
   * pending: about to be cancelled; withdrawn: only creations of its batch, before it started;
   * ended: it had ended, or moved elsewhere, before.
   */
  readonly outcome: 'pending' | 'cancelled' | 'withdrawn' | 'ended';
  /** ISO 8601. */
  readonly cancelled_at: string | null;
}

export interface EventDetails {
  readonly id: string;
  readonly tenant_id: string;
  readonly event_name: string;
  readonly producer_event_id: string;
  readonly correlation_key: string | null;
  /** Payload, in which probable secrets are redacted. */
  readonly payload: JsonValue;
  readonly status: EventStatus;
  /** Number of matched steps. */
  readonly matched: number;
  /** ISO 8601. */
  readonly created_at: string;
  /** Time until which a later wait can match the event. */
  readonly expires_at: string;
  /** ISO 8601. */
  readonly consumed_at: string | null;
  /** The first instances that it cancels by cancel_on and that still exist. */
  readonly cancelled: readonly EventCancel[];
  /** The first consumers that still exist. */
  readonly taken_by: readonly EventTaker[];
}

/** Result of sending an event. */
export interface EventReceipt {
  readonly event_id: string;
  /** True: the receipt of an earlier event with this producer_event_id. */
  readonly duplicate: boolean;
  /** Id of the first matched wait. */
  readonly matched_wait?: string;
  /** Whether a step waited for it. */
  readonly satisfied: boolean;
  /** Number of waiting steps. */
  readonly matched: number;
  /** Number of instances that it cancels, started or not; absent: none. */
  readonly cancelled?: number;
  /** Number of triggers fired; absent: none, or a duplicate. */
  readonly triggers?: number;
}

export interface EventReceipts {
  /** Results in the order of the events. */
  readonly outcomes: readonly EventReceipt[];
}

export type EventStatus = 'pending' | 'consumed' | 'expired';

export interface EventTaker {
  readonly instance_id: string;
  readonly block_id: string;
  /** refused: the payload does not conform to the step's schema; the step continues to wait. */
  readonly outcome: 'taken' | 'refused';
  /** ISO 8601. */
  readonly taken_at: string;
}

export interface ExchangeTasks {
  /** Must not begin with endpoint:. */
  readonly worker_id: string;
  readonly version?: string | null | undefined;
  /** Results, each checked separately, in this order. */
  readonly results?: readonly TaskResult[] | null | undefined;
  /** At most 100 pairs of a handler and a queue. */
  readonly poll?:
    | {
        /** Claims tasks of these handlers by priority, then age. */
        readonly handlers: readonly string[];
        /** Restricts the poll to these queues. Default: all tasks. */
        readonly queues?: readonly string[] | null | undefined;
        /** Maximum number of tasks; 0 claims none. Larger values are lowered to 1000. Default: 1. */
        readonly limit?: number | null | undefined;
        /**
         * Maximum wait in ms for a task. A refused result ends it. Larger values are lowered to
         * 60000. Default: 0.
         */
        readonly wait_ms?: number | null | undefined;
      }
    | null
    | undefined;
  /** For a worker that stops: answers its waiting polls at once. Default: false. */
  readonly end_polls?: boolean | null | undefined;
}

export interface ExplanationWarning {
  /** An output exceeded its limit; expressions see a note. */
  readonly kind: 'output_truncated';
  readonly block_id: string;
  readonly summary: string;
}

export interface ExportHandoff {
  readonly tenant_id?: string | null | undefined;
  /** Findings of the placement decision. */
  readonly requirements?: Requirements | null | undefined;
  /** Default: 300. */
  readonly expires_in_seconds?: number | null | undefined;
  /**
   * A single-use key of 32 bytes, made by the destination. Default: only servers with the same
   * encryption key can open the capsule.
   */
  readonly payload_key_base64?: string | null | undefined;
  /** First saves a checkpoint of the live state. Default: false. */
  readonly capture_checkpoint?: boolean | null | undefined;
}

export interface FailTask {
  /** Must equal the claim's worker_id. */
  readonly worker_id: string;
  readonly message: string;
  /** Default: false. */
  readonly retryable?: boolean | null | undefined;
  /** Must equal the claim's epoch; required by some deployments. */
  readonly claim_epoch?: number | null | undefined;
  readonly logs?:
    | readonly {
        /** ISO 8601. */
        readonly ts?: string | null | undefined;
        readonly level?: string | null | undefined;
        readonly message: string;
      }[]
    | null
    | undefined;
}

export interface FailTaskResult {
  readonly kind: 'fail';
  readonly task_id: string;
  readonly message: string;
  /** Default: false. */
  readonly retryable?: boolean | null | undefined;
  /** Must equal the claim's epoch; required by some deployments. */
  readonly claim_epoch?: number | null | undefined;
  readonly logs?:
    | readonly {
        /** ISO 8601. */
        readonly ts?: string | null | undefined;
        readonly level?: string | null | undefined;
        readonly message: string;
      }[]
    | null
    | undefined;
}

/** The reason of a failure. block_id, path, handler and attempt are null if it was not a block. */
export interface Failure {
  /** The failed block, not the blocks around it. */
  readonly block_id: string | null;
  /** Path from the outermost block, such as orders[2]/charge. */
  readonly path: string | null;
  /** Handler of the step. */
  readonly handler: string | null;
  /** Attempt of the step, from 0. */
  readonly attempt: number | null;
  readonly code: FailureCode;
  readonly message: string;
  /** ISO 8601. */
  readonly at: string;
}

/** An attribute of failed instances. */
export interface FailureAttribute {
  /** version, block, attempt, queue, worker, worker_version, or metadata. and a key of metadata. */
  readonly name: string;
  /** Number of different values. */
  readonly distinct: number;
  /** Most frequent first, at most five. */
  readonly values: readonly {
    readonly value: string;
    /** Failed instances with it. */
    readonly count: number;
    /** Share of the failed instances. */
    readonly share: number;
    /** Share of the runs they are compared with; null: not known. */
    readonly share_of_runs: number | null;
  }[];
}

/** What failed instances have in common. */
export interface FailureAttributes {
  /** Examined newest instances, at most 500. */
  readonly failed: number;
  /** Newest runs of the same sequences since failed_after, at most 500. */
  readonly runs: number;
  /** Whether all instances of the cause were examined. */
  readonly complete: boolean;
  readonly attributes: readonly FailureAttribute[];
}

export type FailureCode =
  | 'handler_failed'
  | 'worker_failed'
  | 'retries_exhausted'
  | 'not_retried'
  | 'timeout'
  | 'claims_lost'
  | 'queue_timeout'
  | 'deadline'
  | 'instance_timeout'
  | 'expression_error'
  | 'secret_missing'
  | 'invalid_params'
  | 'invalid_collection'
  | 'context_limit'
  | 'output_schema'
  | 'handler_crashed'
  | 'data_refused'
  | 'memory_limit'
  | 'internal_error'
  | 'child_failed'
  | 'child_not_started'
  | 'child_too_deep'
  | 'cleanup_failed'
  | 'failed_by_request'
  | 'unrecorded';

/**
 * Instances with the same reason of failure. To select them in lists and bulk changes:
 * sequence_id, failure_code, failure_block, failure_handler and failure_reason.
 */
export interface FailureGroup {
  readonly namespace: string;
  readonly sequence_id: string;
  readonly sequence_name: string;
  readonly version: number;
  readonly block_id: string | null;
  readonly handler: string | null;
  /** Code of the failure. */
  readonly code: string;
  /** The message, with # for numbers and ids, and "…" for quoted text. */
  readonly reason: string;
  readonly count: number;
  /** ISO 8601. */
  readonly first_at: string;
  /** ISO 8601. */
  readonly last_at: string;
  /** Instance with the newest failure. */
  readonly example_instance_id: string;
  readonly example_message: string;
  /**
   * Failures in 24 equal intervals from failed_after to failed_before or now, oldest first; empty
   * without failed_after.
   */
  readonly counts: readonly number[];
  /**
   * Whether no instance of any sequence that failed with this code, handler and reason in as long
   * before failed_after is still failed; null if unknown.
   */
  readonly new: boolean | null;
  /**
   * Of the newest 500 runs of this version that were created after failed_after; null without it,
   * and but for the 20 versions with the most failures.
   */
  readonly runs: {
    readonly finished: number;
    /** Of them, failed instances of this group. */
    readonly failed: number;
  } | null;
}

export interface FailureGroups {
  /** Largest first, at most 200. */
  readonly groups: readonly FailureGroup[];
  /** Examined newest failed instances, at most 10000. */
  readonly looked_at: number;
  /** Whether all failed instances of the period and all groups are included. */
  readonly complete: boolean;
}

/** A step that runs in the server after an instance has failed. */
export interface FailureHook {
  /** Kind of the block. */
  readonly type: 'step';
  /**
   * Unique in the sequence. Expressions use it to refer to the output. Must not be __proto__,
   * constructor, prototype, . or ..
   */
  readonly id: string;
  /** If false, skips the block. */
  readonly when?: string | null | undefined;
  /** Time limit in ms. Default and maximum: 30000. */
  readonly timeout?: number | null | undefined;
  /** A built-in handler; hooks cannot use workers. */
  readonly handler: 'noop' | 'log' | 'sleep' | 'http_request' | 'fail' | 'transform' | 'assert';
  /**
   * Parameters of the handler. Invalid ones of built-in handlers are answered 400. noop: none.
   * log: message, level (debug, info, warn). sleep: duration_ms (default 100). wait_for_event:
   * name (required), key, timeout_ms, schema. http_request: url (required), method (GET, POST,
   * PUT, PATCH, DELETE, HEAD), headers, body, timeout_ms (default 10000). fail: message,
   * retryable. transform: anything. assert: condition (required), message.
   */
  readonly params?: object | null | undefined;
  /** Not supported. */
  readonly delay?: false | null | undefined;
  /** Not supported. */
  readonly retry?: false | null | undefined;
  /** Not supported. */
  readonly send_window?: false | null | undefined;
  /** Not supported. */
  readonly rate_limit_key?: false | null | undefined;
  /** Not supported. */
  readonly queue_name?: false | null | undefined;
  /** Not supported. */
  readonly cancellable?: false | null | undefined;
  /** Not supported. */
  readonly merge_output?: false | null | undefined;
  /** Not supported. */
  readonly output_schema?: false | null | undefined;
}

/** A reason why some instances were not migrated. */
export interface FindingOfMany {
  readonly code: string;
  /** Number of affected instances. */
  readonly count: number;
  /** Summary for the first affected instance. */
  readonly summary: string;
  readonly remedy: string;
  readonly example_ids: readonly string[];
}

/** Runs its body for each item of a context.data array. */
export interface ForEachBlock {
  /** Kind of the block. */
  readonly type: 'for_each';
  /**
   * Unique in the sequence. Expressions use it to refer to the output. Must not be __proto__,
   * constructor, prototype, . or ..
   */
  readonly id: string;
  /** If false, skips the block. */
  readonly when?: string | null | undefined;
  /** Time limit in ms; then the block is cancelled, and fails. */
  readonly timeout?: number | null | undefined;
  /** An array: path in context.data, or template. May be missing. */
  readonly collection: string;
  /**
   * Key of context.data with the item, in the body. Must not be __proto__, constructor or
   * prototype. Default: "item".
   */
  readonly item_var?: string | null | undefined;
  /** Blocks that run for each item. */
  readonly body: readonly Block[];
  /**
   * Key of context.data with the index of the item, from 0. Must not be __proto__, constructor or
   * prototype.
   */
  readonly index_var?: string | null | undefined;
  /** Number of items that run concurrently. Default: 1. */
  readonly concurrency?: number | null | undefined;
  /** Maximum number of items; more fail the block at once. Default: 1000. */
  readonly max_iterations?: number | null | undefined;
}

export interface ForkInstance {
  readonly from_block_id: string;
  /** Changes context.data before anything runs. */
  readonly context?: object | null | undefined;
  /** merge: top-level members; replace: all data. Default: "merge". */
  readonly context_mode?: 'merge' | 'replace' | null | undefined;
  /** Default: true. */
  readonly dry_run?: boolean | null | undefined;
  readonly signals?: readonly SendSignal[] | null | undefined;
}

/**
 * Evaluated once both versions have min_sample finished instances. Fails if the candidate's rate
 * exceeds the baseline's by more than max_regression.
 */
export interface Gate {
  /**
   * error_rate: share of failed instances among finished ones; cancel_rate: share of cancelled
   * ones.
   */
  readonly metric: 'error_rate' | 'cancel_rate';
  /** Allowed excess of the candidate's rate over the baseline's, 0 to 1. */
  readonly max_regression: number;
  /** Finished instances of each version required for a verdict. */
  readonly min_sample: number;
}

export interface GateChoice {
  /** Text of the choice, for people. */
  readonly label: string;
  /** Value of the answer, if a person selects this choice. */
  readonly value: string;
}

/** Verdict of a gate with both rates. */
export interface GateJudgement {
  readonly gate: Gate;
  readonly baseline_rate?: number;
  readonly candidate_rate?: number;
  readonly verdict: 'pass' | 'fail' | 'inconclusive';
}

/**
 * Finished instances since the canary started, and current verdicts. baseline_history: the
 * baseline's newest runs before the canary, for gates with too few since then.
 */
export interface GateReport {
  readonly baseline: EndedCounts;
  readonly baseline_history?: EndedCounts;
  readonly candidate: EndedCounts;
  readonly gates: readonly GateJudgement[];
}

export interface HandlerNames {
  readonly builtin: readonly string[];
  readonly external: readonly string[];
}

export interface Handoff {
  readonly id: string;
  readonly continuity_id: string;
  readonly tenant_id: string;
  readonly source_runtime_id: string;
  readonly destination_runtime_id: string;
  readonly expected_epoch: number;
  readonly state: HandoffState;
  readonly capsule_id: string | null;
  readonly placement_decision_id: string;
  readonly preview_sha256: string;
  readonly version: number;
  readonly failure_code: string | null;
  readonly data_classification: 'public' | 'internal' | 'confidential' | 'restricted';
  readonly locality_policy?: LocalityPolicy;
  readonly requirements: Requirements;
  /** ISO 8601. */
  readonly created_at: string;
  /** ISO 8601. */
  readonly updated_at: string;
}

export interface HandoffAccepted {
  readonly handoff: Handoff;
  readonly execution: ContinuityExecution;
  readonly ownership_grant?: OwnershipGrant;
}

export interface HandoffExported {
  readonly handoff: Handoff;
  readonly capsule: Capsule;
  readonly payload_base64: string;
}

/** Valid while the execution, its effects, the destination's facts and the policy are unchanged. */
export interface HandoffPreview {
  readonly continuity_id: string;
  readonly source_runtime_id: string;
  readonly destination_runtime_id: string;
  readonly compatible: boolean;
  readonly findings: readonly {
    readonly code: string;
    readonly status: 'pass' | 'fail' | 'unknown';
    readonly summary: string;
    /** How to resolve a finding about the execution. */
    readonly remedy?: string;
  }[];
  readonly unresolved_effects: readonly EffectReceipt[];
  readonly placement_decision: PlacementDecision;
  readonly placement_decision_id: string;
  readonly preview_sha256: string;
}

export type HandoffState =
  | 'requested'
  | 'quiescing'
  | 'exported'
  | 'accepted'
  | 'resumed'
  | 'completed'
  | 'rejected'
  | 'failed'
  | 'expired'
  | 'revoked';

export interface Health {
  readonly status: 'ok';
}

export interface HeartbeatAccepted {
  readonly checkpoint_seq: number;
}

/** A checkpoint requires checkpoint_seq. */
export interface HeartbeatTask {
  /** Must equal the claim's worker_id. */
  readonly worker_id: string;
  /** Must equal the claim's epoch; required by some deployments. */
  readonly claim_epoch?: number | null | undefined;
  /** Value of the last response. */
  readonly checkpoint_seq?: number | null | undefined;
  readonly checkpoint?: object | null | undefined;
  /** Releases the claim: the task can be claimed again immediately. Default: false. */
  readonly release?: boolean | null | undefined;
}

/** A checkpoint requires checkpoint_seq. */
export interface HeartbeatTaskResult {
  readonly kind: 'heartbeat';
  readonly task_id: string;
  /** Must equal the claim's epoch; required by some deployments. */
  readonly claim_epoch?: number | null | undefined;
  /** Value of the last response. */
  readonly checkpoint_seq?: number | null | undefined;
  readonly checkpoint?: object | null | undefined;
  /** Releases the claim: the task can be claimed again immediately. Default: false. */
  readonly release?: boolean | null | undefined;
}

export interface ImportCapsule {
  readonly tenant_id?: string | null | undefined;
  readonly destination_runtime_id: string;
  readonly expected_epoch: number;
  /** Default: generated. */
  readonly destination_instance_id?: string | null | undefined;
  readonly capsule: Capsule;
  /** Default: the capsule that this server sealed. */
  readonly payload_base64?: string | null | undefined;
  readonly payload_key_base64?: string | null | undefined;
}

/** A signed statement: this server has the instance of the capsule. */
export interface ImportReceipt {
  /** Canonical JSON of the statement. */
  readonly statement: string;
  readonly public_key: string;
  readonly signature: string;
}

export interface InconclusiveRun {
  readonly instance_id: string;
  readonly reason: string;
}

export interface Info {
  readonly version: string;
  readonly storage_schema_version: number;
  readonly contract_schema_version: number;
  /** The Postgres schema of its tables. */
  readonly cell: string;
  /** Whether other cells are known. */
  readonly cluster: boolean;
  readonly env_label: string | null;
  readonly env_color: string | null;
  readonly ui_links?: readonly UiLink[];
  readonly encryption_key?: string;
}

export interface InjectBlocks {
  /** At most 1 MiB as JSON over all injections of an instance. */
  readonly blocks: readonly Block[];
  readonly position?: number | null | undefined;
}

/** data, config and audit: together at most 256 KiB, unless the deployment sets another limit. */
export interface InstanceContext {
  readonly data: JsonObject;
  readonly config: JsonObject;
  readonly audit: readonly JsonValue[];
  readonly runtime: {
    readonly instance_id?: string;
    readonly run_id?: string;
    readonly current_step?: string | null;
    readonly attempt?: number;
    /** ISO 8601. */
    readonly started_at?: string | null;
    /** ISO 8601. */
    readonly current_step_started_at?: string | null;
    readonly total_steps_executed?: number;
    readonly dry_run?: boolean;
    readonly dry_run_auto_approve?: boolean;
  };
}

/** Matching instances by state. */
export interface InstanceCounts {
  readonly scheduled: number;
  readonly running: number;
  readonly waiting: number;
  readonly paused: number;
  readonly completed: number;
  readonly failed: number;
  readonly cancelled: number;
  /** Examined newest instances, at most 10000. */
  readonly looked_at: number;
  /** False: there may be further matches among older instances. */
  readonly complete: boolean;
}

export interface InstanceCreated {
  readonly id: string;
  /** True: id is that of an existing instance. */
  readonly deduplicated: boolean;
  /** Nothing was created, since all slots are taken (when_full: skip). */
  readonly skipped?: true;
  /** The sequence collects creations: the instance with this id starts later. */
  readonly collected?: true;
  /** With collected: when the instance starts, unless a later creation changes it. */
  readonly starts_at?: string;
}

export interface InstanceExplanation {
  readonly id: string;
  readonly sequence_id: string;
  readonly state: InstanceState;
  /** Time of the change to this state. */
  readonly since: string;
  /** Current activity in one sentence. */
  readonly summary: string;
  readonly waiting_for: readonly Wait[];
  /** Number of all waits. */
  readonly waiting_count: number;
  readonly failure: Failure | null;
  readonly cancelling?: Cancelling;
  /** The parent, if a sub_sequence created it. */
  readonly parent_instance_id?: string;
  /** Events that cancel it, with their correlation keys; absent: none. */
  readonly cancel_on?: readonly {
    readonly event: string;
    readonly key?: string;
  }[];
  readonly next: readonly NextAction[];
  /** Probable causes of unexpected behavior; absent: none. */
  readonly warnings?: readonly ExplanationWarning[];
}

export interface InstanceForked {
  readonly id: string;
  readonly forked_from: string;
  readonly state: 'scheduled';
  readonly copied_blocks: readonly string[];
  readonly rerun_blocks: readonly string[];
  readonly dry_run: boolean;
}

export interface InstanceMigrated {
  readonly migrated: true;
  readonly instance_id: string;
  readonly from_sequence_id: string;
  readonly to_sequence_id: string;
}

/** What became of a creation that waited. Without state nothing was created (skipped). */
export interface InstanceResult {
  readonly id: string;
  /** True: id is that of an existing instance. */
  readonly deduplicated: boolean;
  /** Nothing was created, since all slots are taken (when_full: skip). */
  readonly skipped?: true;
  /** The sequence collects creations: the instance with this id starts later. */
  readonly collected?: true;
  /** With collected: when the instance starts, unless a later creation changes it. */
  readonly starts_at?: string;
  readonly state?: InstanceState;
  /**
   * The last output of each block, by block id, once the instance has ended. Absent if they are
   * together larger than 1 MiB: read /outputs.
   */
  readonly outputs?: JsonObject;
  /** The failure; null if it has not failed. */
  readonly failure?: Failure | null;
}

export interface InstanceRetried {
  readonly id: string;
  readonly state: 'scheduled';
}

export type InstanceState =
  | 'scheduled'
  | 'running'
  | 'waiting'
  | 'paused'
  | 'failed'
  | 'completed'
  | 'cancelled';

export interface InstancesMigrated {
  /** Number of examined instances. */
  readonly count: number;
  /** Number of instances that can be migrated. */
  readonly automatic: number;
  /** Number of migrated instances; 0 in a dry run. */
  readonly migrated: number;
  /** Number of instances that need approval. */
  readonly approval_required: number;
  readonly pinned: number;
  readonly incompatible: number;
  /** Number refused for another reason, such as a running step. */
  readonly failed: number;
  readonly findings: readonly FindingOfMany[];
  /** The migrated instances, in no order. */
  readonly migrations: readonly MigrationOfMany[];
  /** False: continue with next_cursor. */
  readonly done: boolean;
  readonly next_cursor: string | null;
  readonly dry_run: boolean;
}

/** Items of an open for_each. */
export interface ItemCounts {
  readonly total: number;
  readonly running: number;
  readonly ended: number;
}

export interface KeyMinted {
  /** Id of a key: ak_ and 32 hexadecimal digits. */
  readonly id: string;
  readonly tenant_id: string;
  readonly name: string;
  readonly capabilities: readonly Capability[];
  /** Groups for which the key answers approvals. */
  readonly groups: readonly string[];
  /** The key: sk_ and 64 hexadecimal digits; shown only in this response. */
  readonly secret: string;
  /** ISO 8601. */
  readonly created_at: string;
  /** ISO 8601. */
  readonly expires_at: string | null;
}

/** All matching rules apply. */
export interface LocalityPolicy {
  readonly version: number;
  readonly rules: readonly {
    readonly classification: 'public' | 'internal' | 'confidential' | 'restricted';
    readonly allowed_runtime_ids?: readonly string[] | null;
    readonly allowed_runtime_kinds?:
      | readonly ('server' | 'edge' | 'mobile' | 'desktop' | 'browser')[]
      | null;
    readonly allowed_regions?: readonly string[] | null;
    readonly minimum_trust?: 'unverified' | 'registered' | 'signed' | 'attested' | null;
    readonly require_offline?: boolean | null;
    /** At most 256 bytes. */
    readonly require_hardware?: string | null;
    readonly allowed_connectivity?: readonly ('offline' | 'metered' | 'wifi' | 'ethernet')[] | null;
    readonly minimum_battery_percent?: number | null;
    readonly maximum_cost_microunits?: number | null;
    readonly maximum_latency_ms?: number | null;
  }[];
}

/** A log line of a step. */
export interface LogLine {
  readonly instance_id: string;
  readonly sequence_id: string;
  readonly sequence_name: string;
  readonly block_id: string;
  /** Its time, set by the worker. */
  readonly ts: string;
  readonly level: string;
  readonly message: string;
}

/** Repeats its body while the condition is true. */
export interface LoopBlock {
  /** Kind of the block. */
  readonly type: 'loop';
  /**
   * Unique in the sequence. Expressions use it to refer to the output. Must not be __proto__,
   * constructor, prototype, . or ..
   */
  readonly id: string;
  /** If false, skips the block. */
  readonly when?: string | null | undefined;
  /** Time limit in ms; then the block is cancelled, and fails. */
  readonly timeout?: number | null | undefined;
  /** Evaluated before each iteration; false ends the loop. */
  readonly condition: string;
  /** Blocks of each iteration. */
  readonly body: readonly Block[];
  /** Maximum number of iterations; the loop then succeeds. Default: 1000. */
  readonly max_iterations?: number | null | undefined;
  /** Not supported. */
  readonly break_on?: false | null | undefined;
  /** Not supported. */
  readonly poll_interval?: false | null | undefined;
  /** Not supported. */
  readonly continue_on_error?: false | null | undefined;
  /** Not supported. */
  readonly retain_iterations?: false | null | undefined;
}

export interface MakeApprovalLink {
  /** Default: 604800. */
  readonly expires_in_seconds?: number | null | undefined;
  /** Restricts the link to this value. One of the values in choices. */
  readonly value?: string | null | undefined;
  /** Name of the recipient, recorded as answered_by. */
  readonly recipient?: string | null | undefined;
}

export interface MigrateInstance {
  readonly instance_id: string;
  readonly target_sequence_id: string;
}

/** Requires version or sequence_id; with both, the sequence has that version. */
export interface MigrateInstances {
  /** Version of the same sequence. */
  readonly version?: number | null | undefined;
  /** Id of the target version. */
  readonly sequence_id?: string | null | undefined;
  /** Alias of sequence_id. */
  readonly to_sequence_id?: string | null | undefined;
  /** Alias of sequence_id. */
  readonly target_sequence_id?: string | null | undefined;
  readonly filter?:
    | {
        readonly tenant_id?: string | null | undefined;
        readonly namespace?: string | null | undefined;
        readonly sequence_id?: string | null | undefined;
        /** Includes every version of the sequences with this name. */
        readonly sequence_name?: string | null | undefined;
        /** Alias of sequence_name. */
        readonly sequence?: string | null | undefined;
        /** Version of the sequence. */
        readonly sequence_version?: number | null | undefined;
        /** Children of this instance. */
        readonly parent_instance_id?: string | null | undefined;
        /** At most 1000 instances. */
        readonly ids?: readonly string[] | null | undefined;
        /** Instances with a step that waits for it (see explain). */
        readonly waiting_for?:
          | 'task'
          | 'handler'
          | 'approval'
          | 'sleep'
          | 'delay'
          | 'retry'
          | 'child'
          | 'rate_limit'
          | 'event'
          | 'slot'
          | null
          | undefined;
        /** Only objects created after this time. */
        readonly created_after?: string | null | undefined;
        /** Only objects created before this time. */
        readonly created_before?: string | null | undefined;
        /** Only instances changed after this time. */
        readonly updated_after?: string | null | undefined;
        /** Only instances changed before this time. */
        readonly updated_before?: string | null | undefined;
        /** Only instances that failed after this time. */
        readonly failed_after?: string | null | undefined;
        /** Only instances that failed before this time. */
        readonly failed_before?: string | null | undefined;
        /** Part of the failure's message or code; case-insensitive. */
        readonly failure?: string | null | undefined;
        /** Code of the failure. */
        readonly failure_code?: string | null | undefined;
        /** block_id of the failure. */
        readonly failure_block?: string | null | undefined;
        /** Handler of the failure. */
        readonly failure_handler?: string | null | undefined;
        /** Reason of the failure, as in /instances/failures. */
        readonly failure_reason?: string | null | undefined;
        readonly metadata?: { readonly [name: string]: string } | null | undefined;
        readonly states?: readonly InstanceState[] | null | undefined;
      }
    | null
    | undefined;
  /** Also migrates where the verdict is approval_required. Default: false. */
  readonly approved?: boolean | null | undefined;
  /** Only returns the verdict: nothing is changed. Default: false. */
  readonly dry_run?: boolean | null | undefined;
  /** Maximum number of instances examined by one request. Default: 200. */
  readonly limit?: number | null | undefined;
  /** The previous next_cursor. An empty text counts as absent. */
  readonly cursor?: string | null | undefined;
}

/** Requires version or sequence_id; with both, the sequence has that version. */
export interface MigrateTo {
  readonly tenant_id?: string | null | undefined;
  /** Version of the same sequence. */
  readonly version?: number | null | undefined;
  /** Id of the target version. */
  readonly sequence_id?: string | null | undefined;
  /** Alias of sequence_id. */
  readonly to_sequence_id?: string | null | undefined;
  /** Alias of sequence_id. */
  readonly target_sequence_id?: string | null | undefined;
  /** Default: []. */
  readonly transforms?: readonly Transform[] | null | undefined;
  /** Also migrates where the verdict is approval_required. Default: false. */
  readonly approved?: boolean | null | undefined;
  /** Time for a rollback in seconds: 60 to 2,592,000; default: 86,400. Default: 86400. */
  readonly rollback_retention_seconds?: number | null | undefined;
  /** Only returns the verdict: nothing is changed. Default: false. */
  readonly dry_run?: boolean | null | undefined;
}

export interface MigratedInstance {
  /** False in a dry run, or if the version is the same. */
  readonly migrated: boolean;
  readonly instance_id: string;
  readonly from: {
    readonly sequence_id: string;
    readonly version: number;
  };
  readonly to: {
    readonly sequence_id: string;
    readonly version: number;
  };
  readonly verdict: MigrationVerdict;
  readonly finding_codes: readonly string[];
  readonly findings: readonly MigrationFinding[];
  /** State of the instance, which does not change. */
  readonly state: InstanceState;
  /** Required for a rollback; null if nothing was migrated. */
  readonly migration_id: string | null;
  /** Deadline of a rollback; null: none. */
  readonly rollback_expires_at: string | null;
  readonly dry_run?: true;
}

/** Why a migration is not automatic. */
export interface MigrationFinding {
  /** One of finding_codes, or another code. */
  readonly code: string;
  readonly block_id: string | null;
  /** Path with the iterations of enclosing loops. */
  readonly path: string | null;
  readonly summary: string;
  /** How to resolve the finding. */
  readonly remedy: string;
}

/** A migrated instance. */
export interface MigrationOfMany {
  readonly instance_id: string;
  /** Id of the migration, for a rollback. */
  readonly migration_id: string;
}

export interface MigrationPlan {
  readonly id: string;
  readonly tenant_id: string;
  readonly continuity_id: string;
  readonly from_sequence_id: string;
  readonly from_version: number;
  readonly to_sequence_id: string;
  readonly to_version: number;
  /** Alias of verdict. */
  readonly disposition: MigrationVerdict;
  /** automatic: can be applied; approval_required: with approved true; pin, incompatible: never. */
  readonly verdict: MigrationVerdict;
  readonly transforms: readonly Transform[];
  readonly finding_codes: readonly string[];
  /** Why the migration is not automatic; empty if it is. */
  readonly findings: readonly MigrationFinding[];
  readonly rollback_capsule_required: boolean;
  /** ISO 8601. */
  readonly created_at: string;
}

/** A plan and its result. */
export interface MigrationRecord {
  readonly plan: MigrationPlan;
  readonly expected_epoch: number;
  readonly source_checkpoint: Checkpoint;
  readonly source_context: JsonObject;
  readonly source_state: InstanceState;
  readonly rollback_capsule: RollbackCapsule | null;
  readonly state: 'planned' | 'applied' | 'rolled_back';
  readonly applied_epoch: number | null;
  /** ISO 8601. */
  readonly rollback_expires_at: string;
  /** ISO 8601. */
  readonly applied_at: string | null;
  /** ISO 8601. */
  readonly rolled_back_at: string | null;
}

/** automatic: can be applied; approval_required: with approved true; pin, incompatible: never. */
export type MigrationVerdict = 'automatic' | 'approval_required' | 'pin' | 'incompatible';

export interface MintKey {
  /** Must not be . or .., or begin or end with spaces or tabs. */
  readonly tenant_id: string;
  /** Default: "". */
  readonly name?: string | null | undefined;
  readonly capabilities: readonly Capability[];
  /** Groups for which the key answers approvals; only with the capability approver. */
  readonly groups?: readonly string[] | null | undefined;
  /** ISO 8601. */
  readonly expires_at?: string | null | undefined;
}

/** A suggested request. */
export interface NextAction {
  readonly action: string;
  readonly method: string;
  /** Path, relative to the base address of the API. */
  readonly path: string;
  readonly body?: JsonValue;
  readonly why: string;
  readonly runs_again?: RunsAgain;
}

export interface NextFires {
  readonly timezone: string;
  readonly fires: readonly string[];
}

export interface OpenApiDocument {
  readonly openapi: string;
  readonly info: JsonObject;
  readonly paths: JsonObject;
}

export interface OutboxEntry {
  readonly id: string;
  readonly url: string;
  readonly event_type: WebhookEventType;
  readonly instance_id?: string;
  readonly payload: WebhookBody;
  readonly attempts: number;
  readonly last_error?: string;
  /** ISO 8601. */
  readonly created_at: string;
  readonly delivery_id?: string;
  readonly status: 'pending' | 'in_flight' | 'parked';
  /** ISO 8601. */
  readonly next_attempt_at?: string;
  /** ISO 8601. */
  readonly claimed_at?: string;
  readonly subscription_id?: string;
}

/** Action of a fire while an earlier run has not finished. */
export type OverlapPolicy = 'allow' | 'skip' | 'buffer_one' | 'cancel_previous';

/** A signed statement: from this epoch on the destination owns the execution. */
export interface OwnershipGrant {
  /** Canonical JSON of the statement. */
  readonly statement: string;
  readonly public_key: string;
  readonly signature: string;
}

/** Runs all branches concurrently; fails if one fails. */
export interface ParallelBlock {
  /** Kind of the block. */
  readonly type: 'parallel';
  /**
   * Unique in the sequence. Expressions use it to refer to the output. Must not be __proto__,
   * constructor, prototype, . or ..
   */
  readonly id: string;
  /** If false, skips the block. */
  readonly when?: string | null | undefined;
  /** Time limit in ms; then the block is cancelled, and fails. */
  readonly timeout?: number | null | undefined;
  /** Lists of blocks that run concurrently. */
  readonly branches: readonly (readonly Block[])[];
}

/** Replaces the given sections of the context. */
export interface PatchContext {
  readonly context: {
    readonly data?: object | null | undefined;
    readonly config?: object | null | undefined;
    readonly audit?: readonly unknown[] | null | undefined;
  };
  /** The updated_at that was read: 409 if it has changed. */
  readonly if_unchanged_since?: string | null | undefined;
}

export interface PatchState {
  readonly state: InstanceState;
  /**
   * For a change to scheduled. Default: now, or for a paused instance the time at which it would
   * continue.
   */
  readonly next_fire_at?: string | null | undefined;
}

export interface PayloadArtifact {
  readonly key: string;
  readonly sha256: string;
  readonly bytes: number;
}

/** An instance that is yet to start, from creations that its sequence collects. */
export interface PendingStart {
  /** Id of the instance. */
  readonly id: string;
  readonly tenant_id: string;
  readonly namespace: string;
  /** Name of the sequence. */
  readonly sequence: string;
  readonly kind: 'debounce' | 'batch';
  /** The key that these creations share; null without one. */
  readonly key: string | null;
  /** Number of collected creations. */
  readonly count: number;
  /** Number of creations that events took out of the batch (cancel_on). */
  readonly cancelled: number;
  /** When the first creation was collected. */
  readonly created_at: string;
  /** ISO 8601. */
  readonly starts_at: string;
  /** Why the instance could not start; it is tried again. Null: nothing. */
  readonly error: string | null;
}

export interface PlaceExecution {
  readonly tenant_id?: string | null | undefined;
  readonly requirements?: Requirements | null | undefined;
  /** Alias of locality_policy. */
  readonly policy?:
    | {
        readonly version: number;
        readonly rules: readonly {
          readonly classification: 'public' | 'internal' | 'confidential' | 'restricted';
          readonly allowed_runtime_ids?: readonly string[] | null | undefined;
          readonly allowed_runtime_kinds?:
            | readonly ('server' | 'edge' | 'mobile' | 'desktop' | 'browser')[]
            | null
            | undefined;
          readonly allowed_regions?: readonly string[] | null | undefined;
          readonly minimum_trust?:
            | 'unverified'
            | 'registered'
            | 'signed'
            | 'attested'
            | null
            | undefined;
          readonly require_offline?: boolean | null | undefined;
          /** At most 256 bytes. */
          readonly require_hardware?: string | null | undefined;
          readonly allowed_connectivity?:
            | readonly ('offline' | 'metered' | 'wifi' | 'ethernet')[]
            | null
            | undefined;
          readonly minimum_battery_percent?: number | null | undefined;
          readonly maximum_cost_microunits?: number | null | undefined;
          readonly maximum_latency_ms?: number | null | undefined;
        }[];
      }
    | null
    | undefined;
  readonly locality_policy?:
    | {
        readonly version: number;
        readonly rules: readonly {
          readonly classification: 'public' | 'internal' | 'confidential' | 'restricted';
          readonly allowed_runtime_ids?: readonly string[] | null | undefined;
          readonly allowed_runtime_kinds?:
            | readonly ('server' | 'edge' | 'mobile' | 'desktop' | 'browser')[]
            | null
            | undefined;
          readonly allowed_regions?: readonly string[] | null | undefined;
          readonly minimum_trust?:
            | 'unverified'
            | 'registered'
            | 'signed'
            | 'attested'
            | null
            | undefined;
          readonly require_offline?: boolean | null | undefined;
          /** At most 256 bytes. */
          readonly require_hardware?: string | null | undefined;
          readonly allowed_connectivity?:
            | readonly ('offline' | 'metered' | 'wifi' | 'ethernet')[]
            | null
            | undefined;
          readonly minimum_battery_percent?: number | null | undefined;
          readonly maximum_cost_microunits?: number | null | undefined;
          readonly maximum_latency_ms?: number | null | undefined;
        }[];
      }
    | null
    | undefined;
  /** Alias of data_classification. */
  readonly classification?:
    | 'public'
    | 'internal'
    | 'confidential'
    | 'restricted'
    | null
    | undefined;
  /** Default: "internal". */
  readonly data_classification?:
    | 'public'
    | 'internal'
    | 'confidential'
    | 'restricted'
    | null
    | undefined;
}

/** Evaluation of all live runtimes. */
export interface PlacementDecision {
  readonly id: string;
  readonly tenant_id: string;
  readonly continuity_id: string;
  readonly epoch: number;
  readonly selected_runtime_id: string | null;
  readonly requirements: Requirements;
  readonly policy?: LocalityPolicy;
  readonly classification: 'public' | 'internal' | 'confidential' | 'restricted';
  readonly policy_version: number | null;
  readonly candidates: readonly {
    readonly runtime_id: string;
    readonly outcome: 'allow' | 'deny' | 'unknown';
    readonly score: number;
    readonly score_factors: {
      readonly trust: number;
      readonly current_runtime: number;
      readonly offline_capable: number;
      readonly battery_rank: number;
      readonly cost_rank: number;
      readonly latency_rank: number;
    };
    readonly finding_codes: readonly string[];
  }[];
  /** ISO 8601. */
  readonly created_at: string;
}

export interface PlanMigration {
  readonly tenant_id?: string | null | undefined;
  readonly continuity_id: string;
  readonly to_sequence_id: string;
  /** Version of to_sequence_id, else 404. */
  readonly to_version: number;
  /** Default: []. */
  readonly transforms?: readonly Transform[] | null | undefined;
  /** Time for a rollback in seconds: 60 to 2,592,000; default: 86,400. Default: 86400. */
  readonly rollback_retention_seconds?: number | null | undefined;
  /**
   * First saves a checkpoint of the live state. Without any checkpoint: 409. First saves a
   * checkpoint of the live state. Default: false.
   */
  readonly capture_checkpoint?: boolean | null | undefined;
}

export interface PollQueue {
  readonly handler_name: string;
  /** Must not begin with endpoint:. */
  readonly worker_id: string;
  /** Maximum number of tasks; 0 claims none. Larger values are lowered to 1000. Default: 1. */
  readonly limit?: number | null | undefined;
  /** Maximum wait in ms if there is no task. Larger values are lowered to 60000. Default: 0. */
  readonly wait_ms?: number | null | undefined;
  readonly version?: string | null | undefined;
  readonly queue_name: string;
}

export interface PollTasks {
  readonly handler_name: string;
  /** Must not begin with endpoint:. */
  readonly worker_id: string;
  /** Maximum number of tasks; 0 claims none. Larger values are lowered to 1000. Default: 1. */
  readonly limit?: number | null | undefined;
  /** Maximum wait in ms if there is no task. Larger values are lowered to 60000. Default: 0. */
  readonly wait_ms?: number | null | undefined;
  readonly version?: string | null | undefined;
}

export interface PreviewHandoff {
  readonly tenant_id?: string | null | undefined;
  readonly requirements?: Requirements | null | undefined;
  /** Alias of locality_policy. */
  readonly policy?:
    | {
        readonly version: number;
        readonly rules: readonly {
          readonly classification: 'public' | 'internal' | 'confidential' | 'restricted';
          readonly allowed_runtime_ids?: readonly string[] | null | undefined;
          readonly allowed_runtime_kinds?:
            | readonly ('server' | 'edge' | 'mobile' | 'desktop' | 'browser')[]
            | null
            | undefined;
          readonly allowed_regions?: readonly string[] | null | undefined;
          readonly minimum_trust?:
            | 'unverified'
            | 'registered'
            | 'signed'
            | 'attested'
            | null
            | undefined;
          readonly require_offline?: boolean | null | undefined;
          /** At most 256 bytes. */
          readonly require_hardware?: string | null | undefined;
          readonly allowed_connectivity?:
            | readonly ('offline' | 'metered' | 'wifi' | 'ethernet')[]
            | null
            | undefined;
          readonly minimum_battery_percent?: number | null | undefined;
          readonly maximum_cost_microunits?: number | null | undefined;
          readonly maximum_latency_ms?: number | null | undefined;
        }[];
      }
    | null
    | undefined;
  readonly locality_policy?:
    | {
        readonly version: number;
        readonly rules: readonly {
          readonly classification: 'public' | 'internal' | 'confidential' | 'restricted';
          readonly allowed_runtime_ids?: readonly string[] | null | undefined;
          readonly allowed_runtime_kinds?:
            | readonly ('server' | 'edge' | 'mobile' | 'desktop' | 'browser')[]
            | null
            | undefined;
          readonly allowed_regions?: readonly string[] | null | undefined;
          readonly minimum_trust?:
            | 'unverified'
            | 'registered'
            | 'signed'
            | 'attested'
            | null
            | undefined;
          readonly require_offline?: boolean | null | undefined;
          /** At most 256 bytes. */
          readonly require_hardware?: string | null | undefined;
          readonly allowed_connectivity?:
            | readonly ('offline' | 'metered' | 'wifi' | 'ethernet')[]
            | null
            | undefined;
          readonly minimum_battery_percent?: number | null | undefined;
          readonly maximum_cost_microunits?: number | null | undefined;
          readonly maximum_latency_ms?: number | null | undefined;
        }[];
      }
    | null
    | undefined;
  /** Alias of data_classification. */
  readonly classification?:
    | 'public'
    | 'internal'
    | 'confidential'
    | 'restricted'
    | null
    | undefined;
  /** Default: "internal". */
  readonly data_classification?:
    | 'public'
    | 'internal'
    | 'confidential'
    | 'restricted'
    | null
    | undefined;
  readonly destination_runtime_id: string;
}

export interface PreviewSchedule {
  /**
   * Seven fields: second minute hour day month day_of_week year. Also accepted: six (without
   * year) or five (without second and year), ?, and @hourly, @daily, @weekly, @monthly, @yearly.
   */
  readonly cron_expr: string;
  /** IANA time zone, such as Europe/Berlin. Default: "UTC". */
  readonly timezone?: string | null | undefined;
  /** Default: 5. */
  readonly count?: number | null | undefined;
  /** Time after which fires are listed; default: now. */
  readonly from?: string | null | undefined;
}

export interface PreviewedFire {
  /** Time of the fire in UTC. */
  readonly at: string;
  /** The same time with the offset of the time zone. */
  readonly local: string;
}

export type Priority = 'Low' | 'Normal' | 'High' | 'Critical';

export interface PromoteRelease {
  /** Recorded in the decision; failing evidence is refused regardless. Default: false. */
  readonly force?: boolean | null | undefined;
}

/** A decision, with the previous hash. */
export interface ProvenanceEntry {
  readonly id: string;
  readonly continuity_id: string;
  readonly tenant_id: string;
  readonly epoch: number;
  readonly kind: string;
  readonly redacted_summary?: string;
  readonly payload_sha256: string;
  readonly previous_sha256: string | null;
  readonly entry_sha256: string;
  readonly signing_key_id: string | null;
  readonly signature: string | null;
  /** ISO 8601. */
  readonly created_at: string;
}

export interface ProvenanceVerdict {
  readonly valid: boolean;
  readonly entries_checked: number;
  readonly first_invalid_index: number | null;
  /** Error code of the first invalid entry. */
  readonly code: string | null;
  readonly head_sha256: string | null;
}

export interface PruneCheckpoints {
  readonly keep: number;
  /** Only counts: nothing is changed. Default: false. */
  readonly dry_run?: boolean | null | undefined;
}

export interface PutRateLimit {
  readonly max_count: number;
  readonly window_seconds: number;
  /** The updated_at that was read: 409 if it has changed. */
  readonly if_unchanged_since?: string | null | undefined;
}

export interface PutTenantLimits {
  readonly bytes_per_second?: number | null | undefined;
  readonly bytes_burst?: number | null | undefined;
  readonly rows_per_second?: number | null | undefined;
  readonly rows_burst?: number | null | undefined;
  readonly blocks_per_second?: number | null | undefined;
  readonly blocks_burst?: number | null | undefined;
  readonly schedules_per_second?: number | null | undefined;
  readonly schedules_burst?: number | null | undefined;
  readonly schedules_max?: number | null | undefined;
  readonly queue_depth_max?: number | null | undefined;
  /** The updated_at that was read: 409 if it has changed. */
  readonly if_unchanged_since?: string | null | undefined;
}

/** Replaces the endpoint; only an absent secret stays as it is. */
export interface PutWorkerEndpoint {
  /**
   * Must equal the header x-tenant-id, if sent. Must not be . or .., or begin or end with spaces
   * or tabs.
   */
  readonly tenant_id?: string | null | undefined;
  /** The handlers whose tasks are delivered, from every queue. */
  readonly handlers: readonly string[];
  /** http or https, without credentials; a public address unless the deployment allows others. */
  readonly url: string;
  /**
   * Key of the signatures: whsec_ and base64 as in Standard Webhooks, or any text. Required for a
   * new endpoint; never returned. Must not be [REDACTED].
   */
  readonly secret?: string | null | undefined;
  /** Maximum number of requests at a time. Default: 10. */
  readonly concurrency?: number | null | undefined;
  /** Maximum time until the end of the response, in ms. Default: 30000. */
  readonly timeout_ms?: number | null | undefined;
  /** False: no new tasks are delivered. Default: true. */
  readonly enabled?: boolean | null | undefined;
  /**
   * True: tasks are delivered with the secrets that they name. Requires the capability secrets.
   * Default: false.
   */
  readonly receives_secrets?: boolean | null | undefined;
  /** The updated_at that was read: 409 if it has changed. */
  readonly if_unchanged_since?: string | null | undefined;
}

/** Open tasks of a handler and queue. */
export interface QueueInfo {
  readonly handler: string;
  /** Null: tasks without a queue. */
  readonly queue: string | null;
  readonly waiting: number;
  readonly claimed: number;
  /** ISO 8601. */
  readonly oldest_waiting_since: string | null;
  /** Live workers that poll for such tasks. */
  readonly workers: number;
  /** Long polls that would receive such a task immediately. */
  readonly open_polls: number;
}

export interface QueueInterval {
  /** Start of the interval. */
  readonly at: string;
  /** Tasks that came to the queue, or returned to it. */
  readonly arrived: number;
  /** Tasks that workers claimed. */
  readonly taken: number;
  /** Tasks that were withdrawn before a worker claimed them. */
  readonly withdrawn: number;
  /** Claimed tasks that ended. */
  readonly ended: number;
  /** Longest time from creation to claim; 0 if none was claimed. */
  readonly longest_wait_ms: number;
}

/** Tasks of a handler and queue by interval. */
export interface QueueSeries {
  /** ISO 8601. */
  readonly since: string;
  readonly step_secs: number;
  /** Oldest first, including empty intervals. */
  readonly intervals: readonly QueueInterval[];
  /** False: the oldest intervals are incomplete. */
  readonly complete: boolean;
}

export interface Queues {
  /** Sorted by handler and queue. */
  readonly queues: readonly QueueInfo[];
  /** False: only the oldest 20000 open tasks count. */
  readonly complete: boolean;
}

/**
 * first_to_resolve: the first branch to finish wins, even by failing. first_to_succeed: the first
 * branch to succeed wins; the block fails if all fail. The other branches are cancelled.
 */
export interface RaceBlock {
  /** Kind of the block. */
  readonly type: 'race';
  /**
   * Unique in the sequence. Expressions use it to refer to the output. Must not be __proto__,
   * constructor, prototype, . or ..
   */
  readonly id: string;
  /** If false, skips the block. */
  readonly when?: string | null | undefined;
  /** Time limit in ms; then the block is cancelled, and fails. */
  readonly timeout?: number | null | undefined;
  /** Lists of blocks that run until one has won. */
  readonly branches: readonly (readonly Block[])[];
  /** Which branch wins. Default: "first_to_resolve". */
  readonly semantics?: 'first_to_resolve' | 'first_to_succeed' | null | undefined;
}

export interface RateLimit {
  readonly tenant_id: string;
  readonly key: string;
  readonly max_count: number;
  readonly window_seconds: number;
  /** ISO 8601. */
  readonly updated_at: string;
  /** The pattern whose limit applies to the requested key. Absent: it has its own limit. */
  readonly pattern?: string;
}

export interface RedeliverPreview {
  readonly url: string;
  readonly event_type: WebhookEventType;
  readonly payload_bytes: number;
  readonly will_be_signed: boolean;
  readonly previous_delivery_id?: string;
  readonly previous_attempts: number;
  readonly last_error: string | null;
}

export interface Redelivered {
  readonly redelivered: true;
  readonly delivery_id: string;
}

export interface RegisterRuntime {
  readonly tenant_id?: string | null | undefined;
  /**
   * observed_at: at most 30 s ahead. expires_at: 5 min later at most. trust: unverified or
   * registered. Lists: at most 256 entries of 256 bytes.
   */
  readonly capabilities: {
    readonly runtime_id: string;
    readonly kind: 'server' | 'edge' | 'mobile' | 'desktop' | 'browser';
    readonly trust: 'unverified' | 'registered';
    readonly handlers?: readonly string[] | null | undefined;
    readonly plugins?: readonly string[] | null | undefined;
    readonly credentials?: readonly string[] | null | undefined;
    readonly regions?: readonly string[] | null | undefined;
    readonly hardware?: readonly string[] | null | undefined;
    readonly offline_capable?: boolean | null | undefined;
    readonly draining?: boolean | null | undefined;
    readonly connectivity?: 'offline' | 'metered' | 'wifi' | 'ethernet' | null | undefined;
    readonly battery_percent?: number | null | undefined;
    readonly estimated_cost_microunits?: number | null | undefined;
    readonly estimated_latency_ms?: number | null | undefined;
    readonly capsule_signing_public_key?: string | null | undefined;
    /** ISO 8601. */
    readonly observed_at: string;
    /** ISO 8601. */
    readonly expires_at: string;
  };
}

/** Routes new instances from baseline to candidate. */
export interface Release {
  readonly id: string;
  readonly tenant_id: string;
  readonly namespace: string;
  readonly sequence_name: string;
  readonly baseline_sequence_id: string;
  readonly baseline_version: number;
  readonly candidate_sequence_id: string;
  readonly candidate_version: number;
  readonly state: ReleaseState;
  /** Last requested percentage; 0 before the first canary. */
  readonly canary_percent: number;
  /** Gates of the release; absent if none. */
  readonly gates?: readonly Gate[];
  /** Neither migrates running instances: with operator_decision an operator does so explicitly. */
  readonly in_flight_policy: 'pin' | 'operator_decision';
  readonly validation_summary?: ValidationSummary;
  /** Last start of the canary; absent before the first. */
  readonly canary_started_at?: string;
  /** ISO 8601. */
  readonly created_at: string;
  /** ISO 8601. */
  readonly updated_at: string;
}

/** A state change; immutable. */
export interface ReleaseDecision {
  readonly id: string;
  readonly release_id: string;
  readonly from_state: ReleaseState;
  readonly to_state: ReleaseState;
  /** operator, validation, deprecation, or gate:<metric>. */
  readonly actor: string;
  readonly reason: string;
  /** ISO 8601. */
  readonly decided_at: string;
}

export interface ReleasePoint {
  /** Start of the interval in which the instances were created. */
  readonly at: string;
  /** baseline or candidate. */
  readonly variant: string;
  readonly ended: number;
  readonly failed: number;
  readonly cancelled: number;
  readonly error_rate: number;
  readonly cancel_rate: number;
  /** Time from creation to the end. */
  readonly duration_p50_ms: number;
  readonly duration_p95_ms: number;
  /** Share of all finished instances. */
  readonly share: number;
}

/** Both versions since the canary started. */
export interface ReleaseSeries {
  /** ISO 8601. */
  readonly since: string;
  readonly step_secs: number;
  /** Intervals, oldest first. */
  readonly points: readonly ReleasePoint[];
  /** False: only the newest 10000 finished instances count. */
  readonly complete: boolean;
}

export type ReleaseState =
  | 'draft'
  | 'validating'
  | 'ready'
  | 'canary'
  | 'promoted'
  | 'paused'
  | 'rolled_back'
  | 'failed';

/** All of each list; one of the regions. */
export interface Requirements {
  readonly handlers?: readonly string[] | null;
  readonly plugins?: readonly string[] | null;
  readonly credentials?: readonly string[] | null;
  readonly regions?: readonly string[] | null;
  readonly hardware?: readonly string[] | null;
  readonly requires_network?: boolean | null;
  readonly requires_human_ui?: boolean | null;
  readonly minimum_trust?: 'unverified' | 'registered' | 'signed' | 'attested' | null;
}

export interface ResolveEffect {
  readonly tenant_id?: string | null | undefined;
  readonly state: EffectState;
  readonly provider_receipt_id?: string | null | undefined;
}

export interface ResumeFrom {
  /** Changes context.data before anything runs. */
  readonly context?: object | null | undefined;
  /** merge: top-level members; replace: all data. Default: "merge". */
  readonly context_mode?: 'merge' | 'replace' | null | undefined;
  readonly signals?: readonly SendSignal[] | null | undefined;
}

export interface ResumedFrom {
  readonly id: string;
  readonly state: 'scheduled';
  readonly resumed_from: string;
  readonly outputs_deleted: number;
  readonly signals_enqueued: number;
}

/** Retries after failed attempts. initial_backoff must not be above max_backoff. */
export interface Retry {
  /** Maximum number of attempts, including the first. */
  readonly max_attempts: number;
  /** Wait in ms before the second attempt. Default: 1000. */
  readonly initial_backoff?: number | null | undefined;
  /** Maximum wait in ms between two attempts. Default: 60000. */
  readonly max_backoff?: number | null | undefined;
  /** Factor by which the wait grows with each attempt. Default: 2. */
  readonly backoff_multiplier?: number | null | undefined;
  /** Condition for a retry; it can read the error as _error. */
  readonly retry_if?: string | null | undefined;
  /** Error codes that are not retried. */
  readonly non_retryable_codes?: readonly string[] | null | undefined;
}

export interface RetryInstance {
  /** Changes context.data before anything runs. */
  readonly context?: object | null | undefined;
  /** merge: top-level members; replace: all data. Default: "merge". */
  readonly context_mode?: 'merge' | 'replace' | null | undefined;
}

/** Retried instances by their present state. */
export interface RetryOutcome {
  readonly completed: number;
  /** Failed again. */
  readonly failed: number;
  readonly cancelled: number;
  /** Not finished yet. */
  readonly open: number;
}

export interface RollbackCapsule {
  readonly capsule_id: string;
  readonly payload_artifact: PayloadArtifact;
  readonly manifest_sha256: string;
  readonly public_key: string;
  readonly signature: string;
}

/** Runs the first route whose condition is true, else default. Requires a route or a default. */
export interface RouterBlock {
  /** Kind of the block. */
  readonly type: 'router';
  /**
   * Unique in the sequence. Expressions use it to refer to the output. Must not be __proto__,
   * constructor, prototype, . or ..
   */
  readonly id: string;
  /** If false, skips the block. */
  readonly when?: string | null | undefined;
  /** Time limit in ms; then the block is cancelled, and fails. */
  readonly timeout?: number | null | undefined;
  /** The first route whose condition is true runs. */
  readonly routes?:
    | readonly {
        /** Condition of the route. */
        readonly condition: string;
        /** Blocks of the route. */
        readonly blocks: readonly Block[];
      }[]
    | null
    | undefined;
  /** Blocks that run if no condition is true. */
  readonly default?: readonly Block[] | null | undefined;
}

export interface RunSchedule {
  /** A repetition with the same key returns the first instance. An empty text counts as absent. */
  readonly idempotency_key?: string | null | undefined;
}

/** Effect of a retry, or of a resume that retries. */
export interface RunsAgain {
  readonly blocks: readonly RunsAgainBlock[];
  /** Number of all blocks that run again. */
  readonly blocks_count: number;
  /** Paths of completed outermost blocks that do not run again. */
  readonly stays: readonly string[];
  /** Number of all blocks that do not run again. */
  readonly stays_count: number;
  /**
   * Whether a completed step repeats external effects, or a child continues whose parent ignores
   * it: ask for confirmation.
   */
  readonly repeats_effects: boolean;
  readonly parent?: RunsAgainParent;
  /** Final state after the retry; absent: it continues. */
  readonly ends?: 'cancelled' | 'failed';
}

/** A block that a retry runs again. */
export interface RunsAgainBlock {
  readonly kind: 'step' | 'block' | 'compensation' | 'finally' | 'saga' | 'child' | 'hook';
  readonly summary: string;
  readonly block_id: string;
  /** Path from the outermost block, such as orders[2]/charge. */
  readonly path: string;
  /**
   * Paths of completed steps whose external effects are repeated with new idempotency keys; for a
   * retried child, paths in the child.
   */
  readonly repeats: readonly string[];
  /** Whether external effects are repeated. */
  readonly repeats_effects: boolean;
  /** The child that is retried or awaited; absent: none, or a new one. */
  readonly child_id?: string;
  /** The child runs only its cleanup. */
  readonly cleans_up?: true;
}

/** Effect of a retry on the parent. */
export interface RunsAgainParent {
  readonly id: string;
  readonly stands: 'waits' | 'takes' | 'went_on' | 'ended';
  readonly summary: string;
}

/** Facts of a live runtime. */
export interface RuntimeCapabilities {
  readonly runtime_id: string;
  readonly kind: 'server' | 'edge' | 'mobile' | 'desktop' | 'browser';
  readonly trust: 'unverified' | 'registered' | 'signed' | 'attested';
  readonly handlers?: readonly string[];
  readonly plugins?: readonly string[];
  readonly credentials?: readonly string[];
  readonly regions?: readonly string[];
  readonly hardware?: readonly string[];
  readonly offline_capable: boolean;
  readonly draining: boolean;
  readonly connectivity?: 'offline' | 'metered' | 'wifi' | 'ethernet';
  readonly battery_percent?: number;
  readonly estimated_cost_microunits?: number;
  readonly estimated_latency_ms?: number;
  readonly capsule_signing_public_key?: string;
  /** ISO 8601. */
  readonly observed_at: string;
  /** ISO 8601. */
  readonly expires_at: string;
}

/**
 * Runs its actions in order. If one fails, the compensations of the completed ones run in reverse
 * order, and the saga fails.
 */
export interface SagaBlock {
  /** Kind of the block. */
  readonly type: 'saga';
  /**
   * Unique in the sequence. Expressions use it to refer to the output. Must not be __proto__,
   * constructor, prototype, . or ..
   */
  readonly id: string;
  /** If false, skips the block. */
  readonly when?: string | null | undefined;
  /** Time limit in ms; then the block is cancelled, and fails. */
  readonly timeout?: number | null | undefined;
  /** Actions with their compensations. If empty, the saga completes. */
  readonly steps: readonly SagaStep[];
}

export interface SagaStep {
  /**
   * Id of the saga's step, unique in the sequence among all block ids. Must not be __proto__,
   * constructor or prototype.
   */
  readonly id: string;
  /** A block, or a list of blocks. */
  readonly action: Block | readonly Block[];
  /** A block, or a list of blocks, that undoes the action. */
  readonly compensation?: Block | readonly Block[] | null | undefined;
}

export interface SaveCheckpoint {
  /** Value of the checkpoint, at most 256 KiB as JSON. */
  readonly checkpoint_data: unknown;
}

export interface ScheduleCreated {
  readonly id: string;
  /** ISO 8601. */
  readonly next_fire_at: string | null;
}

/** Has fewer fires than requested if the expression has no more. */
export interface SchedulePreview {
  readonly timezone: string;
  readonly fires: readonly PreviewedFire[];
}

export interface ScheduleRun {
  readonly id: string;
  /** True: id is that of an existing instance. */
  readonly deduplicated: boolean;
  /** Nothing was created, since all slots are taken (when_full: skip). */
  readonly skipped?: true;
  /** The sequence collects creations: the instance with this id starts later. */
  readonly collected?: true;
  /** With collected: when the instance starts, unless a later creation changes it. */
  readonly starts_at?: string;
  readonly instance_id: string;
}

/** An instance or sequence that a search found. */
export interface SearchHit {
  readonly kind: 'instance' | 'sequence';
  /** Of a sequence: the id of its newest version. */
  readonly id: string;
  readonly tenant_id: string;
  readonly namespace: string;
  /** Name of the sequence. */
  readonly sequence: string;
  /** Version of the sequence. */
  readonly version: number;
  /** Of an instance. */
  readonly state?: InstanceState;
  /** ISO 8601. */
  readonly created_at: string;
  /** value: a value of a searchable member or of metadata. name: the name of a sequence. */
  readonly matched_by: 'id' | 'idempotency_key' | 'value' | 'name';
  /** The id, key, value or name that matches; values are in lower case. */
  readonly matched: string;
}

/** Differences, most severe first. */
export interface SemanticDiff {
  readonly entries: readonly DiffEntry[];
  readonly max_severity?: Severity;
  /** Present above 10000 entries: the least severe are omitted. */
  readonly entries_omitted?: number;
  readonly candidate_lint?: readonly string[];
}

export interface SendEvent {
  /**
   * Must equal the header x-tenant-id, if sent. Must not be . or .., or begin or end with spaces
   * or tabs.
   */
  readonly tenant_id?: string | null | undefined;
  readonly event_name: string;
  /** Producer's id: a repeated id is a duplicate. */
  readonly producer_event_id: string;
  /** Matches steps that wait for the name and this key. */
  readonly correlation_key?: string | null | undefined;
  /** Becomes the output of the steps. */
  readonly payload?: unknown;
  /** Seconds for which a later wait can match the event. Default: 86400. */
  readonly ttl_seconds?: number | null | undefined;
}

export interface SendEvents {
  readonly events: readonly SendEvent[];
}

export interface SendSignal {
  /**
   * pause, resume, cancel, update_context or custom:<name> with any name. The form {"custom":
   * name} is accepted too.
   */
  readonly signal_type:
    | string
    | {
        readonly custom: string;
      };
  readonly payload?: unknown;
}

/**
 * Hours in which the step may start. It waits for them. The two hours must differ; a window may
 * span midnight.
 */
export interface SendWindow {
  /** First hour of the window. Default: 9. */
  readonly start_hour?: number | null | undefined;
  /** First hour after the window. Default: 17. */
  readonly end_hour?: number | null | undefined;
  /** Days of the window. Empty: every day. */
  readonly days?: readonly number[] | null | undefined;
}

export interface SequenceCreated {
  readonly id: string;
  /** At most 100; the last counts the rest. */
  readonly warnings?: readonly {
    /** Such as blocks[2].branches[0][1].retry.initialBackoff. */
    readonly path: string;
    readonly message: string;
    /** Name or value that was probably meant. */
    readonly suggestion?: string;
  }[];
}

/** A stored definition. */
export interface SequenceDefinition {
  readonly id: string;
  readonly tenant_id: string;
  readonly namespace: string;
  readonly name: string;
  readonly version: number;
  readonly deprecated: boolean;
  /** True: excluded from lookups by name. */
  readonly hold: boolean;
  readonly status: SequenceStatus;
  readonly blocks: readonly Block[];
  /**
   * JSON Schema 2020-12 without pattern, patternProperties and recursive references. At most
   * 65536 bytes, and with references followed 5000 values, 1000 schemas, keywords and listed
   * names, and 100 schemas within one another.
   */
  readonly input_schema?: JsonObject;
  /**
   * Steps that run in the server after an instance has failed, in order. A failed step does not
   * stop the next.
   */
  readonly on_failure?: readonly FailureHook[];
  /**
   * Steps that run in the server after an instance was cancelled, in order. A failed step does
   * not stop the next.
   */
  readonly on_cancel?: readonly CancelHook[];
  /** Limits how many instances of the sequence, in all versions, run at once. */
  readonly concurrency?: {
    /** Template over data and config of the creation; default: one key for all. */
    readonly key?: string | null;
    /** Maximum number of instances of a key that run at once. */
    readonly limit: number;
    /** Action of a creation while no slot is free. Default: "queue". */
    readonly when_full?: 'queue' | 'skip' | 'cancel_oldest' | 'cancel_newest' | null;
  };
  /** Puts off starts of instances of the sequence, in all versions. */
  readonly throttle?: {
    /** Template over data and config of the creation; default: one key for all. */
    readonly key?: string | null;
    /** Maximum number of starts in any window of per_ms. */
    readonly limit: number;
    readonly per_ms: number;
    /**
     * Maximum number of starts at once, at most limit; further ones are per_ms / limit apart.
     * Default: limit.
     */
    readonly burst?: number | null;
  };
  /** Events, sent after the creation of an instance, that cancel it. */
  readonly cancel_on?: readonly CancelOn[];
  /** Of creations in quick succession, only the last one starts an instance. */
  readonly debounce?: {
    /**
     * Template over data and config of a creation. Creations with different keys are collected
     * separately. Default: one key.
     */
    readonly key?: string | null;
    /** Time without another creation after which the last one starts. */
    readonly wait_ms: number;
    /** Maximum time from the first creation to the start; at least wait_ms. Default: none. */
    readonly max_wait_ms?: number | null;
  } | null;
  /** One instance starts with the data of several creations: context.data.items is their list. */
  readonly batch?: {
    /**
     * Template over data and config of a creation. Creations with different keys are collected
     * separately. Default: one key.
     */
    readonly key?: string | null;
    /** Number of creations with which the instance starts at once. */
    readonly size: number;
    /** Maximum time from the first creation to the start. */
    readonly wait_ms: number;
  } | null;
  /**
   * Paths below context.data, such as customer.email, or with metadata as their first name below
   * the metadata. Instances are found by the texts and numbers there.
   */
  readonly searchable?: readonly string[];
  /** ISO 8601. */
  readonly created_at: string;
}

export interface SequenceDeletionPreview {
  /** Number of instances that would be deleted. */
  readonly count: number;
  /** Number of completed and cancelled instances. */
  readonly ended: number;
  /** Number of failed instances. */
  readonly failed: number;
  readonly dry_run: true;
}

/** A stored definition, full or partial. */
export interface SequenceListed {
  readonly id: string;
  readonly tenant_id: string;
  readonly namespace: string;
  readonly name: string;
  readonly version: number;
  readonly deprecated: boolean;
  /** True: excluded from lookups by name. */
  readonly hold: boolean;
  readonly status: SequenceStatus;
  /**
   * JSON Schema 2020-12 without pattern, patternProperties and recursive references. At most
   * 65536 bytes, and with references followed 5000 values, 1000 schemas, keywords and listed
   * names, and 100 schemas within one another.
   */
  readonly input_schema?: JsonObject;
  /**
   * Steps that run in the server after an instance has failed, in order. A failed step does not
   * stop the next.
   */
  readonly on_failure?: readonly FailureHook[];
  /**
   * Steps that run in the server after an instance was cancelled, in order. A failed step does
   * not stop the next.
   */
  readonly on_cancel?: readonly CancelHook[];
  /** Limits how many instances of the sequence, in all versions, run at once. */
  readonly concurrency?: {
    /** Template over data and config of the creation; default: one key for all. */
    readonly key?: string | null;
    /** Maximum number of instances of a key that run at once. */
    readonly limit: number;
    /** Action of a creation while no slot is free. Default: "queue". */
    readonly when_full?: 'queue' | 'skip' | 'cancel_oldest' | 'cancel_newest' | null;
  };
  /** Puts off starts of instances of the sequence, in all versions. */
  readonly throttle?: {
    /** Template over data and config of the creation; default: one key for all. */
    readonly key?: string | null;
    /** Maximum number of starts in any window of per_ms. */
    readonly limit: number;
    readonly per_ms: number;
    /**
     * Maximum number of starts at once, at most limit; further ones are per_ms / limit apart.
     * Default: limit.
     */
    readonly burst?: number | null;
  };
  /** Events, sent after the creation of an instance, that cancel it. */
  readonly cancel_on?: readonly CancelOn[];
  /** Of creations in quick succession, only the last one starts an instance. */
  readonly debounce?: {
    /**
     * Template over data and config of a creation. Creations with different keys are collected
     * separately. Default: one key.
     */
    readonly key?: string | null;
    /** Time without another creation after which the last one starts. */
    readonly wait_ms: number;
    /** Maximum time from the first creation to the start; at least wait_ms. Default: none. */
    readonly max_wait_ms?: number | null;
  } | null;
  /** One instance starts with the data of several creations: context.data.items is their list. */
  readonly batch?: {
    /**
     * Template over data and config of a creation. Creations with different keys are collected
     * separately. Default: one key.
     */
    readonly key?: string | null;
    /** Number of creations with which the instance starts at once. */
    readonly size: number;
    /** Maximum time from the first creation to the start. */
    readonly wait_ms: number;
  } | null;
  /**
   * Paths below context.data, such as customer.email, or with metadata as their first name below
   * the metadata. Instances are found by the texts and numbers there.
   */
  readonly searchable?: readonly string[];
  /** ISO 8601. */
  readonly created_at: string;
  readonly blocks?: readonly Block[];
  /** With newest_only: number of versions of the name. */
  readonly versions?: number;
}

export type SequenceStatus = 'draft' | 'staging' | 'production' | 'unpublished';

/** Where the time of a sequence goes. */
export interface SequenceSteps {
  /** Start of the first counted interval of five minutes. */
  readonly since: string;
  /** The blocks of the version in their order, then other blocks with runs. Without hooks. */
  readonly steps: readonly StepStatistics[];
  /** False: only the newest 5000 stored intervals count. */
  readonly complete: boolean;
  /** False: open executions of the newest 3000 instances only. */
  readonly here_complete: boolean;
}

/** The definition can be stored. */
export interface SequenceValidated {
  readonly valid: true;
  readonly warnings: readonly {
    /** Such as blocks[2].branches[0][1].retry.initialBackoff. */
    readonly path: string;
    readonly message: string;
    /** Name or value that was probably meant. */
    readonly suggestion?: string;
  }[];
}

export type Severity = 'informational' | 'behavioral' | 'side_effect_risk' | 'incompatible';

export interface SignalAccepted {
  readonly signal_id: string;
}

/** What became of a signal while its sender waited. */
export interface SignalAnswer {
  readonly signal_id: string;
  /** Whether a step has taken it, or it took effect immediately. */
  readonly taken: boolean;
  /** The step that took it or, if taken is false, refused its payload. */
  readonly block_id?: string;
  /** The rendered `reply` of the step. */
  readonly reply?: JsonValue;
}

/**
 * kept: no step has waited for it yet; taken, refused: consumed by taken_by; applied: took effect
 * immediately.
 */
export type SignalStatus = 'kept' | 'taken' | 'refused' | 'applied';

export interface SlowRun {
  readonly instance_id: string;
  readonly state: InstanceState;
  /** ISO 8601. */
  readonly created_at: string;
  /** Of the instance, or of its last execution of the block; until now if it is open. */
  readonly duration_ms: number;
  /** Whether the instance, or the block, has not ended. */
  readonly is_open: boolean;
}

/** Instances of a version by duration. */
export interface SlowestRuns {
  /** Longest first. */
  readonly runs: readonly SlowRun[];
  /** False: only the newest 3000 instances were examined. */
  readonly complete: boolean;
}

export interface SplitVariant {
  /** Unique in the block; part of its output. */
  readonly name: string;
  /** Share of the total weight. */
  readonly weight: number;
  /** Blocks of this variant. */
  readonly blocks: readonly Block[];
}

export interface StartCanary {
  /** Percentage of the baseline's new instances routed to the candidate. */
  readonly percent: number;
}

export interface StepAttempt {
  readonly id: string;
  /** task: for a worker, from its dispatch; process: of a built-in handler, once it has finished. */
  readonly source: 'task' | 'process';
  readonly block_id: string;
  /** Counters of the enclosing loops; '' outside loops. */
  readonly iteration: string;
  /** Counted from 0 in each iteration. */
  readonly attempt: number;
  readonly state: 'pending' | 'claimed' | 'completed' | 'failed' | 'timed_out' | 'cancelled';
  /** Null for a sub_sequence, or if unknown. */
  readonly handler_name: string | null;
  readonly queue_name: string | null;
  readonly task_id: string | null;
  /** The last worker to claim the task. */
  readonly worker_id: string | null;
  /** Time of the dispatch to workers. */
  readonly queued_at: string | null;
  /** Last claim or outgoing request; null: none, or unknown. */
  readonly started_at: string | null;
  /** ISO 8601. */
  readonly ended_at: string | null;
  readonly timeout_ms: number | null;
  /** Parameters as rendered for the worker. */
  readonly params?: JsonValue;
  /** Members that for_each adds to context.data for this item. */
  readonly overlay?: JsonValue;
  readonly output?: JsonValue;
  readonly error: {
    readonly message: string;
    readonly retryable: boolean | null;
  } | null;
}

/**
 * Runs a handler: a built-in one (noop, log, sleep, wait_for_event, http_request, fail,
 * transform, assert) in the server, any other in an external worker.
 */
export interface StepBlock {
  /** Kind of the block. */
  readonly type: 'step';
  /**
   * Unique in the sequence. Expressions use it to refer to the output. Must not be __proto__,
   * constructor, prototype, . or ..
   */
  readonly id: string;
  /** If false, skips the block. */
  readonly when?: string | null | undefined;
  /** Time limit of an attempt in ms, for a task from its claim. */
  readonly timeout?: number | null | undefined;
  /** Name of a built-in handler, or of one that external workers serve. */
  readonly handler: string;
  /**
   * Parameters of the handler. Invalid ones of built-in handlers are answered 400. noop: none.
   * log: message, level (debug, info, warn). sleep: duration_ms (default 100). wait_for_event:
   * name (required), key, timeout_ms, schema. http_request: url (required), method (GET, POST,
   * PUT, PATCH, DELETE, HEAD), headers, body, timeout_ms (default 10000). fail: message,
   * retryable. transform: anything. assert: condition (required), message.
   */
  readonly params?: object | null | undefined;
  /** Waits before the first attempt. */
  readonly delay?: Delay | null | undefined;
  /** Retries after failed attempts. initial_backoff must not be above max_backoff. */
  readonly retry?: Retry | null | undefined;
  /** Time limit in ms for a worker to claim the task. */
  readonly queue_timeout?: number | null | undefined;
  /** Time limit of the step in ms, with all waits and attempts. */
  readonly deadline?: number | null | undefined;
  /** Called once when the deadline passes. */
  readonly on_deadline_breach?:
    | {
        /** A built-in handler that does not wait. */
        readonly handler: string;
        /**
         * Parameters, with templates. The server adds _breach_block_id, _breach_instance_id,
         * _breach_elapsed_ms and _breach_deadline_ms.
         */
        readonly params?: object | null | undefined;
      }
    | null
    | undefined;
  /**
   * Hours in which the step may start. It waits for them. The two hours must differ; a window may
   * span midnight.
   */
  readonly send_window?:
    | {
        /** First hour of the window. Default: 9. */
        readonly start_hour?: number | null | undefined;
        /** First hour after the window. Default: 17. */
        readonly end_hour?: number | null | undefined;
        /** Days of the window. Empty: every day. */
        readonly days?: readonly number[] | null | undefined;
      }
    | null
    | undefined;
  /**
   * Steps with the same key share a rate limit, and wait for it. A template. An empty text counts
   * as absent.
   */
  readonly rate_limit_key?: string | null | undefined;
  /** False: the signal cancel waits for the step. Default: true. */
  readonly cancellable?: boolean | null | undefined;
  /** Queue of the task. A poll can select one queue. */
  readonly queue_name?: string | null | undefined;
  /**
   * Schema of the output; a violation fails the step. JSON Schema 2020-12 without pattern,
   * patternProperties and recursive references. At most 65536 bytes, and with references followed
   * 5000 values, 1000 schemas, keywords and listed names, and 100 schemas within one another.
   */
  readonly output_schema?: object | null | undefined;
  /** Merges a worker's output into context.data. Default: true. */
  readonly merge_output?: boolean | null | undefined;
  /** Requires a person's answer before the first attempt. */
  readonly wait_for_input?: WaitForInput | null | undefined;
  /**
   * For wait_for_input and wait_for_event: the answer to a sender of the signal who waits, with
   * templates.
   */
  readonly reply?: unknown;
  /** Not supported. */
  readonly context_access?: false | null | undefined;
  /** Not supported. */
  readonly fallback_handler?: false | null | undefined;
  /** Not supported. */
  readonly cache_key?: false | null | undefined;
  /** Not supported. */
  readonly compensation?: false | null | undefined;
}

export interface StepLogLine {
  readonly block_id: string;
  /** ISO 8601. */
  readonly ts: string;
  readonly level: string;
  readonly message: string;
}

/** Runs of one block of a sequence. */
export interface StepStatistics {
  readonly block_id: string;
  /** Completed and failed executions; in loops one for each iteration. */
  readonly runs: number;
  /** Failed ones, after their last attempt. */
  readonly failures: number;
  /** Time from start to end, with waits and retries, within 10 %; null without runs. */
  readonly duration_p50_ms: number | null;
  readonly duration_p95_ms: number | null;
  /** Sum of all durations. */
  readonly total_ms: number;
  /** Share of the time of all steps; of a block with blocks inside, the share of the steps inside. */
  readonly share: number;
  /** Open executions. */
  readonly here_now: number;
}

export interface StoredEvent {
  readonly id: string;
  readonly tenant_id: string;
  readonly event_name: string;
  readonly producer_event_id: string;
  readonly correlation_key: string | null;
  /** Payload, in which probable secrets are redacted. */
  readonly payload: JsonValue;
  readonly status: EventStatus;
  /** Number of matched steps. */
  readonly matched: number;
  /** ISO 8601. */
  readonly created_at: string;
  /** Time until which a later wait can match the event. */
  readonly expires_at: string;
  /** ISO 8601. */
  readonly consumed_at: string | null;
}

/** A signal sent to an instance. */
export interface StoredSignal {
  readonly id: string;
  readonly instance_id: string;
  readonly signal_type: string;
  readonly payload: JsonValue;
  /** ISO 8601. */
  readonly created_at: string;
  /**
   * kept: no step has waited for it yet; taken, refused: consumed by taken_by; applied: took
   * effect immediately.
   */
  readonly status: SignalStatus;
  /** ISO 8601. */
  readonly taken_at: string | null;
  /** Block that consumed the signal. */
  readonly taken_by: string | null;
  /** Name of the sender's key; null: unknown. */
  readonly sent_by: string | null;
}

/** Starts a child instance of another sequence, and waits for it. */
export interface SubSequenceBlock {
  /** Kind of the block. */
  readonly type: 'sub_sequence';
  /**
   * Unique in the sequence. Expressions use it to refer to the output. Must not be __proto__,
   * constructor, prototype, . or ..
   */
  readonly id: string;
  /** If false, skips the block. */
  readonly when?: string | null | undefined;
  /** Time limit in ms; then the block is cancelled, and fails. */
  readonly timeout?: number | null | undefined;
  /** Sequence of the child, in the namespace of this instance. */
  readonly sequence_name: string;
  /** Pins this version. Default: chosen as the child starts. */
  readonly version?: number | null | undefined;
  /** context.data of the child; strings may be templates. */
  readonly input?: object | null | undefined;
}

export interface SubscriptionCreated {
  readonly id: string;
  readonly tenant_id: string;
  readonly url: string;
  readonly events: readonly WebhookEventType[];
  /** ISO 8601. */
  readonly created_at: string;
  /** ISO 8601. */
  readonly updated_at: string;
  /** Shown only in this response. */
  readonly secret: string;
}

/** A run of a sequence. */
export interface TaskInstance {
  readonly id: string;
  readonly sequence_id: string;
  readonly tenant_id: string;
  readonly namespace: string;
  readonly state: InstanceState;
  /** ISO 8601. */
  readonly next_fire_at: string | null;
  readonly priority: Priority;
  readonly timezone: string;
  readonly metadata: JsonObject;
  readonly context: InstanceContext;
  readonly concurrency_key?: string;
  readonly max_concurrency?: number;
  readonly idempotency_key?: string;
  readonly parent_instance_id?: string;
  /** Time limit in ms, as requested. */
  readonly timeout?: number;
  /** The W3C trace that its steps continue: of its creation, or of a later signal. */
  readonly traceparent?: string;
  /** The failure; null if it has not failed or was retried since. */
  readonly failure: Failure | null;
  readonly cancelling?: Cancelling;
  /** ISO 8601. */
  readonly created_at: string;
  /** ISO 8601. */
  readonly updated_at: string;
}

/** Outcome of one result. */
export interface TaskOutcome {
  /** Id as sent; null if it was not a string. */
  readonly task_id: string | null;
  /** HTTP status of the equivalent single request. */
  readonly status: number;
  /** Number of the stored checkpoint; only for heartbeats. */
  readonly checkpoint_seq?: number;
  readonly error?: string;
  /** Error code, as in the header x-error-code. */
  readonly code?: string;
}

/** A worker's report on one claimed task. */
export type TaskResult = CompleteTaskResult | FailTaskResult | HeartbeatTaskResult;

export interface TaskStats {
  readonly by_state: { readonly [name: string]: number };
  readonly by_handler: { readonly [name: string]: { readonly [name: string]: number } };
  readonly active_workers: readonly string[];
}

export interface TasksExchanged {
  /** Outcomes in the order of the results. */
  readonly outcomes: readonly TaskOutcome[];
  /** Tasks claimed by the poll. */
  readonly tasks: readonly WorkerTask[];
  /** Limit of the body of an exchange. */
  readonly max_body_bytes?: number;
}

export interface Tenant {
  readonly tenant_id: string;
}

export interface TenantBody {
  readonly tenant_id?: string | null | undefined;
}

export interface TenantLimits {
  readonly tenant_id: string;
  readonly bytes_per_second: number | null;
  readonly bytes_burst: number | null;
  readonly rows_per_second: number | null;
  readonly rows_burst: number | null;
  readonly blocks_per_second: number | null;
  readonly blocks_burst: number | null;
  readonly schedules_per_second: number | null;
  readonly schedules_burst: number | null;
  readonly schedules_max: number | null;
  readonly queue_depth_max: number | null;
  /** ISO 8601. */
  readonly updated_at: string | null;
}

export interface TenantMove {
  readonly id: string;
  readonly tenant_id: string;
  readonly from_cell: string;
  readonly to_cell: string;
  readonly state: 'copying' | 'switched' | 'done' | 'given_up';
  /** Copied rows by table; null before the copy. */
  readonly rows: JsonValue;
  readonly error: string | null;
  /** ISO 8601. */
  readonly started_at: string;
  /** ISO 8601. */
  readonly updated_at: string;
  /** ISO 8601. */
  readonly ended_at: string | null;
}

export interface Timeline {
  readonly instance: {
    readonly id: string;
    readonly sequence_id: string;
    readonly state: InstanceState;
    /** ISO 8601. */
    readonly created_at: string;
    /** ISO 8601. */
    readonly updated_at: string;
    readonly context?: InstanceContext;
  };
  readonly state_transitions: readonly {
    readonly from_state?: InstanceState;
    readonly to_state?: InstanceState;
    /** ISO 8601. */
    readonly at: string;
  }[];
  readonly entries: readonly {
    readonly block_id: string;
    readonly attempt: number;
    /** Counters of the enclosing loops, such as 2.0. */
    readonly iteration?: string;
    /** ISO 8601. */
    readonly completed_at: string;
    readonly output?: JsonValue;
    readonly output_ref?: string | null;
    readonly is_sentinel: boolean;
  }[];
  readonly offset: number;
  readonly limit: number;
  readonly has_more: boolean;
}

export interface Transform {
  /** Default: 1. */
  readonly version?: 1 | null | undefined;
  readonly transform: 'copy' | 'move' | 'drop';
  /** Dotted path in checkpoint_data; context_snapshot becomes context.data. */
  readonly from_path: string;
  /** Target path, for copy and move only. */
  readonly to_path?: string | null | undefined;
}

export interface TreeNode {
  readonly id: string;
  readonly instance_id: string;
  readonly block_id: string;
  readonly parent_id: string | null;
  readonly block_type: string;
  readonly branch_index: number | null;
  readonly state: BlockState;
  /** For a sub_sequence: its last child. */
  readonly child_instance_id?: string;
  /** ISO 8601. */
  readonly started_at: string | null;
  /** ISO 8601. */
  readonly completed_at: string | null;
  readonly items?: ItemCounts;
  /** For an open loop: the current iteration, from 0. */
  readonly iteration?: number;
  /** In loops: output rows over all iterations. */
  readonly output_count?: number;
}

export interface Trigger {
  readonly slug: string;
  readonly tenant_id: string;
  readonly namespace: string;
  readonly sequence_name: string | null;
  readonly publish: TriggerPublish | null;
  readonly version: number | null;
  readonly trigger_type: TriggerType;
  /** [REDACTED] if the trigger has a secret. */
  readonly secret: string | null;
  readonly verify: TriggerVerification | null;
  readonly config: JsonObject;
  readonly enabled: boolean;
  /** ISO 8601. */
  readonly created_at: string;
  /** ISO 8601. */
  readonly updated_at: string;
}

export interface TriggerFired {
  readonly trigger: string;
  /** The instance that was started; with skipped, one that holds the key. */
  readonly instance_id?: string;
  /** Nothing was created, since all slots are taken (when_full: skip). */
  readonly skipped?: true;
  /** The sequence collects creations: the instance with this id starts later. */
  readonly collected?: true;
  /** With collected: when the instance starts, unless a later creation changes it. */
  readonly starts_at?: string;
  readonly event_id?: string;
  /** True: the delivery had its effect before, and has no second. */
  readonly duplicate?: boolean;
  /** Id of the first matched wait. */
  readonly matched_wait?: string;
  /** Whether a step waited for it. */
  readonly satisfied?: boolean;
  /** Number of waiting steps. */
  readonly matched?: number;
  /** Number of instances that it cancels, started or not; absent: none. */
  readonly cancelled?: number;
  /** Number of triggers fired; absent: none, or a duplicate. */
  readonly triggers?: number;
  readonly sequence_name?: string;
}

/** Templates over `body` and `headers` of the request; headers have names in lower case. */
export interface TriggerPublish {
  /** Name of the event. */
  readonly event: string;
  /** Its correlation key. Default: none. */
  readonly key?: string | null | undefined;
  /** Its payload. Default: the body. */
  readonly payload?: unknown;
  /**
   * Its producer_event_id. Default: derived from the id of the delivery, so that a repeated
   * delivery is a duplicate.
   */
  readonly id?: string | null | undefined;
}

export type TriggerType = 'webhook' | 'event';

export interface TriggerVerification {
  /**
   * engine: as with `secret`. hmac: a signature of the body. basic: user:password. bearer: a
   * token.
   */
  readonly scheme:
    | 'engine'
    | 'standard_webhooks'
    | 'stripe'
    | 'github'
    | 'slack'
    | 'hmac'
    | 'basic'
    | 'bearer';
  /** Of hmac, which requires it, and bearer: the header with the signature or the token. */
  readonly header?: string | null;
  /** Of hmac. Default: hex. */
  readonly encoding?: 'hex' | 'base64' | 'base64url' | null;
  /** Of hmac: precedes the signature in the header, such as sha256=. */
  readonly prefix?: string | null;
  /** Of hmac. Default: sha256. */
  readonly algorithm?: 'sha256' | 'sha1' | 'sha512' | null;
  /** Of standard_webhooks, stripe and slack: the greatest age of a request. Default: 300,000. */
  readonly tolerance_ms?: number | null;
  /** Always [REDACTED]. */
  readonly secret: string;
}

export interface TriggerVerify {
  /**
   * engine: as with `secret`. hmac: a signature of the body. basic: user:password. bearer: a
   * token.
   */
  readonly scheme:
    | 'engine'
    | 'standard_webhooks'
    | 'stripe'
    | 'github'
    | 'slack'
    | 'hmac'
    | 'basic'
    | 'bearer';
  /** Of hmac, which requires it, and bearer: the header with the signature or the token. */
  readonly header?: string | null | undefined;
  /** Of hmac. Default: hex. */
  readonly encoding?: 'hex' | 'base64' | 'base64url' | null | undefined;
  /** Of hmac: precedes the signature in the header, such as sha256=. */
  readonly prefix?: string | null | undefined;
  /** Of hmac. Default: sha256. */
  readonly algorithm?: 'sha256' | 'sha1' | 'sha512' | null | undefined;
  /** Of standard_webhooks, stripe and slack: the greatest age of a request. Default: 300,000. */
  readonly tolerance_ms?: number | null | undefined;
  /** Shared with the sender; a list of two while it is replaced. Never returned. */
  readonly secret: string | readonly string[];
}

/** Runs catch_block on failure, and finally_block always. */
export interface TryCatchBlock {
  /** Kind of the block. */
  readonly type: 'try_catch';
  /**
   * Unique in the sequence. Expressions use it to refer to the output. Must not be __proto__,
   * constructor, prototype, . or ..
   */
  readonly id: string;
  /** If false, skips the block. */
  readonly when?: string | null | undefined;
  /** Time limit in ms; then the block is cancelled, and fails. */
  readonly timeout?: number | null | undefined;
  /** Blocks that run first. */
  readonly try_block: readonly Block[];
  /** Blocks that run if try_block failed. */
  readonly catch_block: readonly Block[];
  /** Blocks that always run last, also after a cancellation. */
  readonly finally_block?: readonly Block[] | null | undefined;
}

/** A link of the dashboard to another system. */
export interface UiLink {
  readonly label: string;
  /** With placeholders such as {instance_id}. */
  readonly url: string;
  readonly on: 'instance' | 'step';
}

/**
 * Absent members stay unchanged; null resets a member to its default. Refused, because they
 * cannot be changed: id, tenant_id, has_refresh_token, created_at, updated_at.
 */
export interface UpdateCredential {
  readonly name?: string | null | undefined;
  /**
   * The secret: a text of at most 262144 bytes. If it is a JSON object, templates can use
   * {{secrets.id.member}}. Never returned. Must not be [REDACTED].
   */
  readonly value?: string | undefined;
  readonly kind?: CredentialKind | null | undefined;
  readonly description?: string | null | undefined;
  /** Time from which steps cannot use the credential. */
  readonly expires_at?: string | null | undefined;
  /** Public address, for clients that renew the secret; with oauth2 only. */
  readonly refresh_url?: string | null | undefined;
  /** Refresh token, sealed like the value. Must not be [REDACTED]. */
  readonly refresh_token?: string | null | undefined;
  /** False: steps cannot use the credential. */
  readonly enabled?: boolean | null | undefined;
}

/**
 * Absent members stay unchanged; null resets a member to its default. Refused, because they
 * cannot be changed: id, tenant_id, namespace, sequence_id, sequence, version, skipped_fires,
 * last_skipped_at, last_triggered_at, next_fire_at, last_error, created_at, updated_at.
 */
export interface UpdateSchedule {
  /** The updated_at that was read: 409 if it has changed. */
  readonly if_unchanged_since?: string | null | undefined;
  /**
   * Seven fields: second minute hour day month day_of_week year. Also accepted: six (without
   * year) or five (without second and year), ?, and @hourly, @daily, @weekly, @monthly, @yearly.
   */
  readonly cron_expr?: string | undefined;
  /** IANA time zone, such as Europe/Berlin. */
  readonly timezone?: string | null | undefined;
  readonly enabled?: boolean | null | undefined;
  /** Metadata of the created instances. */
  readonly metadata?: object | null | undefined;
  /** Initial context; data must conform to the input_schema. */
  readonly context?:
    | {
        readonly data?: object | null | undefined;
        readonly config?: object | null | undefined;
      }
    | null
    | undefined;
  /** Maximum duration in ms from the first step, without pauses; then it fails. */
  readonly timeout?: number | null | undefined;
  /** Case-insensitive. */
  readonly priority?: 'low' | 'normal' | 'high' | 'critical' | null | undefined;
  /** Action of a fire while an earlier run has not finished. */
  readonly overlap_policy?: OverlapPolicy | null | undefined;
}

/** Lifts the hold, the only change of a version; deprecate it to exclude it again. */
export interface UpdateSequence {
  readonly hold: false;
}

/**
 * Absent members stay unchanged; null resets a member to its default. Refused, because they
 * cannot be changed: id, tenant_id, created_at, updated_at.
 */
export interface UpdateSubscription {
  /** The updated_at that was read: 409 if it has changed. */
  readonly if_unchanged_since?: string | null | undefined;
  /** http or https, without credentials; a public address unless the deployment allows others. */
  readonly url?: string | undefined;
  readonly events?: readonly WebhookEventType[] | null | undefined;
  /** Key of the webhooks' signatures. Must not be [REDACTED]. */
  readonly secret?: string | undefined;
}

/**
 * Absent members stay unchanged; null resets a member to its default. Refused, because they
 * cannot be changed: slug, tenant_id, namespace, trigger_type, created_at, updated_at.
 */
export interface UpdateTrigger {
  /** The updated_at that was read: 409 if it has changed. */
  readonly if_unchanged_since?: string | null | undefined;
  /** Name of the sequence, resolved at each fire. Exactly one of sequence_name and publish. */
  readonly sequence_name?: string | null | undefined;
  /** Publishes an event instead. */
  readonly publish?: TriggerPublish | null | undefined;
  /** Of webhook triggers, instead of secret: how requests are verified. */
  readonly verify?: TriggerVerify | null | undefined;
  readonly version?: number | null | undefined;
  /** Authenticates callers. Never returned. Must not be [REDACTED]. */
  readonly secret?: string | null | undefined;
  /** For event triggers: event_name, and optionally correlation_key to filter events. */
  readonly config?: object | null | undefined;
  readonly enabled?: boolean | null | undefined;
}

export interface ValidateRelease {
  /** Number of newest finished runs to replay: at least 1 and at most 50. Default: 10. */
  readonly sample?: number | null | undefined;
  /** Makes the release ready without a replay. Default: false. */
  readonly skip?: boolean | null | undefined;
}

/** Result of replays of finished runs. */
export interface ValidationReport {
  /** Number of replayed runs, with inconclusive ones. */
  readonly replayed: number;
  readonly matches: number;
  /** Number of diverged runs; divergences lists the first 20. */
  readonly diverged: number;
  readonly inconclusive: number;
  readonly divergences: readonly Divergence[];
  /** The first 20; absent if none. */
  readonly inconclusive_runs?: readonly InconclusiveRun[];
  readonly release_state: ReleaseState;
}

/** Evidence of the last validation. */
export interface ValidationSummary {
  /** Number of replayed runs, with inconclusive ones. */
  readonly replayed: number;
  readonly matches: number;
  /** Number of diverged runs; divergences lists the first 20. */
  readonly diverged: number;
  readonly inconclusive: number;
  readonly divergences: readonly Divergence[];
  /** The first 20; absent if none. */
  readonly inconclusive_runs?: readonly InconclusiveRun[];
  /** ISO 8601. */
  readonly validated_at: string;
}

/** One thing that an instance waits for, with members by kind. */
export interface Wait {
  readonly kind: WaitKind;
  readonly summary: string;
  /** Null if the instance as a whole waits. */
  readonly block_id: string | null;
  /** Path from the outermost block, such as orders[2]/charge. */
  readonly path: string | null;
  /** ISO 8601. */
  readonly since: string | null;
  /** Latest end of the wait; null: no time limit. */
  readonly until: string | null;
  /** The attempt, from 0; for a retry the next one. */
  readonly attempt?: number;
  /** Maximum attempts; null: no policy. */
  readonly max_attempts?: number | null;
  /** Error of the previous attempt. */
  readonly last_error?: string;
  readonly handler?: string;
  readonly queue?: string | null;
  readonly task_id?: string;
  readonly worker_id?: string;
  /** ISO 8601. */
  readonly heartbeat_at?: string;
  /** Claims of this attempt lost to silent workers. */
  readonly lost_claims?: number;
  readonly workers?: {
    /** Workers for this task that polled within 60 s. */
    readonly polled_lately: number;
    /** ISO 8601. */
    readonly last_polled_at: string | null;
    /** Worker endpoints that get such tasks. */
    readonly endpoints?: readonly string[];
  };
  /** transferring: being handed over; moved: owned elsewhere; imported: not yet owned here. */
  readonly reason?: 'transferring' | 'moved' | 'imported';
  /** Name of the event. */
  readonly name?: string;
  readonly approval_id?: string;
  /** Question to the person. */
  readonly prompt?: string;
  readonly choices?: readonly string[];
  readonly approvers?: readonly string[];
  readonly child_id?: string;
  readonly child_state?: InstanceState;
  readonly key?: string;
  readonly max_concurrency?: number;
  readonly holders?: readonly {
    readonly instance_id: string;
    readonly state: InstanceState;
  }[];
  /** Instances ahead in the queue, at most 10000. */
  readonly ahead?: number;
  readonly limit?: {
    readonly max_count: number;
    readonly window_seconds: number;
    /** The pattern whose limit applies to the key. */
    readonly pattern?: string;
  } | null;
}

/** Requires a person's answer before the first attempt. */
export interface WaitForInput {
  /** The question; may have templates. Default: "". */
  readonly prompt?: string | null | undefined;
  /** Possible answers. Default: Yes (yes) and No (no). The values of the choices are unique. */
  readonly choices?: readonly GateChoice[] | null | undefined;
  /**
   * Key of context.data for the value; default: block id. Must not be __proto__, constructor or
   * prototype.
   */
  readonly store_as?: string | null | undefined;
  /** Time limit in ms; default: none. */
  readonly timeout?: number | null | undefined;
  /**
   * After the time limit, the step completes with this handler's name in its output, instead of
   * failing.
   */
  readonly escalation_handler?: string | null | undefined;
  /** Whether the answer may have a comment. Default: false. */
  readonly allow_comment?: boolean | null | undefined;
  /** Groups whose members may answer; default: every key that may answer. */
  readonly approvers?: readonly string[] | null | undefined;
}

export type WaitKind =
  | 'pause'
  | 'start'
  | 'handoff'
  | 'slot'
  | 'throttle'
  | 'signal'
  | 'task'
  | 'worker'
  | 'handler'
  | 'approval'
  | 'sleep'
  | 'delay'
  | 'retry'
  | 'child'
  | 'rate_limit'
  | 'event'
  | 'engine';

export interface WebhookBody {
  readonly event_type: WebhookEventType;
  readonly instance_id: string;
  /** ISO 8601. */
  readonly timestamp: string;
  readonly tenant_id?: string;
  readonly namespace?: string;
  readonly sequence_id?: string;
  readonly sequence_name?: string | null;
  readonly sequence_version?: number | null;
  readonly metadata?: JsonObject;
  /** The failure; null after a completion. */
  readonly failure?: JsonObject | null;
  readonly data: JsonValue;
}

export type WebhookEventType = 'instance.completed' | 'instance.failed';

export interface WebhookSubscription {
  readonly id: string;
  readonly tenant_id: string;
  readonly url: string;
  readonly events: readonly WebhookEventType[];
  /** ISO 8601. */
  readonly created_at: string;
  /** ISO 8601. */
  readonly updated_at: string;
}

export interface WebhookTaken {
  readonly trigger: string;
  /** The instance that was started; with skipped, one that holds the key. */
  readonly instance_id?: string;
  /** Nothing was created, since all slots are taken (when_full: skip). */
  readonly skipped?: true;
  /** The sequence collects creations: the instance with this id starts later. */
  readonly collected?: true;
  /** With collected: when the instance starts, unless a later creation changes it. */
  readonly starts_at?: string;
  readonly event_id?: string;
  /** True: the delivery had its effect before, and has no second. */
  readonly duplicate?: boolean;
  /** Id of the first matched wait. */
  readonly matched_wait?: string;
  /** Whether a step waited for it. */
  readonly satisfied?: boolean;
  /** Number of waiting steps. */
  readonly matched?: number;
  /** Number of instances that it cancels, started or not; absent: none. */
  readonly cancelled?: number;
  /** Number of triggers fired; absent: none, or a duplicate. */
  readonly triggers?: number;
}

export interface WhoAmI {
  /** Whether the key is the root key, or the server requires no keys. */
  readonly is_root: boolean;
  /** Whether the server requires no keys (--insecure-auth). */
  readonly is_insecure: boolean;
  /** Tenant of the key; null: any, named by x-tenant-id. */
  readonly tenant_id: string | null;
  /** Whether requests must name a tenant (ENGINE_REQUIRE_TENANT_HEADER). */
  readonly requires_tenant: boolean;
  /** Capabilities of the key; the root key has all. */
  readonly capabilities: readonly Capability[];
  readonly key: {
    /** Id of a key: ak_ and 32 hexadecimal digits. */
    readonly id: string;
    readonly name: string;
    /** Groups for which the key answers approvals. */
    readonly groups: readonly string[];
    /** ISO 8601. */
    readonly expires_at: string | null;
  } | null;
}

export interface WorkerAttempt {
  readonly id: string;
  readonly task_id: string;
  readonly claim_epoch: number;
  readonly worker_id?: string;
  readonly event:
    | 'claimed'
    | 'reclaimed'
    | 'completed'
    | 'failed'
    | 'timed_out'
    | 'cancelled'
    | 'stale_mutation_rejected';
  readonly reason?: string;
  /** ISO 8601. */
  readonly created_at: string;
}

/** An endpoint without its secret. */
export interface WorkerEndpoint {
  readonly name: string;
  readonly tenant_id: string;
  readonly handlers: readonly string[];
  readonly url: string;
  readonly concurrency: number;
  readonly timeout_ms: number;
  readonly enabled: boolean;
  readonly receives_secrets: boolean;
  /** ISO 8601. */
  readonly created_at: string;
  /** ISO 8601. */
  readonly updated_at: string;
  readonly status?: EndpointStatus;
}

export interface WorkerInfo {
  readonly worker_id: string;
  readonly handlers: readonly string[];
  readonly queues: readonly string[];
  readonly version: string | null;
  /** ISO 8601. */
  readonly last_seen_at: string;
  readonly alive: boolean;
  readonly in_flight: number;
}

/** A step for an external worker. */
export interface WorkerTask {
  readonly id: string;
  readonly instance_id: string;
  readonly block_id: string;
  readonly handler_name: string;
  readonly queue_name?: string;
  readonly params: JsonValue;
  readonly context: {
    readonly data: JsonObject;
    readonly config: JsonObject;
  };
  readonly attempt: number;
  /**
   * The same for all attempts of one execution of the step; differs by item, iteration and
   * restart.
   */
  readonly idempotency_key: string;
  readonly timeout_ms: number | null;
  readonly state: WorkerTaskState;
  readonly worker_id: string | null;
  readonly claim_epoch: number;
  /** Claims lost to silent workers; too many fail the attempt permanently. */
  readonly lost_claims: number;
  /** ISO 8601. */
  readonly claimed_at: string | null;
  /** ISO 8601. */
  readonly heartbeat_at: string | null;
  /** ISO 8601. */
  readonly completed_at: string | null;
  readonly output: JsonObject | null;
  readonly error_message: string | null;
  readonly error_retryable: boolean | null;
  readonly checkpoint_seq: number;
  readonly resume_checkpoint?: JsonValue;
  readonly traceparent?: string;
  /** ISO 8601. */
  readonly created_at: string;
}

export type WorkerTaskState = 'pending' | 'claimed' | 'completed' | 'failed';

/** What `sequences.create` can be asked. */
export interface SequencesCreateQuery {
  /** Also refuses definitions with warnings. Default: false. */
  readonly strict?: boolean | undefined;
}

/** What `sequences.validate` can be asked. */
export interface SequencesValidateQuery {
  /** Also refuses definitions with warnings. Default: false. */
  readonly strict?: boolean | undefined;
}

/** What `sequences.list` can be asked. */
export interface SequencesListQuery {
  /** The header x-tenant-id overrides it. */
  readonly tenant_id?: string | undefined;
  readonly namespace?: string | undefined;
  readonly name?: string | undefined;
  /** Case-insensitive. */
  readonly name_contains?: string | undefined;
  /** Only the newest version of each name, with the number of versions. Default: false. */
  readonly newest_only?: boolean | undefined;
  /** False: omits the definition: blocks, input_schema, hooks, limits and the like. Default: true. */
  readonly include_definition?: boolean | undefined;
  /** Number of rows to skip. Default: 0. */
  readonly offset?: number | undefined;
  /** Maximum number of rows. Larger values are lowered to 1000. Default: 200. */
  readonly limit?: number | undefined;
  /**
   * Position after which the list continues. From the header x-next-cursor of the previous page;
   * instead of an offset.
   */
  readonly cursor?: string | undefined;
}

/** What `sequences.byName` can be asked. */
export interface SequencesByNameQuery {
  /** The header x-tenant-id overrides it. */
  readonly tenant_id?: string | undefined;
  readonly namespace?: string | undefined;
  readonly name: string;
  /** Default: the newest that is neither deprecated nor on hold. */
  readonly version?: number | undefined;
}

/** What `sequences.versions` can be asked. */
export interface SequencesVersionsQuery {
  /** The header x-tenant-id overrides it. */
  readonly tenant_id?: string | undefined;
  readonly namespace?: string | undefined;
  readonly name: string;
}

/** What `sequences.delete` can be asked. */
export interface SequencesDeleteQuery {
  /** Deletes failed instances too; otherwise they prevent the deletion. Default: false. */
  readonly cascade?: boolean | undefined;
  /**
   * Answers 200 with the number of instances to delete, or the error; deletes nothing. Default:
   * false.
   */
  readonly dry_run?: boolean | undefined;
}

/** What `instances.create` can be asked. */
export interface InstancesCreateQuery {
  /**
   * Maximum wait in ms for the end of the instance. Larger values are lowered to 60000. Default:
   * 0.
   */
  readonly wait_ms?: number | undefined;
}

/** What `instances.list` can be asked. */
export interface InstancesListQuery {
  /** The header x-tenant-id overrides it. */
  readonly tenant_id?: string | undefined;
  readonly namespace?: string | undefined;
  readonly sequence_id?: string | undefined;
  /** Includes every version of the sequences with this name. */
  readonly sequence_name?: string | undefined;
  /** Alias of sequence_name. */
  readonly sequence?: string | undefined;
  /** Version of the sequence. */
  readonly sequence_version?: number | undefined;
  /** Children of this instance. */
  readonly parent_instance_id?: string | undefined;
  /** At most 1000 instances. */
  readonly ids?: readonly string[] | undefined;
  /** Instances with a step that waits for it (see explain). */
  readonly waiting_for?:
    | 'task'
    | 'handler'
    | 'approval'
    | 'sleep'
    | 'delay'
    | 'retry'
    | 'child'
    | 'rate_limit'
    | 'event'
    | 'slot'
    | undefined;
  /** Only objects created after this time. */
  readonly created_after?: string | undefined;
  /** Only objects created before this time. */
  readonly created_before?: string | undefined;
  /** Only instances changed after this time. */
  readonly updated_after?: string | undefined;
  /** Only instances changed before this time. */
  readonly updated_before?: string | undefined;
  /** Only instances that failed after this time. */
  readonly failed_after?: string | undefined;
  /** Only instances that failed before this time. */
  readonly failed_before?: string | undefined;
  /** Part of the failure's message or code; case-insensitive. */
  readonly failure?: string | undefined;
  /** Code of the failure. */
  readonly failure_code?: string | undefined;
  /** block_id of the failure. */
  readonly failure_block?: string | undefined;
  /** Handler of the failure. */
  readonly failure_handler?: string | undefined;
  /** Reason of the failure, as in /instances/failures. */
  readonly failure_reason?: string | undefined;
  /** Equalities on top-level texts of the metadata; all must hold. At most 16. */
  readonly metadata?: { readonly [name: string]: string } | undefined;
  /** Separated by commas; default: all. */
  readonly state?: readonly InstanceState[] | undefined;
  /** Number of rows to skip. Default: 0. */
  readonly offset?: number | undefined;
  /** Maximum number of rows. Larger values are lowered to 1000. Default: 100. */
  readonly limit?: number | undefined;
  /**
   * Position after which the list continues. From the header x-next-cursor of the previous page;
   * instead of an offset.
   */
  readonly cursor?: string | undefined;
}

/** What `instances.deadLetters` can be asked. */
export interface InstancesDeadLettersQuery {
  /** The header x-tenant-id overrides it. */
  readonly tenant_id?: string | undefined;
  readonly namespace?: string | undefined;
  readonly sequence_id?: string | undefined;
  /** Includes every version of the sequences with this name. */
  readonly sequence_name?: string | undefined;
  /** Alias of sequence_name. */
  readonly sequence?: string | undefined;
  /** Version of the sequence. */
  readonly sequence_version?: number | undefined;
  /** Children of this instance. */
  readonly parent_instance_id?: string | undefined;
  /** At most 1000 instances. */
  readonly ids?: readonly string[] | undefined;
  /** Instances with a step that waits for it (see explain). */
  readonly waiting_for?:
    | 'task'
    | 'handler'
    | 'approval'
    | 'sleep'
    | 'delay'
    | 'retry'
    | 'child'
    | 'rate_limit'
    | 'event'
    | 'slot'
    | undefined;
  /** Only objects created after this time. */
  readonly created_after?: string | undefined;
  /** Only objects created before this time. */
  readonly created_before?: string | undefined;
  /** Only instances changed after this time. */
  readonly updated_after?: string | undefined;
  /** Only instances changed before this time. */
  readonly updated_before?: string | undefined;
  /** Only instances that failed after this time. */
  readonly failed_after?: string | undefined;
  /** Only instances that failed before this time. */
  readonly failed_before?: string | undefined;
  /** Part of the failure's message or code; case-insensitive. */
  readonly failure?: string | undefined;
  /** Code of the failure. */
  readonly failure_code?: string | undefined;
  /** block_id of the failure. */
  readonly failure_block?: string | undefined;
  /** Handler of the failure. */
  readonly failure_handler?: string | undefined;
  /** Reason of the failure, as in /instances/failures. */
  readonly failure_reason?: string | undefined;
  /** Equalities on top-level texts of the metadata; all must hold. At most 16. */
  readonly metadata?: { readonly [name: string]: string } | undefined;
  /** Separated by commas; default: all. */
  readonly state?: readonly InstanceState[] | undefined;
  /** Number of rows to skip. Default: 0. */
  readonly offset?: number | undefined;
  /** Maximum number of rows. Larger values are lowered to 1000. Default: 100. */
  readonly limit?: number | undefined;
  /**
   * Position after which the list continues. From the header x-next-cursor of the previous page;
   * instead of an offset.
   */
  readonly cursor?: string | undefined;
}

/** What `instances.counts` can be asked. */
export interface InstancesCountsQuery {
  /** The header x-tenant-id overrides it. */
  readonly tenant_id?: string | undefined;
  readonly namespace?: string | undefined;
  readonly sequence_id?: string | undefined;
  /** Includes every version of the sequences with this name. */
  readonly sequence_name?: string | undefined;
  /** Alias of sequence_name. */
  readonly sequence?: string | undefined;
  /** Version of the sequence. */
  readonly sequence_version?: number | undefined;
  /** Children of this instance. */
  readonly parent_instance_id?: string | undefined;
  /** At most 1000 instances. */
  readonly ids?: readonly string[] | undefined;
  /** Instances with a step that waits for it (see explain). */
  readonly waiting_for?:
    | 'task'
    | 'handler'
    | 'approval'
    | 'sleep'
    | 'delay'
    | 'retry'
    | 'child'
    | 'rate_limit'
    | 'event'
    | 'slot'
    | undefined;
  /** Only objects created after this time. */
  readonly created_after?: string | undefined;
  /** Only objects created before this time. */
  readonly created_before?: string | undefined;
  /** Only instances changed after this time. */
  readonly updated_after?: string | undefined;
  /** Only instances changed before this time. */
  readonly updated_before?: string | undefined;
  /** Only instances that failed after this time. */
  readonly failed_after?: string | undefined;
  /** Only instances that failed before this time. */
  readonly failed_before?: string | undefined;
  /** Part of the failure's message or code; case-insensitive. */
  readonly failure?: string | undefined;
  /** Code of the failure. */
  readonly failure_code?: string | undefined;
  /** block_id of the failure. */
  readonly failure_block?: string | undefined;
  /** Handler of the failure. */
  readonly failure_handler?: string | undefined;
  /** Reason of the failure, as in /instances/failures. */
  readonly failure_reason?: string | undefined;
  /** Equalities on top-level texts of the metadata; all must hold. At most 16. */
  readonly metadata?: { readonly [name: string]: string } | undefined;
}

/** What `instances.bulkState` can be asked. */
export interface InstancesBulkStateQuery {
  /** Answers 202 with a job immediately, as does the header Prefer: respond-async. Default: false. */
  readonly async?: boolean | undefined;
}

/** What `instances.signal` can be asked. */
export interface InstancesSignalQuery {
  /**
   * Maximum wait in ms for a step to take the signal. Larger values are lowered to 60000.
   * Default: 0.
   */
  readonly wait_ms?: number | undefined;
}

/** What `instances.signals` can be asked. */
export interface InstancesSignalsQuery {
  readonly signal_type?: string | undefined;
  /**
   * kept: no step has waited for it yet; taken, refused: consumed by taken_by; applied: took
   * effect immediately.
   */
  readonly status?: SignalStatus | undefined;
  /** Number of rows to skip. Default: 0. */
  readonly offset?: number | undefined;
  /** Maximum number of rows. Larger values are lowered to 1000. Default: 100. */
  readonly limit?: number | undefined;
  /**
   * Position after which the list continues. From the header x-next-cursor of the previous page;
   * instead of an offset.
   */
  readonly cursor?: string | undefined;
}

/** What `instances.tree` can be asked. */
export interface InstancesTreeQuery {
  /** Only this block and the blocks inside. */
  readonly block_id?: string | undefined;
  /** Number of levels below the first. */
  readonly depth?: number | undefined;
}

/** What `instances.outputs` can be asked. */
export interface InstancesOutputsQuery {
  readonly block_id?: string | undefined;
  /** Counters of the enclosing loops, such as 2.0. */
  readonly iteration?: string | undefined;
  /** Number of rows to skip. Default: 0. */
  readonly offset?: number | undefined;
  /** Maximum number of rows. */
  readonly limit?: number | undefined;
  /**
   * Position after which the list continues. From the header x-next-cursor of the previous page;
   * instead of an offset.
   */
  readonly cursor?: string | undefined;
  /** Maximum size of the response, which has at least one row. */
  readonly max_bytes?: number | undefined;
}

/** What `instances.children` can be asked. */
export interface InstancesChildrenQuery {
  /** Number of rows to skip. Default: 0. */
  readonly offset?: number | undefined;
  /** Maximum number of rows. */
  readonly limit?: number | undefined;
  /**
   * Position after which the list continues. From the header x-next-cursor of the previous page;
   * instead of an offset.
   */
  readonly cursor?: string | undefined;
  /** Separated by commas; default: all. */
  readonly state?: readonly InstanceState[] | undefined;
}

/** What `instances.audit` can be asked. */
export interface InstancesAuditQuery {
  /** Maximum number of rows. Larger values are lowered to 1000. Default: 200. */
  readonly limit?: number | undefined;
  /**
   * Position after which the list continues. From the header x-next-cursor of the previous page;
   * instead of an offset.
   */
  readonly cursor?: string | undefined;
}

/** What `instances.timeline` can be asked. */
export interface InstancesTimelineQuery {
  readonly block_id?: string | undefined;
  /** Counters of the enclosing loops, such as 2.0. */
  readonly iteration?: string | undefined;
  /**
   * Position after which the list continues. From the header x-next-cursor of the previous page;
   * instead of an offset.
   */
  readonly cursor?: string | undefined;
  /** Maximum size of the response, which has at least one row. */
  readonly max_bytes?: number | undefined;
  /** Number of rows to skip. Default: 0. */
  readonly offset?: number | undefined;
  /** Maximum number of rows. Larger values are lowered to 1000. Default: 200. */
  readonly limit?: number | undefined;
  /** False: omits the values of outputs. Default: true. */
  readonly include_outputs?: boolean | undefined;
}

/** What `instances.attempts` can be asked. */
export interface InstancesAttemptsQuery {
  readonly block_id?: string | undefined;
  /** Counters of the enclosing loops, such as 2.0. */
  readonly iteration?: string | undefined;
  /** With block_id: iteration of its outermost loop, from 0; a range has at most 1000. */
  readonly iteration_from?: number | undefined;
  /** Last iteration of the range; default: iteration_from. */
  readonly iteration_to?: number | undefined;
  /** Separated by commas; default: all. */
  readonly state?:
    | readonly ('pending' | 'claimed' | 'completed' | 'failed' | 'timed_out' | 'cancelled')[]
    | undefined;
  /** Sort order. Default: "oldest". */
  readonly order?: 'oldest' | 'newest' | undefined;
  /** False: omits params, overlay and output. Default: true. */
  readonly include_payloads?: boolean | undefined;
  /** Maximum number of rows. Larger values are lowered to 1000. Default: 100. */
  readonly limit?: number | undefined;
  /**
   * Position after which the list continues. From the header x-next-cursor of the previous page;
   * instead of an offset.
   */
  readonly cursor?: string | undefined;
}

/** What `approvals.list` can be asked. */
export interface ApprovalsListQuery {
  /** The header x-tenant-id overrides it. */
  readonly tenant_id?: string | undefined;
  readonly namespace?: string | undefined;
  readonly sequence_id?: string | undefined;
  /** Includes every version of the sequences with this name. */
  readonly sequence_name?: string | undefined;
  /** Alias of sequence_name. */
  readonly sequence?: string | undefined;
  /** Only approvals that name this group; takes a tenant. Letters, digits and . _ @ : / + - */
  readonly group?: string | undefined;
  /** Number of rows to skip. Default: 0. */
  readonly offset?: number | undefined;
  /** Maximum number of rows. Larger values are lowered to 1000. Default: 100. */
  readonly limit?: number | undefined;
  /**
   * Position after which the list continues. From the header x-next-cursor of the previous page;
   * instead of an offset.
   */
  readonly cursor?: string | undefined;
}

/** What `instances.bulkReschedule` can be asked. */
export interface InstancesBulkRescheduleQuery {
  /** Answers 202 with a job immediately, as does the header Prefer: respond-async. Default: false. */
  readonly async?: boolean | undefined;
}

/** What `instances.batchAction` can be asked. */
export interface InstancesBatchActionQuery {
  /** Answers 202 with a job immediately, as does the header Prefer: respond-async. Default: false. */
  readonly async?: boolean | undefined;
}

/** What `instances.logs` can be asked. */
export interface InstancesLogsQuery {
  readonly block_id?: string | undefined;
  /** Any of these levels, such as warn,error. */
  readonly level?: readonly string[] | undefined;
  /** Part of the message; case-insensitive. */
  readonly text?: string | undefined;
  /** Sort order. Default: "oldest". */
  readonly order?: 'oldest' | 'newest' | undefined;
  /** Number of rows to skip. Default: 0. */
  readonly offset?: number | undefined;
  /** Maximum number of rows. */
  readonly limit?: number | undefined;
  /**
   * Position after which the list continues. From the header x-next-cursor of the previous page;
   * instead of an offset.
   */
  readonly cursor?: string | undefined;
  /** Maximum size of the response, which has at least one row. */
  readonly max_bytes?: number | undefined;
}

/** What `instances.stream` can be asked. */
export interface InstancesStreamQuery {
  /** Time in ms for which changes are collected before they are sent: 100 to 5,000. Default: 500. */
  readonly poll_ms?: number | undefined;
  /**
   * False: omits the values of outputs. false: a state event for each change of the instance, and
   * no outputs. Default: true.
   */
  readonly include_outputs?: boolean | undefined;
}

/** What `logs.list` can be asked. */
export interface LogsListQuery {
  /** The header x-tenant-id overrides it. */
  readonly tenant_id?: string | undefined;
  readonly block_id?: string | undefined;
  /** Any of these levels, such as warn,error. */
  readonly level?: readonly string[] | undefined;
  /** Part of the message; case-insensitive. */
  readonly text?: string | undefined;
  readonly instance_id?: string | undefined;
  readonly namespace?: string | undefined;
  readonly sequence_id?: string | undefined;
  /** Includes every version of the sequences with this name. */
  readonly sequence_name?: string | undefined;
  /** Alias of sequence_name. */
  readonly sequence?: string | undefined;
  /** Only lines stored after this time. */
  readonly since?: string | undefined;
  /** Only lines stored before this time. */
  readonly until?: string | undefined;
  /** Maximum number of rows. Larger values are lowered to 500. Default: 100. */
  readonly limit?: number | undefined;
  /**
   * Position after which the list continues. From the header x-next-cursor of the previous page;
   * instead of an offset.
   */
  readonly cursor?: string | undefined;
}

/** What `bulkJobs.list` can be asked. */
export interface BulkJobsListQuery {
  /** The header x-tenant-id overrides it. */
  readonly tenant_id?: string | undefined;
  /** Separated by commas; default: all. */
  readonly state?: BulkJobState | undefined;
  /** Number of rows to skip. Default: 0. */
  readonly offset?: number | undefined;
  /** Maximum number of rows. Larger values are lowered to 1000. Default: 100. */
  readonly limit?: number | undefined;
  /**
   * Position after which the list continues. From the header x-next-cursor of the previous page;
   * instead of an offset.
   */
  readonly cursor?: string | undefined;
}

/** What `rateLimits.list` can be asked. */
export interface RateLimitsListQuery {
  /** The header x-tenant-id overrides it. */
  readonly tenant_id?: string | undefined;
  /** Number of rows to skip. Default: 0. */
  readonly offset?: number | undefined;
  /** Maximum number of rows. */
  readonly limit?: number | undefined;
}

/** What `credentials.list` can be asked. */
export interface CredentialsListQuery {
  /** The header x-tenant-id overrides it. */
  readonly tenant_id?: string | undefined;
  readonly kind?: CredentialKind | undefined;
  /** Number of rows to skip. Default: 0. */
  readonly offset?: number | undefined;
  /** Maximum number of rows. */
  readonly limit?: number | undefined;
  /**
   * Position after which the list continues. From the header x-next-cursor of the previous page;
   * instead of an offset.
   */
  readonly cursor?: string | undefined;
}

/** What `workers.tasks` can be asked. */
export interface WorkersTasksQuery {
  /** The header x-tenant-id overrides it. */
  readonly tenant_id?: string | undefined;
  /** Separated by commas; default: all. */
  readonly state?: readonly WorkerTaskState[] | undefined;
  readonly handler_name?: string | undefined;
  readonly worker_id?: string | undefined;
  readonly queue_name?: string | undefined;
  /** Only objects created after this time. */
  readonly created_after?: string | undefined;
  /** Only objects created before this time. */
  readonly created_before?: string | undefined;
  readonly sequence_name?: string | undefined;
  /** Number of rows to skip. Default: 0. */
  readonly offset?: number | undefined;
  /** Maximum number of rows. Larger values are lowered to 1000. Default: 50. */
  readonly limit?: number | undefined;
  /**
   * Position after which the list continues. From the header x-next-cursor of the previous page;
   * instead of an offset.
   */
  readonly cursor?: string | undefined;
}

/** What `workers.stats` can be asked. */
export interface WorkersStatsQuery {
  /** The header x-tenant-id overrides it. */
  readonly tenant_id?: string | undefined;
}

/** What `workers.attempts` can be asked. */
export interface WorkersAttemptsQuery {
  /** Number of rows to skip. Default: 0. */
  readonly offset?: number | undefined;
  /** Maximum number of rows. */
  readonly limit?: number | undefined;
}

/** What `workers.list` can be asked. */
export interface WorkersListQuery {
  /** The header x-tenant-id overrides it. */
  readonly tenant_id?: string | undefined;
  /** Workers seen within this time count as alive. Default: 60. */
  readonly alive_within_secs?: number | undefined;
  /** Also lists workers that are not alive. Default: false. */
  readonly include_stale?: boolean | undefined;
}

/** What `handlers` can be asked. */
export interface HandlersQuery {
  /** The header x-tenant-id overrides it. */
  readonly tenant_id?: string | undefined;
}

/** What `workerEndpoints.list` can be asked. */
export interface WorkerEndpointsListQuery {
  /** The header x-tenant-id overrides it. */
  readonly tenant_id?: string | undefined;
  /** Number of rows to skip. Default: 0. */
  readonly offset?: number | undefined;
  /** Maximum number of rows. */
  readonly limit?: number | undefined;
}

/** What `cron.list` can be asked. */
export interface CronListQuery {
  /** The header x-tenant-id overrides it. */
  readonly tenant_id?: string | undefined;
  /** next_fire: only enabled, by next fire. Default: created. */
  readonly order?: 'created' | 'next_fire' | undefined;
  /** Number of rows to skip. Default: 0. */
  readonly offset?: number | undefined;
  /** Maximum number of rows. */
  readonly limit?: number | undefined;
  /**
   * Position after which the list continues. From the header x-next-cursor of the previous page;
   * instead of an offset.
   */
  readonly cursor?: string | undefined;
}

/** What `cron.nextFires` can be asked. */
export interface CronNextFiresQuery {
  /** Number of fires. At least 1 and at most 50. Default: 5. */
  readonly n?: number | undefined;
}

/** What `pendingStarts.list` can be asked. */
export interface PendingStartsListQuery {
  /** The header x-tenant-id overrides it. */
  readonly tenant_id?: string | undefined;
  readonly namespace?: string | undefined;
  readonly sequence?: string | undefined;
  /** Number of rows to skip. Default: 0. */
  readonly offset?: number | undefined;
  /** Maximum number of rows. Larger values are lowered to 1000. Default: 100. */
  readonly limit?: number | undefined;
  /**
   * Position after which the list continues. From the header x-next-cursor of the previous page;
   * instead of an offset.
   */
  readonly cursor?: string | undefined;
}

/** What `releases.list` can be asked. */
export interface ReleasesListQuery {
  /** The header x-tenant-id overrides it. */
  readonly tenant_id?: string | undefined;
  /** Separated by commas; default: all. */
  readonly state?: ReleaseState | undefined;
  readonly sequence_name?: string | undefined;
  /** Maximum number of rows. At least 1 and at most 1000. Default: 100. */
  readonly limit?: number | undefined;
  /**
   * Position after which the list continues. From the header x-next-cursor of the previous page;
   * instead of an offset.
   */
  readonly cursor?: string | undefined;
}

/** What `continuity.get` can be asked. */
export interface ContinuityGetQuery {
  /** The header x-tenant-id overrides it. */
  readonly tenant_id?: string | undefined;
}

/** What `continuity.locations` can be asked. */
export interface ContinuityLocationsQuery {
  /** The header x-tenant-id overrides it. */
  readonly tenant_id?: string | undefined;
}

/** What `continuity.effects` can be asked. */
export interface ContinuityEffectsQuery {
  /** The header x-tenant-id overrides it. */
  readonly tenant_id?: string | undefined;
}

/** What `continuity.checkpoints` can be asked. */
export interface ContinuityCheckpointsQuery {
  /** The header x-tenant-id overrides it. */
  readonly tenant_id?: string | undefined;
  /** Maximum number of rows. Larger values are lowered to 10000. Default: 1000. */
  readonly limit?: number | undefined;
}

/** What `continuity.checkpoint` can be asked. */
export interface ContinuityCheckpointQuery {
  /** The header x-tenant-id overrides it. */
  readonly tenant_id?: string | undefined;
}

/** What `continuity.provenance` can be asked. */
export interface ContinuityProvenanceQuery {
  /** The header x-tenant-id overrides it. */
  readonly tenant_id?: string | undefined;
}

/** What `continuity.verifyProvenance` can be asked. */
export interface ContinuityVerifyProvenanceQuery {
  /** The header x-tenant-id overrides it. */
  readonly tenant_id?: string | undefined;
  readonly expected_head?: string | undefined;
}

/** What `instances.effects` can be asked. */
export interface InstancesEffectsQuery {
  /** The header x-tenant-id overrides it. */
  readonly tenant_id?: string | undefined;
  /** Maximum number of rows. Larger values are lowered to 1000. Default: 1000. */
  readonly limit?: number | undefined;
  /**
   * Position after which the list continues. From the header x-next-cursor of the previous page;
   * instead of an offset.
   */
  readonly cursor?: string | undefined;
}

/** What `migrations.get` can be asked. */
export interface MigrationsGetQuery {
  /** The header x-tenant-id overrides it. */
  readonly tenant_id?: string | undefined;
}

/** What `runtimes.list` can be asked. */
export interface RuntimesListQuery {
  /** The header x-tenant-id overrides it. */
  readonly tenant_id?: string | undefined;
}

/** What `handoffs.get` can be asked. */
export interface HandoffsGetQuery {
  /** The header x-tenant-id overrides it. */
  readonly tenant_id?: string | undefined;
}

/** What `apiKeys.list` can be asked. */
export interface ApiKeysListQuery {
  /** The header x-tenant-id overrides it. */
  readonly tenant_id: string;
  /** Number of rows to skip. Default: 0. */
  readonly offset?: number | undefined;
  /** Maximum number of rows. */
  readonly limit?: number | undefined;
  /**
   * Position after which the list continues. From the header x-next-cursor of the previous page;
   * instead of an offset.
   */
  readonly cursor?: string | undefined;
}

/** What `actions.list` can be asked. */
export interface ActionsListQuery {
  /** The header x-tenant-id overrides it. */
  readonly tenant_id?: string | undefined;
  /** Name of the key. */
  readonly by?: string | undefined;
  readonly kind?:
    | 'sequence'
    | 'instance'
    | 'bulk_job'
    | 'pending_start'
    | 'approval'
    | 'release'
    | 'migration'
    | 'effect'
    | 'credential'
    | 'trigger'
    | 'webhook'
    | 'webhook_delivery'
    | 'cron_schedule'
    | 'rate_limit'
    | 'worker_endpoint'
    | 'api_key'
    | 'tenant_limits'
    | undefined;
  readonly operation?: string | undefined;
  /** Id or name of the changed object. */
  readonly target?: string | undefined;
  /** Only actions after this time. */
  readonly since?: string | undefined;
  /** Only actions before this time. */
  readonly until?: string | undefined;
  /** Number of rows to skip. Default: 0. */
  readonly offset?: number | undefined;
  /** Maximum number of rows. Larger values are lowered to 1000. Default: 100. */
  readonly limit?: number | undefined;
  /**
   * Position after which the list continues. From the header x-next-cursor of the previous page;
   * instead of an offset.
   */
  readonly cursor?: string | undefined;
}

/** What `tenants.list` can be asked. */
export interface TenantsListQuery {
  /** Maximum number of rows. Larger values are lowered to 1000. Default: 100. */
  readonly limit?: number | undefined;
  /**
   * Position after which the list continues. From the header x-next-cursor of the previous page;
   * instead of an offset.
   */
  readonly cursor?: string | undefined;
}

/** What `cells.moves` can be asked. */
export interface CellsMovesQuery {
  /** Only unfinished moves. Default: false. */
  readonly under_way?: boolean | undefined;
  /** Maximum number of rows. Larger values are lowered to 1000. Default: 100. */
  readonly limit?: number | undefined;
  /**
   * Position after which the list continues. From the header x-next-cursor of the previous page;
   * instead of an offset.
   */
  readonly cursor?: string | undefined;
}

/** What `webhooks.subscriptions` can be asked. */
export interface WebhooksSubscriptionsQuery {
  /** The header x-tenant-id overrides it. */
  readonly tenant_id?: string | undefined;
  /** Number of rows to skip. Default: 0. */
  readonly offset?: number | undefined;
  /** Maximum number of rows. Larger values are lowered to 1000. Default: 100. */
  readonly limit?: number | undefined;
}

/** What `webhooks.subscriptionDeliveries` can be asked. */
export interface WebhooksSubscriptionDeliveriesQuery {
  readonly event_type?: WebhookEventType | undefined;
  readonly delivered?: boolean | undefined;
  readonly error_class?: DeliveryErrorClass | undefined;
  /** Maximum number of rows. Larger values are lowered to 1000. Default: 100. */
  readonly limit?: number | undefined;
  /**
   * Position after which the list continues. From the header x-next-cursor of the previous page;
   * instead of an offset.
   */
  readonly cursor?: string | undefined;
}

/** What `webhooks.outbox` can be asked. */
export interface WebhooksOutboxQuery {
  /** Maximum number of rows. Larger values are lowered to 1000. Default: 100. */
  readonly limit?: number | undefined;
}

/** What `webhooks.deliveries` can be asked. */
export interface WebhooksDeliveriesQuery {
  readonly url?: string | undefined;
  readonly event_type?: WebhookEventType | undefined;
  readonly delivered?: boolean | undefined;
  readonly error_class?: DeliveryErrorClass | undefined;
  /** Maximum number of rows. Larger values are lowered to 1000. Default: 100. */
  readonly limit?: number | undefined;
  /**
   * Position after which the list continues. From the header x-next-cursor of the previous page;
   * instead of an offset.
   */
  readonly cursor?: string | undefined;
}

/** What `triggers.list` can be asked. */
export interface TriggersListQuery {
  /** The header x-tenant-id overrides it. */
  readonly tenant_id?: string | undefined;
  readonly namespace?: string | undefined;
  readonly sequence_name?: string | undefined;
  /** webhook: a signed request to /webhooks/{slug}. event: every event with a given name. */
  readonly trigger_type?: TriggerType | undefined;
  /** Number of rows to skip. Default: 0. */
  readonly offset?: number | undefined;
  /** Maximum number of rows. */
  readonly limit?: number | undefined;
  /**
   * Position after which the list continues. From the header x-next-cursor of the previous page;
   * instead of an offset.
   */
  readonly cursor?: string | undefined;
}

/** What `events.list` can be asked. */
export interface EventsListQuery {
  /** The header x-tenant-id overrides it. */
  readonly tenant_id?: string | undefined;
  readonly status?: EventStatus | undefined;
  readonly event_name?: string | undefined;
  readonly correlation_key?: string | undefined;
  readonly producer_event_id?: string | undefined;
  /** Only events created after this time. */
  readonly created_after?: string | undefined;
  /** Only events created before this time. */
  readonly created_before?: string | undefined;
  /** Number of rows to skip. Default: 0. */
  readonly offset?: number | undefined;
  /** Maximum number of rows. Larger values are lowered to 1000. Default: 100. */
  readonly limit?: number | undefined;
  /**
   * Position after which the list continues. From the header x-next-cursor of the previous page;
   * instead of an offset.
   */
  readonly cursor?: string | undefined;
}

/** What `changes.list` can be asked. */
export interface ChangesListQuery {
  /** The header x-tenant-id overrides it. */
  readonly tenant_id?: string | undefined;
  /**
   * Position after which the list continues. Cursor of an earlier response; exclusive. Default:
   * the oldest entry.
   */
  readonly cursor?: string | undefined;
  /** Maximum number of rows. Larger values are lowered to 500. Default: 100. */
  readonly limit?: number | undefined;
}

/** What `changes.stream` can be asked. */
export interface ChangesStreamQuery {
  /** The header x-tenant-id overrides it. */
  readonly tenant_id?: string | undefined;
  /**
   * Position after which the list continues. Cursor of an earlier response; exclusive. Default:
   * now.
   */
  readonly cursor?: string | undefined;
}

/** What `search.list` can be asked. */
export interface SearchListQuery {
  /**
   * An id or at least its first 8 characters, an idempotency key, a value or its start, or a part
   * of the name of a sequence.
   */
  readonly q: string;
  /** The header x-tenant-id overrides it. Without any tenant only ids are searched. */
  readonly tenant_id?: string | undefined;
  readonly namespace?: string | undefined;
  /** Maximum number of rows. Default: 20. */
  readonly limit?: number | undefined;
}

/** What `instances.failures` can be asked. */
export interface InstancesFailuresQuery {
  /** The header x-tenant-id overrides it. */
  readonly tenant_id?: string | undefined;
  readonly namespace?: string | undefined;
  readonly sequence_name?: string | undefined;
  /** Only instances that failed after this time: the start of the period of counts, new and share. */
  readonly failed_after?: string | undefined;
  /** Only instances that failed before this time. */
  readonly failed_before?: string | undefined;
}

/** What `instances.failureAttributes` can be asked. */
export interface InstancesFailureAttributesQuery {
  /** The header x-tenant-id overrides it. */
  readonly tenant_id?: string | undefined;
  readonly namespace?: string | undefined;
  readonly sequence_name?: string | undefined;
  /** Only instances that failed after this time: the start of the period of counts, new and share. */
  readonly failed_after?: string | undefined;
  /** Only instances that failed before this time. */
  readonly failed_before?: string | undefined;
  readonly failure_code: string;
  readonly failure_reason: string;
  readonly failure_handler?: string | undefined;
}

/** What `queues.list` can be asked. */
export interface QueuesListQuery {
  /** The header x-tenant-id overrides it. */
  readonly tenant_id?: string | undefined;
  /** Workers seen within this time count as alive. Default: 60. */
  readonly alive_within_secs?: number | undefined;
}

/** What `queues.series` can be asked. */
export interface QueuesSeriesQuery {
  /** The header x-tenant-id overrides it. */
  readonly tenant_id?: string | undefined;
  readonly handler: string;
  /** Default: tasks without a queue. */
  readonly queue?: string | undefined;
  /** Default: an hour ago. At most seven days ago. */
  readonly since?: string | undefined;
  /** Length of an interval in seconds. Default: 60. */
  readonly step?: number | undefined;
}

/** What `activity.get` can be asked. */
export interface ActivityGetQuery {
  /** The header x-tenant-id overrides it. */
  readonly tenant_id?: string | undefined;
  /** Default: an hour ago. At most seven days ago. */
  readonly since?: string | undefined;
  /** Length of an interval in seconds. Default: 60. */
  readonly step?: number | undefined;
}

/** What `sequences.steps` can be asked. */
export interface SequencesStepsQuery {
  /** Default: an hour ago. At most seven days ago. */
  readonly since?: string | undefined;
  /**
   * Runs of all versions of the name. Open executions are always those of this version. Default:
   * false.
   */
  readonly all_versions?: boolean | undefined;
}

/** What `instances.slowest` can be asked. */
export interface InstancesSlowestQuery {
  /** The version. */
  readonly sequence_id: string;
  /** Id of a block of the version. Default: the whole instance. */
  readonly block?: string | undefined;
  /** Maximum number of rows. Default: 20. */
  readonly limit?: number | undefined;
}

/** What `releases.series` can be asked. */
export interface ReleasesSeriesQuery {
  /** Length of an interval in seconds. Default: a sixtieth of the time since the canary started. */
  readonly step?: number | undefined;
}
