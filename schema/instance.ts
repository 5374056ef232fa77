/**
 * Wire shapes of instances, their signals and what can be read about them
 * (docs/reference/instances.md). In replies unset optional fields are left out; those typed with
 * null are always present.
 */

import { type Static, Type } from '@sinclair/typebox';
import { NODE_STATES } from '../src/core/states.js';
import {
  AnyJson,
  INT32_MAX,
  InstanceStateWord,
  JsonObjectSchema,
  Key,
  Limit,
  Name,
  Offset,
  oneOfWords,
  optional,
  orNull,
  PriorityWord,
  Timestamp,
  TimeZone,
  Uuid,
  unsupported,
} from './common.js';

export const BATCH_INSTANCES_MAX = 10_000;
export const LIST_LIMIT_DEFAULT = 100;
export const LIST_LIMIT_MAX = 1_000;

// ---------------------------------------------------------------- requests

/** Only `data` and `config` can be given; the engine keeps the other sections. */
const GivenContext = Type.Object({
  data: optional(JsonObjectSchema),
  config: optional(JsonObjectSchema),
});

/** An empty `idempotency_key` is none. `state`, `session_id` and parents sent along are ignored. */
export const CreateInstance = Type.Object(
  {
    sequence_id: Uuid,
    tenant_id: Name,
    namespace: Name,
    priority: optional(PriorityWord),
    timezone: optional(TimeZone),
    metadata: optional(JsonObjectSchema),
    context: optional(GivenContext),
    next_fire_at: optional(Timestamp),
    concurrency_key: optional(Key),
    max_concurrency: optional(Type.Integer({ exclusiveMinimum: 0, maximum: INT32_MAX })),
    idempotency_key: optional(Key),
    dry_run: optional(Type.Boolean()),
    ...unsupported('dry_run_auto_approve', 'budget'),
  },
  { $id: 'CreateInstance' },
);
export type CreateInstance = Static<typeof CreateInstance>;

/** All or nothing; items whose idempotency key matches are deduplicated each. */
export const CreateBatch = Type.Object(
  { instances: Type.Array(CreateInstance, { maxItems: BATCH_INSTANCES_MAX }) },
  { $id: 'CreateBatch' },
);
export type CreateBatch = Static<typeof CreateBatch>;

export const PatchState = Type.Object(
  { state: InstanceStateWord, next_fire_at: optional(Timestamp) },
  { $id: 'PatchState' },
);
export type PatchState = Static<typeof PatchState>;

/** Sections that are sent replace the stored ones; the others are kept. */
export const PatchContext = Type.Object(
  {
    context: Type.Object({
      data: optional(JsonObjectSchema),
      config: optional(JsonObjectSchema),
      audit: optional(Type.Array(AnyJson)),
    }),
  },
  { $id: 'PatchContext' },
);
export type PatchContext = Static<typeof PatchContext>;

/**
 * `pause`, `resume`, `cancel`, `update_context` or `custom:<name>`. The form `{"custom": name}` is
 * taken too and handed on as the string.
 */
const SignalType = Type.Unsafe<string>({
  'x-check': 'signal-type',
  description: 'pause, resume, cancel, update_context or custom:<name>.',
});

export const SendSignal = Type.Object(
  { signal_type: SignalType, payload: Type.Optional(AnyJson) },
  { $id: 'SendSignal' },
);
export type SendSignal = Static<typeof SendSignal>;

/** Top-level string equality on `metadata`, all of them at once. */
const MetadataFilter = Type.Unsafe<Record<string, string>>({
  type: 'object',
  additionalProperties: { type: 'string' },
});

/** Of actions on many. No `states`, null or an empty list: every state. */
export const InstanceFilter = Type.Object({
  tenant_id: optional(Type.String()),
  namespace: optional(Type.String()),
  sequence_id: optional(Uuid),
  states: optional(Type.Array(InstanceStateWord)),
  metadata: optional(MetadataFilter),
});
export type InstanceFilter = Static<typeof InstanceFilter>;

/** Terminal instances are skipped (docs/decisions/0040-changes-of-many-instances.md). */
export const BulkState = Type.Object(
  { filter: InstanceFilter, state: InstanceStateWord },
  { $id: 'BulkState' },
);
export type BulkState = Static<typeof BulkState>;

/** `state` is a comma-separated list on the wire, a list here; blanks and no value mean no filter. */
export const InstanceListQuery = Type.Object({
  tenant_id: Type.Optional(Type.String()),
  namespace: Type.Optional(Type.String()),
  sequence_id: Type.Optional(Uuid),
  state: Type.Optional(Type.Array(InstanceStateWord)),
  metadata: Type.Optional(MetadataFilter),
  offset: Offset,
  limit: Limit(LIST_LIMIT_DEFAULT, LIST_LIMIT_MAX),
});
export type InstanceListQuery = Static<typeof InstanceListQuery>;

/**
 * Everything of one instance; a reply cut at its size goes on at the next offset (docs/limits.md).
 */
export const PageQuery = Type.Object({
  offset: Offset,
  limit: Type.Optional(Type.Integer({ minimum: 0 })),
});
export type PageQuery = Static<typeof PageQuery>;

export const TimelineQuery = Type.Object({
  offset: Offset,
  limit: Limit(200, LIST_LIMIT_MAX, 1),
  include_outputs: Type.Boolean({ default: true }),
});
export type TimelineQuery = Static<typeof TimelineQuery>;

// ---------------------------------------------------------------- replies

export const CapitalPriority = oneOfWords(['Low', 'Normal', 'High', 'Critical']);
export type CapitalPriority = Static<typeof CapitalPriority>;

/** What the engine tells about the run; fields appear once they are known. */
export const RuntimeContext = Type.Object({
  instance_id: Type.Optional(Uuid),
  run_id: Type.Optional(Uuid),
  current_step: Type.Optional(orNull(Type.String())),
  attempt: Type.Optional(Type.Integer()),
  started_at: Type.Optional(orNull(Timestamp)),
  current_step_started_at: Type.Optional(orNull(Timestamp)),
  total_steps_executed: Type.Optional(Type.Integer()),
  dry_run: Type.Optional(Type.Boolean()),
});
export type RuntimeContext = Static<typeof RuntimeContext>;

export const InstanceContext = Type.Object(
  {
    data: JsonObjectSchema,
    config: JsonObjectSchema,
    audit: Type.Array(AnyJson),
    runtime: RuntimeContext,
  },
  { $id: 'InstanceContext' },
);
export type InstanceContext = Static<typeof InstanceContext>;

export const TaskInstance = Type.Object(
  {
    id: Uuid,
    sequence_id: Uuid,
    tenant_id: Type.String(),
    namespace: Type.String(),
    state: InstanceStateWord,
    next_fire_at: orNull(Timestamp),
    priority: CapitalPriority,
    timezone: Type.String(),
    metadata: JsonObjectSchema,
    context: InstanceContext,
    concurrency_key: Type.Optional(Type.String()),
    max_concurrency: Type.Optional(Type.Integer()),
    idempotency_key: Type.Optional(Type.String()),
    parent_instance_id: Type.Optional(Uuid),
    created_at: Timestamp,
    updated_at: Timestamp,
  },
  { $id: 'TaskInstance' },
);
export type TaskInstance = Static<typeof TaskInstance>;

export const InstanceList = Type.Array(TaskInstance);
export type InstanceList = Static<typeof InstanceList>;

export const InstanceCreated = Type.Object(
  { id: Uuid, deduplicated: Type.Boolean() },
  { $id: 'InstanceCreated' },
);
export type InstanceCreated = Static<typeof InstanceCreated>;

/** `count` of accepted items, `created` of new ones. */
export const BatchCreated = Type.Object(
  { count: Type.Integer(), created: Type.Integer() },
  { $id: 'BatchCreated' },
);
export type BatchCreated = Static<typeof BatchCreated>;

/** `updated` repeats `count` for older clients. */
export const BulkUpdated = Type.Object(
  { count: Type.Integer(), updated: Type.Integer() },
  { $id: 'BulkUpdated' },
);
export type BulkUpdated = Static<typeof BulkUpdated>;

export const ContextPatched = Type.Object({ context: InstanceContext }, { $id: 'ContextPatched' });
export type ContextPatched = Static<typeof ContextPatched>;

export const SignalAccepted = Type.Object({ signal_id: Uuid }, { $id: 'SignalAccepted' });
export type SignalAccepted = Static<typeof SignalAccepted>;

export const InstanceRetried = Type.Object(
  { id: Uuid, state: Type.Literal('scheduled') },
  { $id: 'InstanceRetried' },
);
export type InstanceRetried = Static<typeof InstanceRetried>;

/**
 * `attempt` is 0-based; `output_size` is in bytes of compact JSON (docs/reference/instances.md).
 */
export const BlockOutput = Type.Object(
  {
    id: Uuid,
    instance_id: Uuid,
    block_id: Type.String(),
    output: AnyJson,
    output_ref: orNull(Type.String()),
    output_size: Type.Integer(),
    attempt: Type.Integer(),
    created_at: Timestamp,
  },
  { $id: 'BlockOutput' },
);
export type BlockOutput = Static<typeof BlockOutput>;

export const TreeNode = Type.Object(
  {
    id: Uuid,
    instance_id: Uuid,
    block_id: Type.String(),
    parent_id: orNull(Uuid),
    block_type: Type.String(),
    branch_index: orNull(Type.Integer()),
    state: oneOfWords(NODE_STATES),
    started_at: orNull(Timestamp),
    completed_at: orNull(Timestamp),
  },
  { $id: 'TreeNode' },
);
export type TreeNode = Static<typeof TreeNode>;

/** Newest first, at most 200 of an instance. */
export const AuditEntry = Type.Object(
  {
    id: Uuid,
    instance_id: Uuid,
    tenant_id: Type.String(),
    event_type: Type.String(),
    from_state: Type.Optional(InstanceStateWord),
    to_state: Type.Optional(InstanceStateWord),
    block_id: Type.Optional(Type.String()),
    details: AnyJson,
    created_at: Timestamp,
  },
  { $id: 'AuditEntry' },
);
export type AuditEntry = Static<typeof AuditEntry>;

export const StateTransition = Type.Object({
  from_state: Type.Optional(InstanceStateWord),
  to_state: Type.Optional(InstanceStateWord),
  at: Timestamp,
});
export type StateTransition = Static<typeof StateTransition>;

export const TimelineEntry = Type.Object({
  block_id: Type.String(),
  attempt: Type.Integer(),
  completed_at: Timestamp,
  output: Type.Optional(AnyJson),
  output_ref: Type.Optional(orNull(Type.String())),
  is_sentinel: Type.Boolean(),
});
export type TimelineEntry = Static<typeof TimelineEntry>;

/** Oldest first; bookkeeping rows are marked `is_sentinel`, not hidden. */
export const Timeline = Type.Object(
  {
    instance: Type.Object({
      id: Uuid,
      sequence_id: Uuid,
      state: InstanceStateWord,
      created_at: Timestamp,
      updated_at: Timestamp,
      context: Type.Optional(InstanceContext),
    }),
    state_transitions: Type.Array(StateTransition),
    entries: Type.Array(TimelineEntry),
    offset: Type.Integer(),
    limit: Type.Integer(),
    has_more: Type.Boolean(),
  },
  { $id: 'Timeline' },
);
export type Timeline = Static<typeof Timeline>;
