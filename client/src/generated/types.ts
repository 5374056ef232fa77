/** The shapes of requests and answers. Written by `npm run generate`. */

/** Any value that JSON can hold. */
export type JsonValue = string | number | boolean | null | readonly JsonValue[] | JsonObject;

export interface JsonObject {
  readonly [name: string]: JsonValue;
}

/**
 * Runs one of its variants, chosen by the id of the instance and that of the block, in proportion
 * to the weights. Names differ, and some weight is above 0.
 */
export interface AbSplitBlock {
  /** The kind of the block: two words for one. */
  readonly type: 'ab_split' | 'a_b_split';
  /**
   * Unique in the sequence. Expressions find its output by it. Not __proto__, constructor,
   * prototype, . or ..
   */
  readonly id: string;
  /** An expression; the block is skipped when it does not hold. */
  readonly when?: string | null | undefined;
  /** How long the block may take; past it, all inside is cut off and it has failed. Milliseconds. */
  readonly timeout?: number | null | undefined;
  /** Of which one runs. */
  readonly variants: readonly SplitVariant[];
}

export interface AcceptHandoff {
  readonly tenant_id?: string | null | undefined;
  readonly destination_instance_id: string;
  /** Of an instance on another server: what its import answered. */
  readonly import_receipt?: ImportReceipt | null | undefined;
}

/** Instances created and ended in each interval. */
export interface Activity {
  /** ISO 8601. */
  readonly since: string;
  readonly step_secs: number;
  /** Oldest first, also those in which nothing happened. */
  readonly intervals: readonly ActivityInterval[];
  /** False: so much was noted that the oldest intervals lack some of it. */
  readonly complete: boolean;
}

export interface ActivityInterval {
  /** When it begins. */
  readonly at: string;
  readonly created: number;
  readonly completed: number;
  readonly failed: number;
  readonly cancelled: number;
  /** From creation to completion or failure, within a tenth; null when none of these ended. */
  readonly duration_p50_ms: number | null;
  readonly duration_p95_ms: number | null;
}

export interface AnswerApproval {
  /** One of the values of its choices. */
  readonly value: string;
  /** Only where allow_comment says so. An empty text stands for none. */
  readonly comment?: string | null | undefined;
  /**
   * A repetition with the same one is told of the first answer, and is no conflict. An empty text
   * stands for none.
   */
  readonly answer_id?: string | null | undefined;
}

export interface ApiKey {
  /** ak_ and 32 hexadecimal digits. */
  readonly id: string;
  readonly tenant_id: string;
  readonly name: string;
  readonly capabilities: readonly Capability[];
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

/** A step that waits for the answer of a person. */
export interface Approval {
  readonly id: string;
  readonly instance_id: string;
  readonly tenant_id: string;
  readonly namespace: string;
  readonly sequence_id: string;
  readonly sequence_name: string | null;
  readonly block_id: string;
  /** From the outermost block, as in orders[2]/charge. */
  readonly path: string;
  /** What is asked. */
  readonly prompt: string;
  readonly choices: readonly GateChoice[];
  /** The key of context.data for the value. */
  readonly store_as: string;
  readonly timeout_seconds: number | null;
  readonly escalation_handler: string | null;
  readonly allow_comment: boolean;
  /** ISO 8601. */
  readonly waiting_since: string;
  /** Null: it waits for ever. */
  readonly deadline: string | null;
  /** Of the instance. */
  readonly metadata: JsonObject;
}

/** What was taken. */
export interface ApprovalAnswered {
  readonly id: string;
  readonly instance_id: string;
  readonly block_id: string;
  readonly value: string;
  readonly comment: string | null;
  /** The name of the key, or the recipient of the link. */
  readonly answered_by: string | null;
  /** ISO 8601. */
  readonly answered_at: string;
  /** True: the answer with this answer_id was taken before. */
  readonly repeated: boolean;
}

export interface ApprovalLink {
  /** Whoever has it can answer, once. */
  readonly url: string;
  /** ISO 8601. */
  readonly expires_at: string;
}

export interface ApprovalPage {
  readonly items: readonly Approval[];
  /**
   * How many there are on all pages; at most 10000 are counted, among a bounded number of open
   * ones.
   */
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
  /** Of the move to failed. */
  readonly failure?: Failure;
  /** ISO 8601. */
  readonly created_at: string;
}

/** The action signal needs signal_type. */
export interface BatchAction {
  readonly filter: {
    readonly tenant_id?: string | null | undefined;
    readonly namespace?: string | null | undefined;
    readonly sequence_id?: string | null | undefined;
    /** Every version of the sequences with this name. */
    readonly sequence_name?: string | null | undefined;
    /** The same. */
    readonly sequence?: string | null | undefined;
    /** Of its sequence. */
    readonly sequence_version?: number | null | undefined;
    /** Those that this instance started. */
    readonly parent_instance_id?: string | null | undefined;
    /** These and no others, at most 1000. */
    readonly ids?: readonly string[] | null | undefined;
    /** Those with a step that waits for it: see /instances/{id}/explain. */
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
    /** Exclusive. */
    readonly created_after?: string | null | undefined;
    /** Exclusive. */
    readonly created_before?: string | null | undefined;
    /** Exclusive. */
    readonly updated_after?: string | null | undefined;
    /** Exclusive. */
    readonly updated_before?: string | null | undefined;
    /** A part of the message or code of its failure, in any case. */
    readonly failure?: string | null | undefined;
    /** The code of its failure. */
    readonly failure_code?: string | null | undefined;
    /** The block_id of its failure. */
    readonly failure_block?: string | null | undefined;
    /** The handler of its failure. */
    readonly failure_handler?: string | null | undefined;
    /** The reason as /instances/failures tells it. */
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
   * Also retry children whose parents have gone on without them: nobody takes what they come to.
   * Else they are skipped. Default: false.
   */
  readonly orphans?: boolean | null | undefined;
  /** Default: 1000. */
  readonly limit?: number | null | undefined;
}

export interface BatchActionResult {
  readonly matched: number;
  readonly applied: number;
  readonly skipped: number;
  readonly failed: number;
  readonly dry_run: boolean;
  /** With dry_run: those that would be retried, and repeat effects outside by that; else 0. */
  readonly repeats_effects: number;
  /** The first of those that failed, with the reasons; absent: none did. */
  readonly refusals?: readonly ChangeRefusal[];
}

export interface BatchCreated {
  /** Accepted items. */
  readonly count: number;
  /** New ones among them. */
  readonly created: number;
}

/**
 * A block of a sequence. Blocks nest at most 64 levels deep; a sequence has at most 5000 of them,
 * each with an id of its own.
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

/** What a block left. attempt counts from 0. */
export interface BlockOutput {
  readonly id: string;
  readonly instance_id: string;
  readonly block_id: string;
  readonly output: JsonValue;
  readonly output_ref: string | null;
  readonly output_size: number;
  readonly attempt: number;
  /** The counters of the loops around it, as in 2.0. */
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
  /** At most 100; one more says how many are left out. */
  readonly warnings?: readonly {
    /** Such as blocks[2].branches[0][1].retry.initialBackoff. */
    readonly path: string;
    readonly message: string;
    /** What was probably meant. */
    readonly suggestion?: string;
  }[];
}

/** A change of many instances that goes on behind its answer. */
export interface BulkJob {
  readonly id: string;
  readonly tenant_id: string;
  readonly operation: 'state' | 'reschedule' | 'batch_action';
  /** The body that asked for it. */
  readonly request: JsonObject;
  readonly state: BulkJobState;
  /** Matches that were found so far: the sum of the next three. */
  readonly matched: number;
  /** How many were changed, or with dry_run would be. */
  readonly applied: number;
  /** Those that the change does not concern, or that are gone. */
  readonly skipped: number;
  /** Those whose change was refused. */
  readonly failed: number;
  /** With dry_run: those that would be retried, and repeat effects outside by that; else 0. */
  readonly repeats_effects: number;
  /** Why a job that failed did not go on. */
  readonly error: string | null;
  /** ISO 8601. */
  readonly created_at: string;
  /** ISO 8601. */
  readonly updated_at: string;
  /** ISO 8601. */
  readonly ended_at: string | null;
}

export type BulkJobState = 'running' | 'cancelling' | 'completed' | 'cancelled' | 'failed';

export interface BulkReschedule {
  readonly filter: {
    readonly tenant_id?: string | null | undefined;
    readonly namespace?: string | null | undefined;
    readonly sequence_id?: string | null | undefined;
    /** Every version of the sequences with this name. */
    readonly sequence_name?: string | null | undefined;
    /** The same. */
    readonly sequence?: string | null | undefined;
    /** Of its sequence. */
    readonly sequence_version?: number | null | undefined;
    /** Those that this instance started. */
    readonly parent_instance_id?: string | null | undefined;
    /** These and no others, at most 1000. */
    readonly ids?: readonly string[] | null | undefined;
    /** Those with a step that waits for it: see /instances/{id}/explain. */
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
    /** Exclusive. */
    readonly created_after?: string | null | undefined;
    /** Exclusive. */
    readonly created_before?: string | null | undefined;
    /** Exclusive. */
    readonly updated_after?: string | null | undefined;
    /** Exclusive. */
    readonly updated_before?: string | null | undefined;
    /** A part of the message or code of its failure, in any case. */
    readonly failure?: string | null | undefined;
    /** The code of its failure. */
    readonly failure_code?: string | null | undefined;
    /** The block_id of its failure. */
    readonly failure_block?: string | null | undefined;
    /** The handler of its failure. */
    readonly failure_handler?: string | null | undefined;
    /** The reason as /instances/failures tells it. */
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
    /** Every version of the sequences with this name. */
    readonly sequence_name?: string | null | undefined;
    /** The same. */
    readonly sequence?: string | null | undefined;
    /** Of its sequence. */
    readonly sequence_version?: number | null | undefined;
    /** Those that this instance started. */
    readonly parent_instance_id?: string | null | undefined;
    /** These and no others, at most 1000. */
    readonly ids?: readonly string[] | null | undefined;
    /** Those with a step that waits for it: see /instances/{id}/explain. */
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
    /** Exclusive. */
    readonly created_after?: string | null | undefined;
    /** Exclusive. */
    readonly created_before?: string | null | undefined;
    /** Exclusive. */
    readonly updated_after?: string | null | undefined;
    /** Exclusive. */
    readonly updated_before?: string | null | undefined;
    /** A part of the message or code of its failure, in any case. */
    readonly failure?: string | null | undefined;
    /** The code of its failure. */
    readonly failure_code?: string | null | undefined;
    /** The block_id of its failure. */
    readonly failure_block?: string | null | undefined;
    /** The handler of its failure. */
    readonly failure_handler?: string | null | undefined;
    /** The reason as /instances/failures tells it. */
    readonly failure_reason?: string | null | undefined;
    readonly metadata?: { readonly [name: string]: string } | null | undefined;
    readonly states?: readonly InstanceState[] | null | undefined;
  };
  readonly state: InstanceState;
  /** Only counts: nothing is changed. Default: false. */
  readonly dry_run?: boolean | null | undefined;
  /**
   * Also retry children whose parents have gone on without them: nobody takes what they come to.
   * Else they are skipped. Default: false.
   */
  readonly orphans?: boolean | null | undefined;
}

export interface BulkUpdated {
  /** How many were changed, or with dry_run would be. */
  readonly count: number;
  /** The same as count, for older clients; 0 with dry_run. */
  readonly updated: number;
  readonly dry_run?: true;
  /**
   * Absent: 0. With dry_run: those that would be retried, and repeat effects outside by that;
   * else 0.
   */
  readonly repeats_effects?: number;
}

/** A step that runs in the server after an instance was cancelled. */
export interface CancelHook {
  /** The kind of the block. */
  readonly type: 'step';
  /**
   * Unique in the sequence. Expressions find its output by it. Not __proto__, constructor,
   * prototype, . or ..
   */
  readonly id: string;
  /** An expression; the block is skipped when it does not hold. */
  readonly when?: string | null | undefined;
  /** How long it may take; no more than 30000, the default. Milliseconds. */
  readonly timeout?: number | null | undefined;
  /** A built-in handler: hooks have no tasks for workers. */
  readonly handler: 'noop' | 'log' | 'sleep' | 'http_request' | 'fail' | 'transform' | 'assert';
  /**
   * The parameters of the handler; what a built-in one always refuses is 400. noop: none. log:
   * message, level (debug, info, warn). sleep: duration_ms (default 100). wait_for_event: name
   * (required), key, timeout_ms, schema. http_request: url (required), method (GET, POST, PUT,
   * PATCH, DELETE, HEAD), headers, body, timeout_ms (default 10000). fail: message, retryable.
   * transform: anything. assert: condition (required), message.
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

/** Runs its blocks one after the other, and the signal cancel lets them end first. */
export interface CancellationScopeBlock {
  /** The kind of the block. */
  readonly type: 'cancellation_scope';
  /**
   * Unique in the sequence. Expressions find its output by it. Not __proto__, constructor,
   * prototype, . or ..
   */
  readonly id: string;
  /** An expression; the block is skipped when it does not hold. */
  readonly when?: string | null | undefined;
  /** How long the block may take; past it, all inside is cut off and it has failed. Milliseconds. */
  readonly timeout?: number | null | undefined;
  /** What runs. */
  readonly blocks: readonly Block[];
}

/** Its end was asked for, or its time is over; protected work goes on, and then it ends. */
export interface Cancelling {
  /** ISO 8601. */
  readonly since: string;
  readonly reason: 'cancel' | 'timeout';
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
  | 'secrets';

/** Says what was sealed, for whom and until when; signed by who sealed it. */
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
  /** And of its schema. */
  readonly name: string;
  readonly state: 'open' | 'closed' | 'draining';
  /** Without a password. */
  readonly database_url: string;
  /** Where proxies find its engines. */
  readonly addresses: readonly string[];
  readonly engines: readonly CellEngine[];
  /** That are settled there. */
  readonly tenants: number;
  /** From it or to it. */
  readonly moves_under_way: number;
  /** ISO 8601. */
  readonly created_at: string;
}

/** As the engine last said of itself. */
export interface CellEngine {
  readonly address: string;
  readonly role: 'owner' | 'standby';
  readonly version: string;
  /** How long its writer takes for what is not committed yet; null: it does not write. */
  readonly lag_ms: number | null;
  /** ISO 8601. */
  readonly seen_at: string;
  /** It has said nothing for 15 seconds: it is taken for gone. */
  readonly is_silent: boolean;
}

export interface Cells {
  /** Without one there are no cells to list. */
  readonly cluster: boolean;
  /** The cell of the engine that answers. */
  readonly own: string;
  readonly cells: readonly Cell[];
}

export interface ChangeRefusal {
  readonly instance_id: string;
  /** As the answer to a change of this instance alone says it. */
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

/** A checkpoint at one of the epochs of its instance. */
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

/** Whatever looks like a secret is [REDACTED] in the difference, and as it is in the data. */
export interface CheckpointBoundaryDetail {
  readonly boundary: CheckpointBoundary;
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

/** The output is stored, and its top-level keys are merged into context.data. */
export interface CompleteTask {
  /** That of the claim. */
  readonly worker_id: string;
  readonly output: object;
  /** That of the claim; asked for by some deployments. */
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
  readonly output: object;
  /** That of the claim; asked for by some deployments. */
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

/** The portable identity of an instance. Its epoch grows with each change of owner or version. */
export interface ContinuityExecution {
  readonly continuity_id: string;
  readonly tenant_id: string;
  readonly current_instance_id: string;
  readonly owner_runtime_id: string;
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

/** All are created, or none. */
export interface CreateBatch {
  readonly instances: readonly CreateInstance[];
}

export interface CreateCredential {
  /**
   * The same as in the header x-tenant-id when that is sent. Not . or .., and without spaces and
   * tabs around it.
   */
  readonly tenant_id?: string | null | undefined;
  /**
   * The name when absent. By which templates name it: {{secrets.id}}. Letters, digits, dots, _
   * and -. Not . or ..
   */
  readonly id?: string | null | undefined;
  /** The id when absent. */
  readonly name?: string | null | undefined;
  /**
   * The secret: a text, at most 262144 bytes. Of one that is a JSON object, templates may name a
   * member: {{secrets.id.member}}. No answer ever has it. Not [REDACTED].
   */
  readonly value: string;
  /** For people; nothing follows from it. Default: "api_key". */
  readonly kind?: CredentialKind | null | undefined;
  readonly description?: string | null | undefined;
  /** From then on it is as if it did not exist. */
  readonly expires_at?: string | null | undefined;
  /** Kept for those who renew it, with oauth2 only. A public address. */
  readonly refresh_url?: string | null | undefined;
  /** Kept like the value, and as secret. Not [REDACTED]. */
  readonly refresh_token?: string | null | undefined;
}

export interface CreateExecution {
  readonly tenant_id?: string | null | undefined;
  readonly instance_id: string;
  readonly runtime_id: string;
}

/** Everything as it was previewed. policy and classification are other spellings. */
export interface CreateHandoff {
  readonly tenant_id?: string | null | undefined;
  readonly requirements?: Requirements | null | undefined;
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
 * Of a creation, alone or in a batch. Exactly one of sequence_id and sequence; version goes with
 * sequence.
 */
export interface CreateInstance {
  /**
   * Of this version, from which a release may lead to another one. Exactly one of sequence_id and
   * sequence must be there.
   */
  readonly sequence_id?: string | null | undefined;
  /** The name of a sequence of the namespace, in place of sequence_id. */
  readonly sequence?: string | null | undefined;
  /**
   * With sequence: pins this version of it, from which no release leads elsewhere. When absent:
   * the newest that is not deprecated, not on hold, and that no release holds back.
   */
  readonly version?: number | null | undefined;
  /**
   * The same as in the header x-tenant-id when that is sent. Not . or .., and without spaces and
   * tabs around it. The client's own when absent.
   */
  readonly tenant_id?: string | undefined;
  /** The client's own when absent. */
  readonly namespace?: string | undefined;
  /** Any case is accepted. Default: "normal". */
  readonly priority?: 'low' | 'normal' | 'high' | 'critical' | null | undefined;
  /** IANA time zone, such as Europe/Berlin. Default: "UTC". */
  readonly timezone?: string | null | undefined;
  readonly metadata?: object | null | undefined;
  /** At most 256 KiB as JSON, unless the deployment sets another limit. */
  readonly context?:
    | {
        readonly data?: object | null | undefined;
        readonly config?: object | null | undefined;
      }
    | null
    | undefined;
  /** When to start; now when absent. */
  readonly next_fire_at?: string | null | undefined;
  /**
   * How long it may take from its first step on, pauses not counted; past it, it fails.
   * Milliseconds.
   */
  readonly timeout?: number | null | undefined;
  /** Instances of the tenant with this key share their slots. */
  readonly concurrency_key?: string | null | undefined;
  /** How many of them run at once. */
  readonly max_concurrency?: number | null | undefined;
  /**
   * When an instance of the tenant has it, the answer names that one with deduplicated true. An
   * empty text stands for none.
   */
  readonly idempotency_key?: string | null | undefined;
  /** Default: false. */
  readonly dry_run?: boolean | null | undefined;
  /** Of a dry run: whoever is asked gives the first choice, at once. Default: false. */
  readonly dry_run_auto_approve?: boolean | null | undefined;
  /** Not supported. */
  readonly budget?: false | null | undefined;
}

/** Baseline and candidate are versions of one name in one namespace. */
export interface CreateRelease {
  /** The same as in the header x-tenant-id when that is sent. */
  readonly tenant_id?: string | null | undefined;
  readonly baseline_sequence_id: string;
  readonly candidate_sequence_id: string;
  /** Default: []. */
  readonly gates?: readonly Gate[] | null | undefined;
  /**
   * Neither moves a running instance: with operator_decision an operator migrates them
   * explicitly. Default: "pin".
   */
  readonly in_flight_policy?: 'pin' | 'operator_decision' | null | undefined;
}

/**
 * A schedule that creates an instance of the sequence at each of its instants. Exactly one of
 * sequence_id and sequence; version goes with sequence.
 */
export interface CreateSchedule {
  /** Not . or .., and without spaces and tabs around it. The client's own when absent. */
  readonly tenant_id?: string | undefined;
  /** The client's own when absent. */
  readonly namespace?: string | undefined;
  /**
   * Of this version, from which a release may lead to another one. Exactly one of sequence_id and
   * sequence must be there.
   */
  readonly sequence_id?: string | null | undefined;
  /** The name of a sequence of the namespace, in place of sequence_id. */
  readonly sequence?: string | null | undefined;
  /**
   * With sequence: pins this version of it, from which no release leads elsewhere. When absent:
   * the newest that is not deprecated, not on hold, and that no release holds back.
   */
  readonly version?: number | null | undefined;
  /**
   * Seven fields: second minute hour day month day_of_week year. Six (without year), five
   * (without second and year), ? and @hourly, @daily, @weekly, @monthly, @yearly are taken too.
   */
  readonly cron_expr: string;
  /** IANA time zone, such as Europe/Berlin. Default: "UTC". */
  readonly timezone?: string | null | undefined;
  /** Copied to the instances that it creates. */
  readonly metadata?: object | null | undefined;
  /** What its instances begin with; the input_schema must accept its data. */
  readonly context?:
    | {
        readonly data?: object | null | undefined;
        readonly config?: object | null | undefined;
      }
    | null
    | undefined;
  /**
   * How long it may take from its first step on, pauses not counted; past it, it fails.
   * Milliseconds.
   */
  readonly timeout?: number | null | undefined;
  /** Any case is accepted. Default: "normal". */
  readonly priority?: 'low' | 'normal' | 'high' | 'critical' | null | undefined;
  /** Default: true. */
  readonly enabled?: boolean | null | undefined;
  /** What a fire does while an earlier run has not ended. Default: "allow". */
  readonly overlap_policy?: OverlapPolicy | null | undefined;
}

/** A definition; immutable once stored. */
export interface CreateSequence {
  /** Made by the server when absent. */
  readonly id?: string | null | undefined;
  /**
   * Must be there, may be blank when the header x-tenant-id is sent; else both must be the same.
   * Not . or .., and without spaces and tabs around it. The client's own when absent.
   */
  readonly tenant_id?: string | undefined;
  /** The client's own when absent. */
  readonly namespace?: string | undefined;
  readonly name: string;
  /** Unique together with tenant, namespace and name. */
  readonly version: number;
  /** At most 5000 blocks in all, nested at most 64 levels deep. */
  readonly blocks: readonly Block[];
  /** Default: false. */
  readonly deprecated?: boolean | null | undefined;
  /**
   * No name leads to it: only its id, or its name with version, until the hold is lifted or a
   * release promotes it. Default: false.
   */
  readonly hold?: boolean | null | undefined;
  /** Default: "production". */
  readonly status?: SequenceStatus | null | undefined;
  /**
   * What context.data of a new instance must conform to, else 422. JSON Schema 2020-12 without
   * pattern, patternProperties and recursive references. At most 65536 bytes, and with references
   * followed 5000 values, 1000 schemas, keywords and listed names, and 100 schemas within one
   * another.
   */
  readonly input_schema?: object | null | undefined;
  /** ISO 8601. */
  readonly created_at?: string | null | undefined;
  /**
   * What runs in the server after an instance has failed, one after the other, whatever each
   * comes to.
   */
  readonly on_failure?: readonly FailureHook[] | null | undefined;
  /**
   * What runs in the server after an instance was cancelled, one after the other, whatever each
   * comes to.
   */
  readonly on_cancel?: readonly CancelHook[] | null | undefined;
  /** Not supported. */
  readonly interceptors?: false | null | undefined;
  /** Not supported. */
  readonly sla?: false | null | undefined;
}

export interface CreateSubscription {
  /**
   * The same as in the header x-tenant-id when that is sent. Not . or .., and without spaces and
   * tabs around it.
   */
  readonly tenant_id?: string | null | undefined;
  /** http or https, without credentials; a public address unless the deployment says else. */
  readonly url: string;
  /** All that there are when absent. */
  readonly events?: readonly WebhookEventType[] | null | undefined;
  /** Made by the server when absent. What its webhooks are signed with. Not [REDACTED]. */
  readonly secret?: string | null | undefined;
}

export interface CreateTrigger {
  /** Part of the address, unique on the server: letters, digits, dots, _, ~ and -. Not . or .. */
  readonly slug: string;
  /**
   * The same as in the header x-tenant-id when that is sent. Not . or .., and without spaces and
   * tabs around it. The client's own when absent.
   */
  readonly tenant_id?: string | undefined;
  /** Looked up at each fire. */
  readonly sequence_name: string;
  /** Pins this version. When absent: as a creation by name chooses one. */
  readonly version?: number | null | undefined;
  /** Default: "default". */
  readonly namespace?: string | null | undefined;
  /**
   * webhook: by a signed request to /webhooks/{slug}. event: by every event with a name. Default:
   * "webhook".
   */
  readonly trigger_type?: TriggerType | null | undefined;
  /** What callers prove themselves with. No answer ever has it. Not [REDACTED]. */
  readonly secret?: string | null | undefined;
  /** Of an event trigger: event_name, and correlation_key if only events with that key start it. */
  readonly config?: object | null | undefined;
  /** Default: true. */
  readonly enabled?: boolean | null | undefined;
}

/** Without what is secret in it. */
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
  /** What a fire does while an earlier run has not ended. */
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

/** Waits before the first try. */
export interface Delay {
  /** How long to wait. Milliseconds. */
  readonly duration?: number | null | undefined;
  /** Waits until this time: YYYY-MM-DDTHH:MM:SS. Not together with a duration. */
  readonly fire_at_local?: string | null | undefined;
  /** Of fire_at_local; else the zone of the instance. IANA time zone, such as Europe/Berlin. */
  readonly timezone?: string | null | undefined;
  /**
   * Saturdays, Sundays and holidays move the end of the wait to the next business day. Default:
   * false.
   */
  readonly business_days_only?: boolean | null | undefined;
  /** The end of the wait is moved by a random time, by at most this much either way. Milliseconds. */
  readonly jitter?: number | null | undefined;
  /** Days that are no business days, beside those in context.config.holidays. */
  readonly holidays?: readonly string[] | null | undefined;
}

export interface DeliveryAttempt {
  readonly id: string;
  readonly delivery_id: string;
  readonly url: string;
  readonly event_type: WebhookEventType;
  readonly instance_id?: string;
  /** Counts from 1. */
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
    | 'hooks_changed';
  readonly severity: Severity;
  readonly block_id?: string;
  readonly summary: string;
}

/** A run that went another way with the candidate. */
export interface Divergence {
  readonly instance_id: string;
  readonly recorded_state: InstanceState;
  readonly replayed_state: InstanceState;
  readonly blocks_added: readonly string[];
  readonly blocks_removed: readonly string[];
  /** Steps that ask for something else than was recorded; left out without any. */
  readonly calls_changed?: readonly ChangedCall[];
}

/**
 * What a try of a step did outside: prepared while nobody has it, dispatched while somebody is at
 * it, then committed, failed where that is known, or unknown.
 */
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

/** How many instances of a version ended, and how. */
export interface EndedCounts {
  readonly total: number;
  readonly completed: number;
  readonly failed: number;
  readonly cancelled: number;
}

/**
 * Ended instances since the canary began, and what the gates say of them. baseline_history: the
 * newest runs of the baseline before the canary, for gates that have too few since then.
 */
export interface EvaluationReport {
  readonly baseline: EndedCounts;
  readonly baseline_history?: EndedCounts;
  readonly candidate: EndedCounts;
  readonly gates: readonly GateJudgement[];
  readonly auto_rolled_back: boolean;
  readonly release_state: ReleaseState;
}

export interface EventDetails {
  readonly id: string;
  readonly tenant_id: string;
  readonly event_name: string;
  readonly producer_event_id: string;
  readonly correlation_key: string | null;
  /** What looks like a secret is not shown. */
  readonly payload: JsonValue;
  readonly status: EventStatus;
  /** How many steps it was for. */
  readonly matched: number;
  /** ISO 8601. */
  readonly created_at: string;
  /** Until then it is kept for a step that waits for it. */
  readonly expires_at: string;
  /** ISO 8601. */
  readonly consumed_at: string | null;
  /** The first ones that are still there. */
  readonly taken_by: readonly EventTaker[];
}

/** What became of an event when it came. */
export interface EventReceipt {
  readonly event_id: string;
  /** An event with this producer_event_id came before; the receipt is about that one. */
  readonly duplicate: boolean;
  /** The first wait that it is for. */
  readonly matched_wait?: string;
  /** Some step waited for it. */
  readonly satisfied: boolean;
  /** How many steps did. */
  readonly matched: number;
  /** How many triggers it fires; absent: none, or it came before. */
  readonly triggers?: number;
}

export interface EventReceipts {
  /** In the order of the events. */
  readonly outcomes: readonly EventReceipt[];
}

export type EventStatus = 'pending' | 'consumed' | 'expired';

export interface EventTaker {
  readonly instance_id: string;
  readonly block_id: string;
  /** refused: the payload was none for the step, which went on waiting. */
  readonly outcome: 'taken' | 'refused';
  /** ISO 8601. */
  readonly taken_at: string;
}

/** What came of earlier tasks, and a poll for new ones; either may be absent. */
export interface ExchangeTasks {
  readonly worker_id: string;
  readonly version?: string | null | undefined;
  /** Each is judged for itself, in this order. */
  readonly results?: readonly TaskResult[] | null | undefined;
  /**
   * Tasks of any of the handlers, by priority of their instances, then age. At most 100 pairs of
   * a handler and a queue.
   */
  readonly poll?:
    | {
        readonly handlers: readonly string[];
        /** Only tasks of these queues; absent: of every queue and none. */
        readonly queues?: readonly string[] | null | undefined;
        /** 0 gives none. Larger values are lowered to 1000. Default: 1. */
        readonly limit?: number | null | undefined;
        /**
         * How long to wait for a task when there is none. A result that is refused ends the wait.
         * Larger values are lowered to 60000. Default: 0.
         */
        readonly wait_ms?: number | null | undefined;
      }
    | null
    | undefined;
  /**
   * The worker stops: its polls that wait are answered at once, with what they have. Default:
   * false.
   */
  readonly end_polls?: boolean | null | undefined;
}

export interface ExplanationWarning {
  /** An output was too large: expressions see a note instead. */
  readonly kind: 'output_truncated';
  readonly block_id: string;
  readonly summary: string;
}

export interface ExportHandoff {
  readonly tenant_id?: string | null | undefined;
  /** Those of the placement decision. */
  readonly requirements?: Requirements | null | undefined;
  /** Default: 300. */
  readonly expires_in_seconds?: number | null | undefined;
  /**
   * 32 bytes that the destination made for this once; without it only a server with the same
   * encryption key opens the capsule.
   */
  readonly payload_key_base64?: string | null | undefined;
  /** First save a checkpoint of the live state. Default: false. */
  readonly capture_checkpoint?: boolean | null | undefined;
}

export interface FailTask {
  /** That of the claim. */
  readonly worker_id: string;
  readonly message: string;
  /** Default: false. */
  readonly retryable?: boolean | null | undefined;
  /** That of the claim; asked for by some deployments. */
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
  /** That of the claim; asked for by some deployments. */
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

/** Why it failed. block_id, path, handler and attempt are null when no block was the reason. */
export interface Failure {
  /** The block that failed, not those around it. */
  readonly block_id: string | null;
  /** From the outermost block, as in orders[2]/charge. */
  readonly path: string | null;
  /** Of a step. */
  readonly handler: string | null;
  /** Of a step: the try, from 0. */
  readonly attempt: number | null;
  readonly code: FailureCode;
  readonly message: string;
  /** ISO 8601. */
  readonly at: string;
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
 * Instances that failed for the same reason. Lists and changes of many select just these by
 * sequence_id, failure_code, failure_block, failure_handler and failure_reason.
 */
export interface FailureGroup {
  readonly namespace: string;
  readonly sequence_id: string;
  readonly sequence_name: string;
  readonly version: number;
  readonly block_id: string | null;
  readonly handler: string | null;
  /** As in the failure of an instance. */
  readonly code: string;
  /** The message, with # for numbers and ids, and "…" for what is quoted. */
  readonly reason: string;
  readonly count: number;
  /** ISO 8601. */
  readonly first_at: string;
  /** ISO 8601. */
  readonly last_at: string;
  /** The newest. */
  readonly example_instance_id: string;
  readonly example_message: string;
}

export interface FailureGroups {
  /** The largest first, at most 200. */
  readonly groups: readonly FailureGroup[];
  /** The newest failed instances, at most 10000. */
  readonly looked_at: number;
  /** Whether there are no more failed instances, and no more groups. */
  readonly complete: boolean;
}

/** A step that runs in the server after an instance has failed. */
export interface FailureHook {
  /** The kind of the block. */
  readonly type: 'step';
  /**
   * Unique in the sequence. Expressions find its output by it. Not __proto__, constructor,
   * prototype, . or ..
   */
  readonly id: string;
  /** An expression; the block is skipped when it does not hold. */
  readonly when?: string | null | undefined;
  /** How long it may take; no more than 30000, the default. Milliseconds. */
  readonly timeout?: number | null | undefined;
  /** A built-in handler: hooks have no tasks for workers. */
  readonly handler: 'noop' | 'log' | 'sleep' | 'http_request' | 'fail' | 'transform' | 'assert';
  /**
   * The parameters of the handler; what a built-in one always refuses is 400. noop: none. log:
   * message, level (debug, info, warn). sleep: duration_ms (default 100). wait_for_event: name
   * (required), key, timeout_ms, schema. http_request: url (required), method (GET, POST, PUT,
   * PATCH, DELETE, HEAD), headers, body, timeout_ms (default 10000). fail: message, retryable.
   * transform: anything. assert: condition (required), message.
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

/** What keeps some of them where they are. */
export interface FindingOfMany {
  readonly code: string;
  /** Instances. */
  readonly count: number;
  /** Of the first one. */
  readonly summary: string;
  readonly remedy: string;
  readonly example_ids: readonly string[];
}

/** Runs its body for each item of an array of context.data. */
export interface ForEachBlock {
  /** The kind of the block. */
  readonly type: 'for_each';
  /**
   * Unique in the sequence. Expressions find its output by it. Not __proto__, constructor,
   * prototype, . or ..
   */
  readonly id: string;
  /** An expression; the block is skipped when it does not hold. */
  readonly when?: string | null | undefined;
  /** How long the block may take; past it, all inside is cut off and it has failed. Milliseconds. */
  readonly timeout?: number | null | undefined;
  /** A path in context.data, or a template, of an array. Missing or empty: nothing runs. */
  readonly collection: string;
  /**
   * The key of context.data under which the body sees the item. Not __proto__, constructor or
   * prototype. Default: "item".
   */
  readonly item_var?: string | null | undefined;
  /** What runs for each item. */
  readonly body: readonly Block[];
  /**
   * The key of context.data under which the body sees the number of the item, counted from 0. Not
   * __proto__, constructor or prototype.
   */
  readonly index_var?: string | null | undefined;
  /** How many items run at once. Default: 1. */
  readonly concurrency?: number | null | undefined;
  /** A longer collection fails the block before its first item. Default: 1000. */
  readonly max_iterations?: number | null | undefined;
}

export interface ForkInstance {
  readonly from_block_id: string;
  /** For context.data, before anything runs. */
  readonly context?: object | null | undefined;
  /** merge: member by member; replace: in place of all data. Default: "merge". */
  readonly context_mode?: 'merge' | 'replace' | null | undefined;
  /** Default: true. */
  readonly dry_run?: boolean | null | undefined;
  readonly signals?: readonly SendSignal[] | null | undefined;
}

/**
 * Judged once both versions have min_sample ended instances: it fails when the rate of the
 * candidate is above that of the baseline by more than max_regression.
 */
export interface Gate {
  /** error_rate: failed among all that ended; cancel_rate: cancelled among them. */
  readonly metric: 'error_rate' | 'cancel_rate';
  /** By how much the rate of the candidate may exceed that of the baseline, 0 to 1. */
  readonly max_regression: number;
  /** How many ended instances each version needs for a verdict. */
  readonly min_sample: number;
}

export interface GateChoice {
  /** What the person reads. */
  readonly label: string;
  /** What the answer is then. */
  readonly value: string;
}

/** What a gate says of both versions. */
export interface GateJudgement {
  readonly gate: Gate;
  readonly baseline_rate?: number;
  readonly candidate_rate?: number;
  readonly verdict: 'pass' | 'fail' | 'inconclusive';
}

/**
 * Ended instances since the canary began, and what the gates say of them now. baseline_history:
 * the newest runs of the baseline before the canary, for gates that have too few since then.
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

/**
 * Holds as long as nothing of what it was computed from changes: the execution, its effects, what
 * the destination offers, and the policy. Other runtimes, and a registration with the same facts,
 * stale nothing.
 */
export interface HandoffPreview {
  readonly continuity_id: string;
  readonly source_runtime_id: string;
  readonly destination_runtime_id: string;
  readonly compatible: boolean;
  readonly findings: readonly {
    readonly code: string;
    readonly status: 'pass' | 'fail' | 'unknown';
    readonly summary: string;
    /** What would change that, where the execution itself is in the way. */
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

/**
 * A checkpoint needs the checkpoint_seq that the last answer gave. A checkpoint needs
 * checkpoint_seq.
 */
export interface HeartbeatTask {
  /** That of the claim. */
  readonly worker_id: string;
  /** That of the claim; asked for by some deployments. */
  readonly claim_epoch?: number | null | undefined;
  readonly checkpoint_seq?: number | null | undefined;
  readonly checkpoint?: object | null | undefined;
  /** Gives the claim back: the task waits for a worker again, at once. Default: false. */
  readonly release?: boolean | null | undefined;
}

/** A checkpoint needs checkpoint_seq. */
export interface HeartbeatTaskResult {
  readonly kind: 'heartbeat';
  readonly task_id: string;
  /** That of the claim; asked for by some deployments. */
  readonly claim_epoch?: number | null | undefined;
  readonly checkpoint_seq?: number | null | undefined;
  readonly checkpoint?: object | null | undefined;
  /** Gives the claim back: the task waits for a worker again, at once. Default: false. */
  readonly release?: boolean | null | undefined;
}

export interface ImportCapsule {
  readonly tenant_id?: string | null | undefined;
  readonly destination_runtime_id: string;
  readonly expected_epoch: number;
  /** Made by the server when absent. */
  readonly destination_instance_id?: string | null | undefined;
  readonly capsule: Capsule;
  /** When absent, what this server sealed itself is taken. */
  readonly payload_base64?: string | null | undefined;
  readonly payload_key_base64?: string | null | undefined;
}

/** A signed statement: this server holds the instance of the capsule. */
export interface ImportReceipt {
  /** Canonical JSON of what is stated. */
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
  readonly cell: string;
  readonly cluster: boolean;
  readonly env_label: string | null;
  readonly env_color: string | null;
  readonly encryption_key?: string;
}

export interface InjectBlocks {
  /** At most 1 MiB as JSON over all injections of an instance. */
  readonly blocks: readonly Block[];
  readonly position?: number | null | undefined;
}

/** Of data, config and audit together 256 KiB at most, unless set otherwise. */
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

export interface InstanceCreated {
  readonly id: string;
  /** True: the id is that of an instance that was there already. */
  readonly deduplicated: boolean;
}

export interface InstanceExplanation {
  readonly id: string;
  readonly sequence_id: string;
  readonly state: InstanceState;
  /** Of the state. */
  readonly since: string;
  /** What it is doing, in a sentence for people. */
  readonly summary: string;
  readonly waiting_for: readonly Wait[];
  /** Of all that it waits for. */
  readonly waiting_count: number;
  readonly failure: Failure | null;
  readonly cancelling?: Cancelling;
  /** Whose sub_sequence started it; absent: it stands for itself. */
  readonly parent_instance_id?: string;
  readonly next: readonly NextAction[];
  /** What may make it do something else than was meant; absent: nothing. */
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

/** What became of the instances that this call has looked at. */
export interface InstancesMigrated {
  /** All of them. */
  readonly count: number;
  /** Those that could go over. */
  readonly automatic: number;
  /** Those that did: none in a dry run. */
  readonly migrated: number;
  /** Those that go over when they are approved. */
  readonly approval_required: number;
  readonly pinned: number;
  readonly incompatible: number;
  /** Refused for another reason, such as a step at work: ask again. */
  readonly failed: number;
  readonly findings: readonly FindingOfMany[];
  /** Of those that did, in no order. */
  readonly migrations: readonly MigrationOfMany[];
  /** False: there are more, behind next_cursor. */
  readonly done: boolean;
  readonly next_cursor: string | null;
  readonly dry_run: boolean;
}

/** Of a for_each that is open. */
export interface ItemCounts {
  readonly total: number;
  readonly running: number;
  readonly ended: number;
}

export interface KeyMinted {
  /** ak_ and 32 hexadecimal digits. */
  readonly id: string;
  readonly tenant_id: string;
  readonly name: string;
  readonly capabilities: readonly Capability[];
  /** sk_ and 64 hexadecimal digits; shown this once. */
  readonly secret: string;
  /** ISO 8601. */
  readonly created_at: string;
  /** ISO 8601. */
  readonly expires_at: string | null;
}

/** Where data of a classification may go; all rules of it hold together. */
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

/** Repeats its body while the condition holds. */
export interface LoopBlock {
  /** The kind of the block. */
  readonly type: 'loop';
  /**
   * Unique in the sequence. Expressions find its output by it. Not __proto__, constructor,
   * prototype, . or ..
   */
  readonly id: string;
  /** An expression; the block is skipped when it does not hold. */
  readonly when?: string | null | undefined;
  /** How long the block may take; past it, all inside is cut off and it has failed. Milliseconds. */
  readonly timeout?: number | null | undefined;
  /** Asked before each iteration; the loop ends when it does not hold. */
  readonly condition: string;
  /** What is repeated. */
  readonly body: readonly Block[];
  /** The loop ends, successfully, after this many. Default: 1000. */
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
  /** The link answers this and nothing else. One of the values of its choices. */
  readonly value?: string | null | undefined;
  /** Whom the link is for: noted as who answered. */
  readonly recipient?: string | null | undefined;
}

export interface MigrateInstance {
  readonly instance_id: string;
  readonly target_sequence_id: string;
}

/** version or sequence_id must be there; with both, the sequence has that version. */
export interface MigrateInstances {
  /** Of the same sequence. */
  readonly version?: number | null | undefined;
  /** The version that it goes over to. */
  readonly sequence_id?: string | null | undefined;
  /** The same as sequence_id. */
  readonly to_sequence_id?: string | null | undefined;
  /** The same as sequence_id. */
  readonly target_sequence_id?: string | null | undefined;
  readonly filter?:
    | {
        readonly tenant_id?: string | null | undefined;
        readonly namespace?: string | null | undefined;
        readonly sequence_id?: string | null | undefined;
        /** Every version of the sequences with this name. */
        readonly sequence_name?: string | null | undefined;
        /** The same. */
        readonly sequence?: string | null | undefined;
        /** Of its sequence. */
        readonly sequence_version?: number | null | undefined;
        /** Those that this instance started. */
        readonly parent_instance_id?: string | null | undefined;
        /** These and no others, at most 1000. */
        readonly ids?: readonly string[] | null | undefined;
        /** Those with a step that waits for it: see /instances/{id}/explain. */
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
        /** Exclusive. */
        readonly created_after?: string | null | undefined;
        /** Exclusive. */
        readonly created_before?: string | null | undefined;
        /** Exclusive. */
        readonly updated_after?: string | null | undefined;
        /** Exclusive. */
        readonly updated_before?: string | null | undefined;
        /** A part of the message or code of its failure, in any case. */
        readonly failure?: string | null | undefined;
        /** The code of its failure. */
        readonly failure_code?: string | null | undefined;
        /** The block_id of its failure. */
        readonly failure_block?: string | null | undefined;
        /** The handler of its failure. */
        readonly failure_handler?: string | null | undefined;
        /** The reason as /instances/failures tells it. */
        readonly failure_reason?: string | null | undefined;
        readonly metadata?: { readonly [name: string]: string } | null | undefined;
        readonly states?: readonly InstanceState[] | null | undefined;
      }
    | null
    | undefined;
  /** Also where the verdict is approval_required. Default: false. */
  readonly approved?: boolean | null | undefined;
  /** Only judges: nothing is changed. Default: false. */
  readonly dry_run?: boolean | null | undefined;
  /** Instances that one call looks at. Default: 200. */
  readonly limit?: number | null | undefined;
  /** next_cursor of the call before. An empty text stands for none. */
  readonly cursor?: string | null | undefined;
}

/** version or sequence_id must be there; with both, the sequence has that version. */
export interface MigrateTo {
  readonly tenant_id?: string | null | undefined;
  /** Of the same sequence. */
  readonly version?: number | null | undefined;
  /** The version that it goes over to. */
  readonly sequence_id?: string | null | undefined;
  /** The same as sequence_id. */
  readonly to_sequence_id?: string | null | undefined;
  /** The same as sequence_id. */
  readonly target_sequence_id?: string | null | undefined;
  /** Default: []. */
  readonly transforms?: readonly Transform[] | null | undefined;
  /** Also where the verdict is approval_required. Default: false. */
  readonly approved?: boolean | null | undefined;
  /** At least 60 and at most 2,592,000; 86,400 by default. Default: 86400. */
  readonly rollback_retention_seconds?: number | null | undefined;
  /** Only judges: nothing is changed. Default: false. */
  readonly dry_run?: boolean | null | undefined;
}

/** migrated is false for a dry run, and where the instance has that version already. */
export interface MigratedInstance {
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
  /** Of the instance, which it keeps. */
  readonly state: InstanceState;
  /** What can be rolled back; null when nothing was migrated. */
  readonly migration_id: string | null;
  /** Null when it cannot be rolled back. */
  readonly rollback_expires_at: string | null;
  readonly dry_run?: true;
}

/** Something that keeps a migration from being automatic. */
export interface MigrationFinding {
  /** Those that are in finding_codes, and further ones. */
  readonly code: string;
  readonly block_id: string | null;
  /** With the passes of the loops around it. */
  readonly path: string | null;
  readonly summary: string;
  /** What would change that. */
  readonly remedy: string;
}

/** One that went over. */
export interface MigrationOfMany {
  readonly instance_id: string;
  /** What can be rolled back. */
  readonly migration_id: string;
}

/**
 * verdict, also named disposition: automatic may be applied, approval_required with approved
 * true, pin and incompatible never.
 */
export interface MigrationPlan {
  readonly id: string;
  readonly tenant_id: string;
  readonly continuity_id: string;
  readonly from_sequence_id: string;
  readonly from_version: number;
  readonly to_sequence_id: string;
  readonly to_version: number;
  readonly disposition: MigrationVerdict;
  readonly verdict: MigrationVerdict;
  readonly transforms: readonly Transform[];
  readonly finding_codes: readonly string[];
  /** What keeps it from being automatic, in words; empty where nothing does. */
  readonly findings: readonly MigrationFinding[];
  readonly rollback_capsule_required: boolean;
  /** ISO 8601. */
  readonly created_at: string;
}

/** A plan, and what became of it. */
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

export type MigrationVerdict = 'automatic' | 'approval_required' | 'pin' | 'incompatible';

export interface MintKey {
  /** Not . or .., and without spaces and tabs around it. */
  readonly tenant_id: string;
  /** Default: "". */
  readonly name?: string | null | undefined;
  readonly capabilities: readonly Capability[];
  /** ISO 8601. */
  readonly expires_at?: string | null | undefined;
}

/** A request that can be made now, and what it is good for. */
export interface NextAction {
  readonly action: string;
  readonly method: string;
  /** Behind the base address of the API. */
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

/** What a fire does while an earlier run has not ended. */
export type OverlapPolicy = 'allow' | 'skip' | 'buffer_one' | 'cancel_previous';

/** A signed statement: from this epoch on the destination owns the execution. */
export interface OwnershipGrant {
  /** Canonical JSON of what is stated. */
  readonly statement: string;
  readonly public_key: string;
  readonly signature: string;
}

/** Runs all branches, at most 256; fails if one of them fails. */
export interface ParallelBlock {
  /** The kind of the block. */
  readonly type: 'parallel';
  /**
   * Unique in the sequence. Expressions find its output by it. Not __proto__, constructor,
   * prototype, . or ..
   */
  readonly id: string;
  /** An expression; the block is skipped when it does not hold. */
  readonly when?: string | null | undefined;
  /** How long the block may take; past it, all inside is cut off and it has failed. Milliseconds. */
  readonly timeout?: number | null | undefined;
  /** Lists of blocks; all lists run. */
  readonly branches: readonly (readonly Block[])[];
}

/** Sections that are sent replace the stored ones; the others are kept. */
export interface PatchContext {
  readonly context: {
    readonly data?: object | null | undefined;
    readonly config?: object | null | undefined;
    readonly audit?: readonly unknown[] | null | undefined;
  };
  /**
   * The updated_at that was read: 409 when it was changed since. When absent: whatever is there
   * is changed.
   */
  readonly if_unchanged_since?: string | null | undefined;
}

export interface PatchState {
  readonly state: InstanceState;
  /** For a move to scheduled. When absent: now, or of a paused one when it would go on. */
  readonly next_fire_at?: string | null | undefined;
}

export interface PayloadArtifact {
  readonly key: string;
  readonly sha256: string;
  readonly bytes: number;
}

export interface PlaceExecution {
  readonly tenant_id?: string | null | undefined;
  readonly requirements?: Requirements | null | undefined;
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

/** What was found of every live runtime of the tenant. */
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

/** What a checkpoint of the source has is moved to where the target looks for it. */
export interface PlanMigration {
  readonly tenant_id?: string | null | undefined;
  readonly continuity_id: string;
  readonly to_sequence_id: string;
  /** That of to_sequence_id, else 404. */
  readonly to_version: number;
  /** Default: []. */
  readonly transforms?: readonly Transform[] | null | undefined;
  /** At least 60 and at most 2,592,000; 86,400 by default. Default: 86400. */
  readonly rollback_retention_seconds?: number | null | undefined;
  /**
   * First save a checkpoint of the live state. Without one, and with none saved, 409. First save
   * a checkpoint of the live state. Default: false.
   */
  readonly capture_checkpoint?: boolean | null | undefined;
}

export interface PollQueue {
  readonly handler_name: string;
  readonly worker_id: string;
  /** 0 gives none. Larger values are lowered to 1000. Default: 1. */
  readonly limit?: number | null | undefined;
  /**
   * How long to wait for a task when there is none. Larger values are lowered to 60000. Default:
   * 0.
   */
  readonly wait_ms?: number | null | undefined;
  readonly version?: string | null | undefined;
  readonly queue_name: string;
}

export interface PollTasks {
  readonly handler_name: string;
  readonly worker_id: string;
  /** 0 gives none. Larger values are lowered to 1000. Default: 1. */
  readonly limit?: number | null | undefined;
  /**
   * How long to wait for a task when there is none. Larger values are lowered to 60000. Default:
   * 0.
   */
  readonly wait_ms?: number | null | undefined;
  readonly version?: string | null | undefined;
}

export interface PreviewHandoff {
  readonly tenant_id?: string | null | undefined;
  readonly requirements?: Requirements | null | undefined;
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
   * Seven fields: second minute hour day month day_of_week year. Six (without year), five
   * (without second and year), ? and @hourly, @daily, @weekly, @monthly, @yearly are taken too.
   */
  readonly cron_expr: string;
  /** IANA time zone, such as Europe/Berlin. Default: "UTC". */
  readonly timezone?: string | null | undefined;
  /** Default: 5. */
  readonly count?: number | null | undefined;
  /** Fires after this instant. When absent: after now. */
  readonly from?: string | null | undefined;
}

export interface PreviewedFire {
  /** In UTC. */
  readonly at: string;
  /** The same instant as clocks in the zone show it, with their offset. */
  readonly local: string;
}

export type Priority = 'Low' | 'Normal' | 'High' | 'Critical';

export interface PromoteRelease {
  /** Noted in the decision; evidence that does not pass is refused all the same. Default: false. */
  readonly force?: boolean | null | undefined;
}

/** One decision; holds the hash of the entry before it. */
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

/** code says what is wrong with the first entry that is not right. */
export interface ProvenanceVerdict {
  readonly valid: boolean;
  readonly entries_checked: number;
  readonly first_invalid_index: number | null;
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
  /**
   * The updated_at that was read: 409 when it was changed since. When absent: whatever is there
   * is changed.
   */
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
  /**
   * The updated_at that was read: 409 when it was changed since. When absent: whatever is there
   * is changed.
   */
  readonly if_unchanged_since?: string | null | undefined;
}

/** The open tasks of a handler and a queue. */
export interface QueueInfo {
  readonly handler: string;
  /** Null: tasks without a queue. */
  readonly queue: string | null;
  readonly waiting: number;
  readonly claimed: number;
  /** ISO 8601. */
  readonly oldest_waiting_since: string | null;
  /** Those alive that poll for such tasks; with 0 of them nobody serves it. */
  readonly workers: number;
  /** Polls that wait for such a task now, and would be answered with it at once. */
  readonly open_polls: number;
}

export interface Queues {
  /** By handler and queue. */
  readonly queues: readonly QueueInfo[];
  /** Whether there are no more open tasks than the oldest 20000, which are counted. */
  readonly complete: boolean;
}

/**
 * first_to_resolve: the first branch that ends wins, whether it succeeds or fails;
 * first_to_succeed: the first that succeeds, failures count once all failed. The other branches
 * are cancelled.
 */
export interface RaceBlock {
  /** The kind of the block. */
  readonly type: 'race';
  /**
   * Unique in the sequence. Expressions find its output by it. Not __proto__, constructor,
   * prototype, . or ..
   */
  readonly id: string;
  /** An expression; the block is skipped when it does not hold. */
  readonly when?: string | null | undefined;
  /** How long the block may take; past it, all inside is cut off and it has failed. Milliseconds. */
  readonly timeout?: number | null | undefined;
  /** Lists of blocks; all lists run until one has won. */
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
   * observed_at at most 30 s ahead, expires_at at most 5 min after it. trust is unverified or
   * registered. Of each list at most 256 entries of at most 256 bytes.
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

/** Leads new instances from the baseline to the candidate. */
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
  /** What was asked for last; 0 before the first canary. */
  readonly canary_percent: number;
  /** Left out when there are none. */
  readonly gates?: readonly Gate[];
  /**
   * Neither moves a running instance: with operator_decision an operator migrates them
   * explicitly.
   */
  readonly in_flight_policy: 'pin' | 'operator_decision';
  readonly validation_summary?: ValidationSummary;
  /** Of the last start of the canary; left out until the first. */
  readonly canary_started_at?: string;
  /** ISO 8601. */
  readonly created_at: string;
  /** ISO 8601. */
  readonly updated_at: string;
}

/** A change of state; never altered. */
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
  /** When the interval begins in which the instances were created. */
  readonly at: string;
  /** baseline or candidate. */
  readonly variant: string;
  readonly ended: number;
  readonly failed: number;
  readonly cancelled: number;
  readonly error_rate: number;
  readonly cancel_rate: number;
  /** From creation to the end. */
  readonly duration_p50_ms: number;
  readonly duration_p95_ms: number;
  /** Of what has ended of both versions. */
  readonly share: number;
}

/**
 * Both versions since the canary began, in each interval in which instances were created that
 * have ended.
 */
export interface ReleaseSeries {
  /** ISO 8601. */
  readonly since: string;
  readonly step_secs: number;
  /** Oldest first. */
  readonly points: readonly ReleasePoint[];
  /** Whether there are no more ended instances than the newest 10000, which are counted. */
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

/** What a runtime must offer: all of each list, but any one of the regions. */
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
  /** For context.data, before anything runs. */
  readonly context?: object | null | undefined;
  /** merge: member by member; replace: in place of all data. Default: "merge". */
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

/** What is done after a failed try. initial_backoff must not be above max_backoff. */
export interface Retry {
  /** Tries in total. */
  readonly max_attempts: number;
  /** The wait after the first try. Milliseconds. Default: 1000. */
  readonly initial_backoff?: number | null | undefined;
  /** No wait is longer. Milliseconds. Default: 60000. */
  readonly max_backoff?: number | null | undefined;
  /** Each wait is this many times the one before. Default: 2. */
  readonly backoff_multiplier?: number | null | undefined;
  /** Asked after each failure, which it sees as _error. No further try if false. */
  readonly retry_if?: string | null | undefined;
  /** An error with one of these codes is not tried again. */
  readonly non_retryable_codes?: readonly string[] | null | undefined;
}

export interface RetryInstance {
  /** For context.data, before anything runs. */
  readonly context?: object | null | undefined;
  /** merge: member by member; replace: in place of all data. Default: "merge". */
  readonly context_mode?: 'merge' | 'replace' | null | undefined;
}

export interface RollbackCapsule {
  readonly capsule_id: string;
  readonly payload_artifact: PayloadArtifact;
  readonly manifest_sha256: string;
  readonly public_key: string;
  readonly signature: string;
}

/**
 * Runs the blocks of the first route whose condition holds, else default. At least one route or a
 * default.
 */
export interface RouterBlock {
  /** The kind of the block. */
  readonly type: 'router';
  /**
   * Unique in the sequence. Expressions find its output by it. Not __proto__, constructor,
   * prototype, . or ..
   */
  readonly id: string;
  /** An expression; the block is skipped when it does not hold. */
  readonly when?: string | null | undefined;
  /** How long the block may take; past it, all inside is cut off and it has failed. Milliseconds. */
  readonly timeout?: number | null | undefined;
  /** Asked in order; the first that holds runs. */
  readonly routes?:
    | readonly {
        /** When the route is taken. */
        readonly condition: string;
        /** What runs then. */
        readonly blocks: readonly Block[];
      }[]
    | null
    | undefined;
  /** What runs when no condition holds. */
  readonly default?: readonly Block[] | null | undefined;
}

export interface RunSchedule {
  /**
   * A repeated request of the same key is answered by the instance of the first one. An empty
   * text stands for none.
   */
  readonly idempotency_key?: string | null | undefined;
}

/** Of a retry, or a resume that is one: what it runs once more, and what it leaves as it is. */
export interface RunsAgain {
  readonly blocks: readonly RunsAgainBlock[];
  /** Of all that run again. */
  readonly blocks_count: number;
  /** Paths of the outermost blocks that completed and do not run again. */
  readonly stays: readonly string[];
  /** Of all that stay. */
  readonly stays_count: number;
  /**
   * Whether something that had completed and acts outside runs a second time, or a child goes on
   * whose parent has gone on without it: ask before.
   */
  readonly repeats_effects: boolean;
  readonly parent?: RunsAgainParent;
  /** What the instance comes to once this has gone well; absent: it goes on. */
  readonly ends?: 'cancelled' | 'failed';
}

/** A block that a retry runs once more. */
export interface RunsAgainBlock {
  readonly kind: 'step' | 'block' | 'compensation' | 'finally' | 'saga' | 'child' | 'hook';
  readonly summary: string;
  readonly block_id: string;
  /** From the outermost block, as in orders[2]/charge. */
  readonly path: string;
  /**
   * Paths of steps that had completed and act outside once more, under other idempotency keys; of
   * a child that is retried, in the child.
   */
  readonly repeats: readonly string[];
  /** Whether what had happened outside happens once more. */
  readonly repeats_effects: boolean;
  /**
   * The child that is retried, or whose end is taken or waited for; absent: none is, or another
   * one is started.
   */
  readonly child_id?: string;
  /** The child goes on only with what it has to clean up. */
  readonly cleans_up?: true;
}

/** Of a child that is retried by itself: what its parent makes of it. */
export interface RunsAgainParent {
  readonly id: string;
  readonly stands: 'waits' | 'takes' | 'went_on' | 'ended';
  readonly summary: string;
}

/** What a runtime says of itself; live until expires_at. */
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
 * Runs its actions in order. When one fails, the compensations of those that completed run, the
 * last one first, and the saga fails.
 */
export interface SagaBlock {
  /** The kind of the block. */
  readonly type: 'saga';
  /**
   * Unique in the sequence. Expressions find its output by it. Not __proto__, constructor,
   * prototype, . or ..
   */
  readonly id: string;
  /** An expression; the block is skipped when it does not hold. */
  readonly when?: string | null | undefined;
  /** How long the block may take; past it, all inside is cut off and it has failed. Milliseconds. */
  readonly timeout?: number | null | undefined;
  /** Actions, each with what takes it back. None: the saga completes. */
  readonly steps: readonly SagaStep[];
}

export interface SagaStep {
  /**
   * Of the step of the saga; unique in the sequence, among those of blocks too. Not __proto__,
   * constructor or prototype.
   */
  readonly id: string;
  /** A block, or a list of blocks. */
  readonly action: Block | readonly Block[];
  /** What takes back what the action did; likewise. */
  readonly compensation?: Block | readonly Block[] | null | undefined;
}

export interface SaveCheckpoint {
  /** At most 256 KiB as JSON. */
  readonly checkpoint_data: unknown;
}

export interface ScheduleCreated {
  readonly id: string;
  /** ISO 8601. */
  readonly next_fire_at: string | null;
}

/** Fewer fires than were asked for are the last ones that the expression has. */
export interface SchedulePreview {
  readonly timezone: string;
  readonly fires: readonly PreviewedFire[];
}

export interface ScheduleRun {
  readonly id: string;
  /** True: the id is that of an instance that was there already. */
  readonly deduplicated: boolean;
  readonly instance_id: string;
}

/** What changes from one definition to another, the gravest first. */
export interface SemanticDiff {
  readonly entries: readonly DiffEntry[];
  readonly max_severity?: Severity;
  /** Present when there are more than 10000: the least severe are left out. */
  readonly entries_omitted?: number;
  readonly candidate_lint?: readonly string[];
}

export interface SendEvent {
  /**
   * The same as in the header x-tenant-id when that is sent. Not . or .., and without spaces and
   * tabs around it.
   */
  readonly tenant_id?: string | null | undefined;
  readonly event_name: string;
  /** What the producer calls it: sent again, it is the same event. */
  readonly producer_event_id: string;
  /** Whom it is for: steps that wait for the name and this key. */
  readonly correlation_key?: string | null | undefined;
  /** What the steps give as their output. */
  readonly payload?: unknown;
  /** How long it is kept for a step that has yet to wait for it. Default: 86400. */
  readonly ttl_seconds?: number | null | undefined;
}

export interface SendEvents {
  readonly events: readonly SendEvent[];
}

export interface SendSignal {
  /**
   * pause, resume, cancel, update_context or custom:<name>, whose name is free. The form
   * {"custom": name} is taken too.
   */
  readonly signal_type:
    | string
    | {
        readonly custom: string;
      };
  readonly payload?: unknown;
}

/**
 * Waits until an hour in which the step may start. The two hours must differ; a window may go
 * over midnight.
 */
export interface SendWindow {
  /** The first hour in which it is open. Default: 9. */
  readonly start_hour?: number | null | undefined;
  /** The hour in which it closes: no longer open. Default: 17. */
  readonly end_hour?: number | null | undefined;
  /** On which days: 0 is Monday, 6 is Sunday. Empty: every day. */
  readonly days?: readonly number[] | null | undefined;
}

export interface SequenceCreated {
  readonly id: string;
  /** At most 100; one more says how many are left out. */
  readonly warnings?: readonly {
    /** Such as blocks[2].branches[0][1].retry.initialBackoff. */
    readonly path: string;
    readonly message: string;
    /** What was probably meant. */
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
  /** No name leads to it. */
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
   * What runs in the server after an instance has failed, one after the other, whatever each
   * comes to.
   */
  readonly on_failure?: readonly FailureHook[];
  /**
   * What runs in the server after an instance was cancelled, one after the other, whatever each
   * comes to.
   */
  readonly on_cancel?: readonly CancelHook[];
  /** ISO 8601. */
  readonly created_at: string;
}

export interface SequenceDeletionPreview {
  /** Instances that would go with the sequence. */
  readonly count: number;
  /** Completed and cancelled ones among them. */
  readonly ended: number;
  /** Failed ones among them. */
  readonly failed: number;
  readonly dry_run: true;
}

/** A stored definition, or what it is known by where the definition was left out. */
export interface SequenceListed {
  readonly id: string;
  readonly tenant_id: string;
  readonly namespace: string;
  readonly name: string;
  readonly version: number;
  readonly deprecated: boolean;
  /** No name leads to it. */
  readonly hold: boolean;
  readonly status: SequenceStatus;
  /**
   * JSON Schema 2020-12 without pattern, patternProperties and recursive references. At most
   * 65536 bytes, and with references followed 5000 values, 1000 schemas, keywords and listed
   * names, and 100 schemas within one another.
   */
  readonly input_schema?: JsonObject;
  /**
   * What runs in the server after an instance has failed, one after the other, whatever each
   * comes to.
   */
  readonly on_failure?: readonly FailureHook[];
  /**
   * What runs in the server after an instance was cancelled, one after the other, whatever each
   * comes to.
   */
  readonly on_cancel?: readonly CancelHook[];
  /** ISO 8601. */
  readonly created_at: string;
  readonly blocks?: readonly Block[];
  /** With newest_only: how many the name has. */
  readonly versions?: number;
}

export type SequenceStatus = 'draft' | 'staging' | 'production' | 'unpublished';

/** The definition can be stored. */
export interface SequenceValidated {
  readonly valid: true;
  readonly warnings: readonly {
    /** Such as blocks[2].branches[0][1].retry.initialBackoff. */
    readonly path: string;
    readonly message: string;
    /** What was probably meant. */
    readonly suggestion?: string;
  }[];
}

export type Severity = 'informational' | 'behavioral' | 'side_effect_risk' | 'incompatible';

export interface SignalAccepted {
  readonly signal_id: string;
}

/**
 * kept: waits for a step that waits for it; taken, refused: by taken_by; applied: it took effect
 * when it came.
 */
export type SignalStatus = 'kept' | 'taken' | 'refused' | 'applied';

export interface SplitVariant {
  /** Unique in the block; shown in its output. */
  readonly name: string;
  /** Its share is this of the sum of all weights. */
  readonly weight: number;
  /** What runs for this variant. */
  readonly blocks: readonly Block[];
}

export interface StartCanary {
  /** Of new instances of the baseline, those that the candidate gets. */
  readonly percent: number;
}

/** A try of a step: of a worker from its dispatch on, of the process once it has ended. */
export interface StepAttempt {
  readonly id: string;
  readonly source: 'task' | 'process';
  readonly block_id: string;
  /** The counters of the loops around it; '' outside of loops. */
  readonly iteration: string;
  /** Counted from 0 in each iteration. */
  readonly attempt: number;
  readonly state: 'pending' | 'claimed' | 'completed' | 'failed' | 'timed_out' | 'cancelled';
  /** Null of a sub_sequence, or when it is not known. */
  readonly handler_name: string | null;
  readonly queue_name: string | null;
  readonly task_id: string | null;
  /** Who had it last. */
  readonly worker_id: string | null;
  /** The dispatch to workers. */
  readonly queued_at: string | null;
  /** The last claim, or when a request left the process; null: not yet, or not kept. */
  readonly started_at: string | null;
  /** ISO 8601. */
  readonly ended_at: string | null;
  readonly timeout_ms: number | null;
  /** As they were rendered for the worker. */
  readonly params?: JsonValue;
  /** What a for_each adds to context.data for it. */
  readonly overlay?: JsonValue;
  readonly output?: JsonValue;
  readonly error: {
    readonly message: string;
    readonly retryable: boolean | null;
  } | null;
}

/**
 * Runs a handler: a built-in one (noop, log, sleep, wait_for_event, http_request, fail,
 * transform, assert) in the server, any other by an external worker.
 */
export interface StepBlock {
  /** The kind of the block. */
  readonly type: 'step';
  /**
   * Unique in the sequence. Expressions find its output by it. Not __proto__, constructor,
   * prototype, . or ..
   */
  readonly id: string;
  /** An expression; the block is skipped when it does not hold. */
  readonly when?: string | null | undefined;
  /**
   * How long one try may take, of a task from its claim on; past it, the try has failed.
   * Milliseconds.
   */
  readonly timeout?: number | null | undefined;
  /** A name that is not built in is served by external workers. */
  readonly handler: string;
  /**
   * The parameters of the handler; what a built-in one always refuses is 400. noop: none. log:
   * message, level (debug, info, warn). sleep: duration_ms (default 100). wait_for_event: name
   * (required), key, timeout_ms, schema. http_request: url (required), method (GET, POST, PUT,
   * PATCH, DELETE, HEAD), headers, body, timeout_ms (default 10000). fail: message, retryable.
   * transform: anything. assert: condition (required), message.
   */
  readonly params?: object | null | undefined;
  /** Waits before the first try. */
  readonly delay?: Delay | null | undefined;
  /** What is done after a failed try. initial_backoff must not be above max_backoff. */
  readonly retry?: Retry | null | undefined;
  /** How long a task may wait for a worker; past it, the try has failed. Milliseconds. */
  readonly queue_timeout?: number | null | undefined;
  /**
   * How long the step may take with all of its waits and tries; past it, it has failed.
   * Milliseconds.
   */
  readonly deadline?: number | null | undefined;
  /** What is called, once, when the deadline has passed. */
  readonly on_deadline_breach?:
    | {
        /** A built-in handler; not one that waits. */
        readonly handler: string;
        /**
         * Its parameters, with templates; the server adds _breach_block_id, _breach_instance_id,
         * _breach_elapsed_ms and _breach_deadline_ms.
         */
        readonly params?: object | null | undefined;
      }
    | null
    | undefined;
  /**
   * Waits until an hour in which the step may start. The two hours must differ; a window may go
   * over midnight.
   */
  readonly send_window?:
    | {
        /** The first hour in which it is open. Default: 9. */
        readonly start_hour?: number | null | undefined;
        /** The hour in which it closes: no longer open. Default: 17. */
        readonly end_hour?: number | null | undefined;
        /** On which days: 0 is Monday, 6 is Sunday. Empty: every day. */
        readonly days?: readonly number[] | null | undefined;
      }
    | null
    | undefined;
  /**
   * Steps with the same key share a limit per time. Past the limit a step waits. An empty text
   * stands for none.
   */
  readonly rate_limit_key?: string | null | undefined;
  /** If false, the signal cancel lets the step end first. Default: true. */
  readonly cancellable?: boolean | null | undefined;
  /** The queue of the task. Polls may ask for the tasks of one queue only. */
  readonly queue_name?: string | null | undefined;
  /**
   * What the output must conform to; another one fails the step for good. JSON Schema 2020-12
   * without pattern, patternProperties and recursive references. At most 65536 bytes, and with
   * references followed 5000 values, 1000 schemas, keywords and listed names, and 100 schemas
   * within one another.
   */
  readonly output_schema?: object | null | undefined;
  /** Whether a worker's output is merged into context.data. Default: true. */
  readonly merge_output?: boolean | null | undefined;
  /** A person has to answer before the first try. */
  readonly wait_for_input?: WaitForInput | null | undefined;
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

export interface StoredEvent {
  readonly id: string;
  readonly tenant_id: string;
  readonly event_name: string;
  readonly producer_event_id: string;
  readonly correlation_key: string | null;
  /** What looks like a secret is not shown. */
  readonly payload: JsonValue;
  readonly status: EventStatus;
  /** How many steps it was for. */
  readonly matched: number;
  /** ISO 8601. */
  readonly created_at: string;
  /** Until then it is kept for a step that waits for it. */
  readonly expires_at: string;
  /** ISO 8601. */
  readonly consumed_at: string | null;
}

/** A signal that an instance was sent. */
export interface StoredSignal {
  readonly id: string;
  readonly instance_id: string;
  readonly signal_type: string;
  readonly payload: JsonValue;
  /** ISO 8601. */
  readonly created_at: string;
  /**
   * kept: waits for a step that waits for it; taken, refused: by taken_by; applied: it took
   * effect when it came.
   */
  readonly status: SignalStatus;
  /** ISO 8601. */
  readonly taken_at: string | null;
  /** The block whose wait took it. */
  readonly taken_by: string | null;
  /** The name of the key that sent it; null: not known. */
  readonly sent_by: string | null;
}

/** Starts another sequence as a child instance, and waits for its end. */
export interface SubSequenceBlock {
  /** The kind of the block. */
  readonly type: 'sub_sequence';
  /**
   * Unique in the sequence. Expressions find its output by it. Not __proto__, constructor,
   * prototype, . or ..
   */
  readonly id: string;
  /** An expression; the block is skipped when it does not hold. */
  readonly when?: string | null | undefined;
  /** How long the block may take; past it, all inside is cut off and it has failed. Milliseconds. */
  readonly timeout?: number | null | undefined;
  /** The sequence of the child, in the namespace of this instance. */
  readonly sequence_name: string;
  /** Pins this version. Absent: as a creation by name chooses one when the child starts. */
  readonly version?: number | null | undefined;
  /** The context.data of the child; texts in it may be templates. */
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
  /** Shown this once. */
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
  /** As it was given. */
  readonly timeout?: number;
  /** Why it failed; null when it did not, or was retried since. */
  readonly failure: Failure | null;
  readonly cancelling?: Cancelling;
  /** ISO 8601. */
  readonly created_at: string;
  /** ISO 8601. */
  readonly updated_at: string;
}

/** What became of one result. */
export interface TaskOutcome {
  /** As it was sent; null when it was no text. */
  readonly task_id: string | null;
  /** That of the route of one result. */
  readonly status: number;
  /** Of a heartbeat. */
  readonly checkpoint_seq?: number;
  readonly error?: string;
  /** As in x-error-code. */
  readonly code?: string;
}

/** What a worker has to say of one task that it has claimed. */
export type TaskResult = CompleteTaskResult | FailTaskResult | HeartbeatTaskResult;

export interface TaskStats {
  readonly by_state: { readonly [name: string]: number };
  readonly by_handler: { readonly [name: string]: { readonly [name: string]: number } };
  readonly active_workers: readonly string[];
}

export interface TasksExchanged {
  /** In the order of the results. */
  readonly outcomes: readonly TaskOutcome[];
  /** As a poll answers them. */
  readonly tasks: readonly WorkerTask[];
  /** The largest body of an exchange that the server accepts. */
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
  /** What was copied, by table; null before it was. */
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
    /** The counters of the loops around it, as in 2.0. */
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

/**
 * Paths are dotted and lead into checkpoint_data; what stands under context_snapshot becomes
 * context.data.
 */
export interface Transform {
  /** Default: 1. */
  readonly version?: 1 | null | undefined;
  readonly transform: 'copy' | 'move' | 'drop';
  readonly from_path: string;
  /** Of copy and move; none of drop. */
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
  /** Of a sub_sequence: the instance that it started last. */
  readonly child_instance_id?: string;
  /** ISO 8601. */
  readonly started_at: string | null;
  /** ISO 8601. */
  readonly completed_at: string | null;
  readonly items?: ItemCounts;
  /** Of a loop that is open: the pass that it is at, from 0. */
  readonly iteration?: number;
  /** Of a block in loops: the rows that it has left, over all passes. */
  readonly output_count?: number;
}

export interface Trigger {
  readonly slug: string;
  readonly tenant_id: string;
  readonly namespace: string;
  readonly sequence_name: string;
  readonly version: number | null;
  readonly trigger_type: TriggerType;
  /** [REDACTED] when there is one. */
  readonly secret: string | null;
  readonly config: JsonObject;
  readonly enabled: boolean;
  /** ISO 8601. */
  readonly created_at: string;
  /** ISO 8601. */
  readonly updated_at: string;
}

export interface TriggerFired {
  readonly instance_id: string;
  readonly trigger: string;
  readonly sequence_name: string;
}

export type TriggerType = 'webhook' | 'event';

/** catch_block runs only if try_block failed, finally_block always. */
export interface TryCatchBlock {
  /** The kind of the block. */
  readonly type: 'try_catch';
  /**
   * Unique in the sequence. Expressions find its output by it. Not __proto__, constructor,
   * prototype, . or ..
   */
  readonly id: string;
  /** An expression; the block is skipped when it does not hold. */
  readonly when?: string | null | undefined;
  /** How long the block may take; past it, all inside is cut off and it has failed. Milliseconds. */
  readonly timeout?: number | null | undefined;
  /** What runs first. */
  readonly try_block: readonly Block[];
  /** What runs if try_block failed. */
  readonly catch_block: readonly Block[];
  /** What always runs last, also when cancelled. */
  readonly finally_block?: readonly Block[] | null | undefined;
}

/**
 * Absent members stay as they are; null gives back what a creation without the member has.
 * Refused, because they cannot be changed: id, tenant_id, has_refresh_token, created_at,
 * updated_at.
 */
export interface UpdateCredential {
  readonly name?: string | null | undefined;
  /**
   * The secret: a text, at most 262144 bytes. Of one that is a JSON object, templates may name a
   * member: {{secrets.id.member}}. No answer ever has it. Not [REDACTED].
   */
  readonly value?: string | undefined;
  readonly kind?: CredentialKind | null | undefined;
  readonly description?: string | null | undefined;
  /** From then on it is as if it did not exist. */
  readonly expires_at?: string | null | undefined;
  /** Kept for those who renew it, with oauth2 only. A public address. */
  readonly refresh_url?: string | null | undefined;
  /** Kept like the value, and as secret. Not [REDACTED]. */
  readonly refresh_token?: string | null | undefined;
  /** While false it is as if the credential did not exist. */
  readonly enabled?: boolean | null | undefined;
}

/**
 * Absent members stay as they are; null gives back what a creation without the member has.
 * Refused, because they cannot be changed: id, tenant_id, namespace, sequence_id, sequence,
 * version, skipped_fires, last_skipped_at, last_triggered_at, next_fire_at, last_error,
 * created_at, updated_at.
 */
export interface UpdateSchedule {
  /**
   * The updated_at that was read: 409 when it was changed since. When absent: whatever is there
   * is changed.
   */
  readonly if_unchanged_since?: string | null | undefined;
  /**
   * Seven fields: second minute hour day month day_of_week year. Six (without year), five
   * (without second and year), ? and @hourly, @daily, @weekly, @monthly, @yearly are taken too.
   */
  readonly cron_expr?: string | undefined;
  /** IANA time zone, such as Europe/Berlin. */
  readonly timezone?: string | null | undefined;
  readonly enabled?: boolean | null | undefined;
  /** Copied to the instances that it creates. */
  readonly metadata?: object | null | undefined;
  /** What its instances begin with; the input_schema must accept its data. */
  readonly context?:
    | {
        readonly data?: object | null | undefined;
        readonly config?: object | null | undefined;
      }
    | null
    | undefined;
  /**
   * How long it may take from its first step on, pauses not counted; past it, it fails.
   * Milliseconds.
   */
  readonly timeout?: number | null | undefined;
  /** Any case is accepted. */
  readonly priority?: 'low' | 'normal' | 'high' | 'critical' | null | undefined;
  /** What a fire does while an earlier run has not ended. */
  readonly overlap_policy?: OverlapPolicy | null | undefined;
}

/**
 * Lifts the hold of a version. The rest of it never changes; deprecate one to take it out of the
 * choice again.
 */
export interface UpdateSequence {
  readonly hold: false;
}

/**
 * Absent members stay as they are; null gives back what a creation without the member has.
 * Refused, because they cannot be changed: id, tenant_id, created_at, updated_at.
 */
export interface UpdateSubscription {
  /**
   * The updated_at that was read: 409 when it was changed since. When absent: whatever is there
   * is changed.
   */
  readonly if_unchanged_since?: string | null | undefined;
  /** http or https, without credentials; a public address unless the deployment says else. */
  readonly url?: string | undefined;
  readonly events?: readonly WebhookEventType[] | null | undefined;
  /** What its webhooks are signed with. Not [REDACTED]. */
  readonly secret?: string | undefined;
}

/**
 * Absent members stay as they are; null gives back what a creation without the member has.
 * Refused, because they cannot be changed: slug, tenant_id, namespace, trigger_type, created_at,
 * updated_at.
 */
export interface UpdateTrigger {
  /**
   * The updated_at that was read: 409 when it was changed since. When absent: whatever is there
   * is changed.
   */
  readonly if_unchanged_since?: string | null | undefined;
  readonly sequence_name?: string | undefined;
  readonly version?: number | null | undefined;
  /** What callers prove themselves with. No answer ever has it. Not [REDACTED]. */
  readonly secret?: string | null | undefined;
  /** Of an event trigger: event_name, and correlation_key if only events with that key start it. */
  readonly config?: object | null | undefined;
  readonly enabled?: boolean | null | undefined;
}

export interface ValidateRelease {
  /** How many of the newest ended runs are replayed: at least 1, at most 50. Default: 10. */
  readonly sample?: number | null | undefined;
  /** Makes the release ready without a replay. Default: false. */
  readonly skip?: boolean | null | undefined;
}

/** What replays of ended runs of the baseline showed. */
export interface ValidationReport {
  /** The inconclusive ones among them. */
  readonly replayed: number;
  readonly matches: number;
  /** All, of which divergences lists the first 20. */
  readonly diverged: number;
  readonly inconclusive: number;
  readonly divergences: readonly Divergence[];
  /** The first 20 of those that show nothing, and why; left out without any. */
  readonly inconclusive_runs?: readonly InconclusiveRun[];
  readonly release_state: ReleaseState;
}

/** The evidence of the last validation. */
export interface ValidationSummary {
  /** The inconclusive ones among them. */
  readonly replayed: number;
  readonly matches: number;
  /** All, of which divergences lists the first 20. */
  readonly diverged: number;
  readonly inconclusive: number;
  readonly divergences: readonly Divergence[];
  /** The first 20 of those that show nothing, and why; left out without any. */
  readonly inconclusive_runs?: readonly InconclusiveRun[];
  /** ISO 8601. */
  readonly validated_at: string;
}

/** One thing that an instance waits for. Members that do not fit the kind are absent. */
export interface Wait {
  readonly kind: WaitKind;
  readonly summary: string;
  /** Null when the instance as a whole waits. */
  readonly block_id: string | null;
  /** From the outermost block, as in orders[2]/charge. */
  readonly path: string | null;
  /** ISO 8601. */
  readonly since: string | null;
  /** When it is over by itself, at the latest; null: by nothing but what it waits for. */
  readonly until: string | null;
  /** The try, from 0; of a retry the next one. */
  readonly attempt?: number;
  /** Null: no retry policy. */
  readonly max_attempts?: number | null;
  /** Of the try before. */
  readonly last_error?: string;
  readonly handler?: string;
  readonly queue?: string | null;
  readonly task_id?: string;
  readonly worker_id?: string;
  /** ISO 8601. */
  readonly heartbeat_at?: string;
  /** Of a task: claims of this try whose workers fell silent; absent: none. */
  readonly lost_claims?: number;
  readonly workers?: {
    /** Workers that may take the task and polled within 60 s. */
    readonly polled_lately: number;
    /** ISO 8601. */
    readonly last_polled_at: string | null;
  };
  /** Of a handoff: on its way, gone, or here and not owned yet. */
  readonly reason?: 'transferring' | 'moved' | 'imported';
  /** Of the event. */
  readonly name?: string;
  readonly approval_id?: string;
  /** What is asked. */
  readonly prompt?: string;
  readonly choices?: readonly string[];
  readonly child_id?: string;
  readonly child_state?: InstanceState;
  readonly key?: string;
  readonly max_concurrency?: number;
  readonly holders?: readonly {
    readonly instance_id: string;
    readonly state: InstanceState;
  }[];
  /** Instances that wait before it, 10000 at most. */
  readonly ahead?: number;
  readonly limit?: {
    readonly max_count: number;
    readonly window_seconds: number;
  } | null;
}

/** A person has to answer before the first try. */
export interface WaitForInput {
  /** What the person is asked; may hold templates. Default: "". */
  readonly prompt?: string | null | undefined;
  /** What can be answered. When absent: Yes (yes) and No (no). Each value once. */
  readonly choices?: readonly GateChoice[] | null | undefined;
  /**
   * The key of context.data for the value; the id of the block when absent. Not __proto__,
   * constructor or prototype.
   */
  readonly store_as?: string | null | undefined;
  /** How long to wait for the answer; for ever when absent. Milliseconds. */
  readonly timeout?: number | null | undefined;
  /** When the time is over, the step completes with an output that names it, and does not fail. */
  readonly escalation_handler?: string | null | undefined;
  /** Whether the answer may have a comment. Default: false. */
  readonly allow_comment?: boolean | null | undefined;
}

export type WaitKind =
  | 'pause'
  | 'start'
  | 'handoff'
  | 'slot'
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
  /** Why it failed; null when it did not. */
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
  readonly instance_id: string;
  readonly trigger: string;
}

export interface WhoAmI {
  /** The root key, or nobody is asked for a key. */
  readonly is_root: boolean;
  /** The server asks for no keys (--insecure-auth). */
  readonly is_insecure: boolean;
  /** Of the key; null: any, named by x-tenant-id. */
  readonly tenant_id: string | null;
  /** Requests must name a tenant, by x-tenant-id (ENGINE_REQUIRE_TENANT_HEADER). */
  readonly requires_tenant: boolean;
  /** Of root: all of them. */
  readonly capabilities: readonly Capability[];
  readonly key: {
    /** ak_ and 32 hexadecimal digits. */
    readonly id: string;
    readonly name: string;
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

/** A step that an external worker runs. */
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
   * The same for all tries of one execution of the step; another one for each item and iteration,
   * and when it runs anew.
   */
  readonly idempotency_key: string;
  readonly timeout_ms: number | null;
  readonly state: WorkerTaskState;
  readonly worker_id: string | null;
  readonly claim_epoch: number;
  /** Claims of this try whose workers fell silent; too many fail it for good. */
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
  /** Warnings refuse the definition too. Default: false. */
  readonly strict?: boolean | undefined;
}

/** What `sequences.validate` can be asked. */
export interface SequencesValidateQuery {
  /** Warnings refuse the definition too. Default: false. */
  readonly strict?: boolean | undefined;
}

/** What `sequences.list` can be asked. */
export interface SequencesListQuery {
  /** The header x-tenant-id wins. */
  readonly tenant_id?: string | undefined;
  readonly namespace?: string | undefined;
  readonly name?: string | undefined;
  /** In any case. */
  readonly name_contains?: string | undefined;
  /** The newest version of each name alone, and how many versions there are. Default: false. */
  readonly newest_only?: boolean | undefined;
  /** False: without blocks, input_schema, on_failure and on_cancel. Default: true. */
  readonly include_definition?: boolean | undefined;
  /** How many to leave out. Default: 0. */
  readonly offset?: number | undefined;
  /** How many at most. Larger values are lowered to 1000. Default: 200. */
  readonly limit?: number | undefined;
  /** Where to go on. From the header x-next-cursor of the page before; instead of an offset. */
  readonly cursor?: string | undefined;
}

/** What `sequences.byName` can be asked. */
export interface SequencesByNameQuery {
  /** The header x-tenant-id wins. */
  readonly tenant_id?: string | undefined;
  readonly namespace?: string | undefined;
  readonly name: string;
  /** The newest that is neither deprecated nor on hold when absent. */
  readonly version?: number | undefined;
}

/** What `sequences.versions` can be asked. */
export interface SequencesVersionsQuery {
  /** The header x-tenant-id wins. */
  readonly tenant_id?: string | undefined;
  readonly namespace?: string | undefined;
  readonly name: string;
}

/** What `sequences.delete` can be asked. */
export interface SequencesDeleteQuery {
  /** Failed instances go with the sequence; otherwise they refuse its deletion. Default: false. */
  readonly cascade?: boolean | undefined;
  /**
   * Answers 200 with how many instances would go, or the refusal; deletes nothing. Default:
   * false.
   */
  readonly dry_run?: boolean | undefined;
}

/** What `instances.list` can be asked. */
export interface InstancesListQuery {
  /** The header x-tenant-id wins. */
  readonly tenant_id?: string | undefined;
  readonly namespace?: string | undefined;
  readonly sequence_id?: string | undefined;
  /** Every version of the sequences with this name. */
  readonly sequence_name?: string | undefined;
  /** The same. */
  readonly sequence?: string | undefined;
  /** Of its sequence. */
  readonly sequence_version?: number | undefined;
  /** Those that this instance started. */
  readonly parent_instance_id?: string | undefined;
  /** These and no others, at most 1000. */
  readonly ids?: readonly string[] | undefined;
  /** Those with a step that waits for it: see /instances/{id}/explain. */
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
  /** Exclusive. */
  readonly created_after?: string | undefined;
  /** Exclusive. */
  readonly created_before?: string | undefined;
  /** Exclusive. */
  readonly updated_after?: string | undefined;
  /** Exclusive. */
  readonly updated_before?: string | undefined;
  /** A part of the message or code of its failure, in any case. */
  readonly failure?: string | undefined;
  /** The code of its failure. */
  readonly failure_code?: string | undefined;
  /** The block_id of its failure. */
  readonly failure_block?: string | undefined;
  /** The handler of its failure. */
  readonly failure_handler?: string | undefined;
  /** The reason as /instances/failures tells it. */
  readonly failure_reason?: string | undefined;
  /** Equalities on top-level texts of the metadata; all must hold. At most 16. */
  readonly metadata?: { readonly [name: string]: string } | undefined;
  /** Separated by commas; none stands for all. */
  readonly state?: readonly InstanceState[] | undefined;
  /** How many to leave out. Default: 0. */
  readonly offset?: number | undefined;
  /** How many at most. Larger values are lowered to 1000. Default: 100. */
  readonly limit?: number | undefined;
  /** Where to go on. From the header x-next-cursor of the page before; instead of an offset. */
  readonly cursor?: string | undefined;
}

/** What `instances.deadLetters` can be asked. */
export interface InstancesDeadLettersQuery {
  /** The header x-tenant-id wins. */
  readonly tenant_id?: string | undefined;
  readonly namespace?: string | undefined;
  readonly sequence_id?: string | undefined;
  /** Every version of the sequences with this name. */
  readonly sequence_name?: string | undefined;
  /** The same. */
  readonly sequence?: string | undefined;
  /** Of its sequence. */
  readonly sequence_version?: number | undefined;
  /** Those that this instance started. */
  readonly parent_instance_id?: string | undefined;
  /** These and no others, at most 1000. */
  readonly ids?: readonly string[] | undefined;
  /** Those with a step that waits for it: see /instances/{id}/explain. */
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
  /** Exclusive. */
  readonly created_after?: string | undefined;
  /** Exclusive. */
  readonly created_before?: string | undefined;
  /** Exclusive. */
  readonly updated_after?: string | undefined;
  /** Exclusive. */
  readonly updated_before?: string | undefined;
  /** A part of the message or code of its failure, in any case. */
  readonly failure?: string | undefined;
  /** The code of its failure. */
  readonly failure_code?: string | undefined;
  /** The block_id of its failure. */
  readonly failure_block?: string | undefined;
  /** The handler of its failure. */
  readonly failure_handler?: string | undefined;
  /** The reason as /instances/failures tells it. */
  readonly failure_reason?: string | undefined;
  /** Equalities on top-level texts of the metadata; all must hold. At most 16. */
  readonly metadata?: { readonly [name: string]: string } | undefined;
  /** Separated by commas; none stands for all. */
  readonly state?: readonly InstanceState[] | undefined;
  /** How many to leave out. Default: 0. */
  readonly offset?: number | undefined;
  /** How many at most. Larger values are lowered to 1000. Default: 100. */
  readonly limit?: number | undefined;
  /** Where to go on. From the header x-next-cursor of the page before; instead of an offset. */
  readonly cursor?: string | undefined;
}

/** What `instances.bulkState` can be asked. */
export interface InstancesBulkStateQuery {
  /** Answers 202 with a job at once. So does the header Prefer: respond-async. Default: false. */
  readonly async?: boolean | undefined;
}

/** What `instances.signals` can be asked. */
export interface InstancesSignalsQuery {
  readonly signal_type?: string | undefined;
  /**
   * kept: waits for a step that waits for it; taken, refused: by taken_by; applied: it took
   * effect when it came.
   */
  readonly status?: SignalStatus | undefined;
  /** How many to leave out. Default: 0. */
  readonly offset?: number | undefined;
  /** How many at most. Larger values are lowered to 1000. Default: 100. */
  readonly limit?: number | undefined;
  /** Where to go on. From the header x-next-cursor of the page before; instead of an offset. */
  readonly cursor?: string | undefined;
}

/** What `instances.tree` can be asked. */
export interface InstancesTreeQuery {
  /** This block and those inside of it. */
  readonly block_id?: string | undefined;
  /** How many levels below those that come first. */
  readonly depth?: number | undefined;
}

/** What `instances.outputs` can be asked. */
export interface InstancesOutputsQuery {
  readonly block_id?: string | undefined;
  /** The counters of the loops around the block, as in 2.0. */
  readonly iteration?: string | undefined;
  /** How many to leave out. Default: 0. */
  readonly offset?: number | undefined;
  /** How many at most. */
  readonly limit?: number | undefined;
  /** Where to go on. From the header x-next-cursor of the page before; instead of an offset. */
  readonly cursor?: string | undefined;
  /** The answer ends before it is longer, with at least one row, and says where to go on. */
  readonly max_bytes?: number | undefined;
}

/** What `instances.children` can be asked. */
export interface InstancesChildrenQuery {
  /** How many to leave out. Default: 0. */
  readonly offset?: number | undefined;
  /** How many at most. */
  readonly limit?: number | undefined;
  /** Where to go on. From the header x-next-cursor of the page before; instead of an offset. */
  readonly cursor?: string | undefined;
  /** Separated by commas; none stands for all. */
  readonly state?: readonly InstanceState[] | undefined;
}

/** What `instances.audit` can be asked. */
export interface InstancesAuditQuery {
  /** How many at most. Larger values are lowered to 1000. Default: 200. */
  readonly limit?: number | undefined;
  /** Where to go on. From the header x-next-cursor of the page before; instead of an offset. */
  readonly cursor?: string | undefined;
}

/** What `instances.timeline` can be asked. */
export interface InstancesTimelineQuery {
  readonly block_id?: string | undefined;
  /** The counters of the loops around the block, as in 2.0. */
  readonly iteration?: string | undefined;
  /** Where to go on. From the header x-next-cursor of the page before; instead of an offset. */
  readonly cursor?: string | undefined;
  /** The answer ends before it is longer, with at least one row, and says where to go on. */
  readonly max_bytes?: number | undefined;
  /** How many to leave out. Default: 0. */
  readonly offset?: number | undefined;
  /** How many at most. Larger values are lowered to 1000. Default: 200. */
  readonly limit?: number | undefined;
  /** False leaves the values of outputs out. Default: true. */
  readonly include_outputs?: boolean | undefined;
}

/** What `instances.attempts` can be asked. */
export interface InstancesAttemptsQuery {
  readonly block_id?: string | undefined;
  /** The counters of the loops around the block, as in 2.0. */
  readonly iteration?: string | undefined;
  /** With block_id: of its outermost loop, counted from 0; at most 1000 at once. */
  readonly iteration_from?: number | undefined;
  /** Inclusive; without it the one in iteration_from. */
  readonly iteration_to?: number | undefined;
  /** Separated by commas; none stands for all. */
  readonly state?:
    | readonly ('pending' | 'claimed' | 'completed' | 'failed' | 'timed_out' | 'cancelled')[]
    | undefined;
  /** Which of them come first. Default: "oldest". */
  readonly order?: 'oldest' | 'newest' | undefined;
  /** False: without params, overlay and output. Default: true. */
  readonly include_payloads?: boolean | undefined;
  /** How many at most. Larger values are lowered to 1000. Default: 100. */
  readonly limit?: number | undefined;
  /** Where to go on. From the header x-next-cursor of the page before; instead of an offset. */
  readonly cursor?: string | undefined;
}

/** What `approvals.list` can be asked. */
export interface ApprovalsListQuery {
  /** The header x-tenant-id wins. */
  readonly tenant_id?: string | undefined;
  readonly namespace?: string | undefined;
  readonly sequence_id?: string | undefined;
  /** Every version of the sequences with this name. */
  readonly sequence_name?: string | undefined;
  /** The same. */
  readonly sequence?: string | undefined;
  /** How many to leave out. Default: 0. */
  readonly offset?: number | undefined;
  /** How many at most. Larger values are lowered to 1000. Default: 100. */
  readonly limit?: number | undefined;
  /** Where to go on. From the header x-next-cursor of the page before; instead of an offset. */
  readonly cursor?: string | undefined;
}

/** What `instances.bulkReschedule` can be asked. */
export interface InstancesBulkRescheduleQuery {
  /** Answers 202 with a job at once. So does the header Prefer: respond-async. Default: false. */
  readonly async?: boolean | undefined;
}

/** What `instances.batchAction` can be asked. */
export interface InstancesBatchActionQuery {
  /** Answers 202 with a job at once. So does the header Prefer: respond-async. Default: false. */
  readonly async?: boolean | undefined;
}

/** What `instances.logs` can be asked. */
export interface InstancesLogsQuery {
  readonly block_id?: string | undefined;
  /** How many to leave out. Default: 0. */
  readonly offset?: number | undefined;
  /** How many at most. */
  readonly limit?: number | undefined;
  /** Where to go on. From the header x-next-cursor of the page before; instead of an offset. */
  readonly cursor?: string | undefined;
  /** The answer ends before it is longer, with at least one row, and says where to go on. */
  readonly max_bytes?: number | undefined;
}

/** What `instances.stream` can be asked. */
export interface InstancesStreamQuery {
  /** How long changes are collected before they are sent: 100 to 5,000. Default: 500. */
  readonly poll_ms?: number | undefined;
}

/** What `bulkJobs.list` can be asked. */
export interface BulkJobsListQuery {
  /** The header x-tenant-id wins. */
  readonly tenant_id?: string | undefined;
  /** Separated by commas; none stands for all. */
  readonly state?: BulkJobState | undefined;
  /** How many to leave out. Default: 0. */
  readonly offset?: number | undefined;
  /** How many at most. Larger values are lowered to 1000. Default: 100. */
  readonly limit?: number | undefined;
  /** Where to go on. From the header x-next-cursor of the page before; instead of an offset. */
  readonly cursor?: string | undefined;
}

/** What `rateLimits.list` can be asked. */
export interface RateLimitsListQuery {
  /** The header x-tenant-id wins. */
  readonly tenant_id?: string | undefined;
  /** How many to leave out. Default: 0. */
  readonly offset?: number | undefined;
  /** How many at most. */
  readonly limit?: number | undefined;
}

/** What `credentials.list` can be asked. */
export interface CredentialsListQuery {
  /** The header x-tenant-id wins. */
  readonly tenant_id?: string | undefined;
  readonly kind?: CredentialKind | undefined;
  /** How many to leave out. Default: 0. */
  readonly offset?: number | undefined;
  /** How many at most. */
  readonly limit?: number | undefined;
  /** Where to go on. From the header x-next-cursor of the page before; instead of an offset. */
  readonly cursor?: string | undefined;
}

/** What `workers.tasks` can be asked. */
export interface WorkersTasksQuery {
  /** The header x-tenant-id wins. */
  readonly tenant_id?: string | undefined;
  /** Separated by commas; none stands for all. */
  readonly state?: readonly WorkerTaskState[] | undefined;
  readonly handler_name?: string | undefined;
  readonly worker_id?: string | undefined;
  readonly queue_name?: string | undefined;
  /** Exclusive. */
  readonly created_after?: string | undefined;
  /** Exclusive. */
  readonly created_before?: string | undefined;
  readonly sequence_name?: string | undefined;
  /** How many to leave out. Default: 0. */
  readonly offset?: number | undefined;
  /** How many at most. Larger values are lowered to 1000. Default: 50. */
  readonly limit?: number | undefined;
  /** Where to go on. From the header x-next-cursor of the page before; instead of an offset. */
  readonly cursor?: string | undefined;
}

/** What `workers.stats` can be asked. */
export interface WorkersStatsQuery {
  /** The header x-tenant-id wins. */
  readonly tenant_id?: string | undefined;
}

/** What `workers.attempts` can be asked. */
export interface WorkersAttemptsQuery {
  /** How many to leave out. Default: 0. */
  readonly offset?: number | undefined;
  /** How many at most. */
  readonly limit?: number | undefined;
}

/** What `workers.list` can be asked. */
export interface WorkersListQuery {
  /** The header x-tenant-id wins. */
  readonly tenant_id?: string | undefined;
  /** Who was seen within this time counts as alive. Default: 60. */
  readonly alive_within_secs?: number | undefined;
  /** Lists the others as well. Default: false. */
  readonly include_stale?: boolean | undefined;
}

/** What `handlers` can be asked. */
export interface HandlersQuery {
  /** The header x-tenant-id wins. */
  readonly tenant_id?: string | undefined;
}

/** What `cron.list` can be asked. */
export interface CronListQuery {
  /** The header x-tenant-id wins. */
  readonly tenant_id?: string | undefined;
  /** next_fire: those that are enabled, by when they fire next. Default: created, oldest first. */
  readonly order?: 'created' | 'next_fire' | undefined;
  /** How many to leave out. Default: 0. */
  readonly offset?: number | undefined;
  /** How many at most. */
  readonly limit?: number | undefined;
  /** Where to go on. From the header x-next-cursor of the page before; instead of an offset. */
  readonly cursor?: string | undefined;
}

/** What `cron.nextFires` can be asked. */
export interface CronNextFiresQuery {
  /** How many. At least 1 and at most 50. Default: 5. */
  readonly n?: number | undefined;
}

/** What `releases.list` can be asked. */
export interface ReleasesListQuery {
  /** The header x-tenant-id wins. */
  readonly tenant_id?: string | undefined;
  /** Separated by commas; none stands for all. */
  readonly state?: ReleaseState | undefined;
  readonly sequence_name?: string | undefined;
  /** How many at most. At least 1 and at most 1000. Default: 100. */
  readonly limit?: number | undefined;
  /** Where to go on. From the header x-next-cursor of the page before; instead of an offset. */
  readonly cursor?: string | undefined;
}

/** What `continuity.get` can be asked. */
export interface ContinuityGetQuery {
  /** The header x-tenant-id wins. */
  readonly tenant_id?: string | undefined;
}

/** What `continuity.locations` can be asked. */
export interface ContinuityLocationsQuery {
  /** The header x-tenant-id wins. */
  readonly tenant_id?: string | undefined;
}

/** What `continuity.effects` can be asked. */
export interface ContinuityEffectsQuery {
  /** The header x-tenant-id wins. */
  readonly tenant_id?: string | undefined;
}

/** What `continuity.checkpoints` can be asked. */
export interface ContinuityCheckpointsQuery {
  /** The header x-tenant-id wins. */
  readonly tenant_id?: string | undefined;
  /** How many at most. Larger values are lowered to 10000. Default: 1000. */
  readonly limit?: number | undefined;
}

/** What `continuity.checkpoint` can be asked. */
export interface ContinuityCheckpointQuery {
  /** The header x-tenant-id wins. */
  readonly tenant_id?: string | undefined;
}

/** What `continuity.provenance` can be asked. */
export interface ContinuityProvenanceQuery {
  /** The header x-tenant-id wins. */
  readonly tenant_id?: string | undefined;
}

/** What `continuity.verifyProvenance` can be asked. */
export interface ContinuityVerifyProvenanceQuery {
  /** The header x-tenant-id wins. */
  readonly tenant_id?: string | undefined;
  readonly expected_head?: string | undefined;
}

/** What `instances.effects` can be asked. */
export interface InstancesEffectsQuery {
  /** The header x-tenant-id wins. */
  readonly tenant_id?: string | undefined;
  /** How many at most. Larger values are lowered to 1000. Default: 1000. */
  readonly limit?: number | undefined;
  /** Where to go on. From the header x-next-cursor of the page before; instead of an offset. */
  readonly cursor?: string | undefined;
}

/** What `migrations.get` can be asked. */
export interface MigrationsGetQuery {
  /** The header x-tenant-id wins. */
  readonly tenant_id?: string | undefined;
}

/** What `runtimes.list` can be asked. */
export interface RuntimesListQuery {
  /** The header x-tenant-id wins. */
  readonly tenant_id?: string | undefined;
}

/** What `handoffs.get` can be asked. */
export interface HandoffsGetQuery {
  /** The header x-tenant-id wins. */
  readonly tenant_id?: string | undefined;
}

/** What `apiKeys.list` can be asked. */
export interface ApiKeysListQuery {
  /** The header x-tenant-id wins. */
  readonly tenant_id: string;
  /** How many to leave out. Default: 0. */
  readonly offset?: number | undefined;
  /** How many at most. */
  readonly limit?: number | undefined;
  /** Where to go on. From the header x-next-cursor of the page before; instead of an offset. */
  readonly cursor?: string | undefined;
}

/** What `tenants.list` can be asked. */
export interface TenantsListQuery {
  /** How many at most. Larger values are lowered to 1000. Default: 100. */
  readonly limit?: number | undefined;
  /** Where to go on. From the header x-next-cursor of the page before; instead of an offset. */
  readonly cursor?: string | undefined;
}

/** What `cells.moves` can be asked. */
export interface CellsMovesQuery {
  /** Only those that have not ended. Default: false. */
  readonly under_way?: boolean | undefined;
  /** How many at most. Larger values are lowered to 1000. Default: 100. */
  readonly limit?: number | undefined;
  /** Where to go on. From the header x-next-cursor of the page before; instead of an offset. */
  readonly cursor?: string | undefined;
}

/** What `webhooks.subscriptions` can be asked. */
export interface WebhooksSubscriptionsQuery {
  /** The header x-tenant-id wins. */
  readonly tenant_id?: string | undefined;
  /** How many to leave out. Default: 0. */
  readonly offset?: number | undefined;
  /** How many at most. Larger values are lowered to 1000. Default: 100. */
  readonly limit?: number | undefined;
}

/** What `webhooks.subscriptionDeliveries` can be asked. */
export interface WebhooksSubscriptionDeliveriesQuery {
  readonly event_type?: WebhookEventType | undefined;
  readonly delivered?: boolean | undefined;
  readonly error_class?: DeliveryErrorClass | undefined;
  /** How many at most. Larger values are lowered to 1000. Default: 100. */
  readonly limit?: number | undefined;
  /** Where to go on. From the header x-next-cursor of the page before; instead of an offset. */
  readonly cursor?: string | undefined;
}

/** What `webhooks.outbox` can be asked. */
export interface WebhooksOutboxQuery {
  /** How many at most. Larger values are lowered to 1000. Default: 100. */
  readonly limit?: number | undefined;
}

/** What `webhooks.deliveries` can be asked. */
export interface WebhooksDeliveriesQuery {
  readonly url?: string | undefined;
  readonly event_type?: WebhookEventType | undefined;
  readonly delivered?: boolean | undefined;
  readonly error_class?: DeliveryErrorClass | undefined;
  /** How many at most. Larger values are lowered to 1000. Default: 100. */
  readonly limit?: number | undefined;
  /** Where to go on. From the header x-next-cursor of the page before; instead of an offset. */
  readonly cursor?: string | undefined;
}

/** What `triggers.list` can be asked. */
export interface TriggersListQuery {
  /** The header x-tenant-id wins. */
  readonly tenant_id?: string | undefined;
  readonly namespace?: string | undefined;
  readonly sequence_name?: string | undefined;
  /** webhook: by a signed request to /webhooks/{slug}. event: by every event with a name. */
  readonly trigger_type?: TriggerType | undefined;
  /** How many to leave out. Default: 0. */
  readonly offset?: number | undefined;
  /** How many at most. */
  readonly limit?: number | undefined;
  /** Where to go on. From the header x-next-cursor of the page before; instead of an offset. */
  readonly cursor?: string | undefined;
}

/** What `events.list` can be asked. */
export interface EventsListQuery {
  /** The header x-tenant-id wins. */
  readonly tenant_id?: string | undefined;
  readonly status?: EventStatus | undefined;
  readonly event_name?: string | undefined;
  readonly correlation_key?: string | undefined;
  readonly producer_event_id?: string | undefined;
  /** Exclusive. */
  readonly created_after?: string | undefined;
  /** Exclusive. */
  readonly created_before?: string | undefined;
  /** How many to leave out. Default: 0. */
  readonly offset?: number | undefined;
  /** How many at most. Larger values are lowered to 1000. Default: 100. */
  readonly limit?: number | undefined;
  /** Where to go on. From the header x-next-cursor of the page before; instead of an offset. */
  readonly cursor?: string | undefined;
}

/** What `changes.list` can be asked. */
export interface ChangesListQuery {
  /** The header x-tenant-id wins. */
  readonly tenant_id?: string | undefined;
  /**
   * Where to go on. From an earlier answer; exclusive. Without one the list begins with the
   * oldest.
   */
  readonly cursor?: string | undefined;
  /** How many at most. Larger values are lowered to 500. Default: 100. */
  readonly limit?: number | undefined;
}

/** What `changes.stream` can be asked. */
export interface ChangesStreamQuery {
  /** The header x-tenant-id wins. */
  readonly tenant_id?: string | undefined;
  /**
   * Where to go on. From an earlier answer; exclusive. Without one the stream begins with the
   * present.
   */
  readonly cursor?: string | undefined;
}

/** What `instances.failures` can be asked. */
export interface InstancesFailuresQuery {
  /** The header x-tenant-id wins. */
  readonly tenant_id?: string | undefined;
  readonly namespace?: string | undefined;
  readonly sequence_name?: string | undefined;
  /** Exclusive. */
  readonly failed_after?: string | undefined;
  /** Exclusive. */
  readonly failed_before?: string | undefined;
}

/** What `queues.list` can be asked. */
export interface QueuesListQuery {
  /** The header x-tenant-id wins. */
  readonly tenant_id?: string | undefined;
  /** Who was seen within this time counts as alive. Default: 60. */
  readonly alive_within_secs?: number | undefined;
}

/** What `activity.get` can be asked. */
export interface ActivityGetQuery {
  /** The header x-tenant-id wins. */
  readonly tenant_id?: string | undefined;
  /** Default: an hour ago. At most seven days ago. */
  readonly since?: string | undefined;
  /** In seconds. Default: 60. */
  readonly step?: number | undefined;
}

/** What `releases.series` can be asked. */
export interface ReleasesSeriesQuery {
  /** In seconds. Default: a sixtieth of the time since the canary began. */
  readonly step?: number | undefined;
}
