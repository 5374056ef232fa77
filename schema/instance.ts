/**
 * Wire shapes and routes of instances, their signals and history (docs/reference/instances.md). Responses omit unset
 * optional fields; fields typed with null are always present.
 */

import { type Static, Type } from '@sinclair/typebox';
import { BLOCK_QUERY } from './attempt.js';
import { BulkJob, BulkQuery, RepeatsEffects } from './bulk-job.js';
import { UNCHANGED } from './change-shapes.js';
import {
  ALL_BY_KEY,
  AnyJson,
  BodyTenant,
  Cursor,
  checked,
  DryRun,
  DurationMs,
  flag,
  INT32_MAX,
  InstanceStateWord,
  JsonObjectSchema,
  KEY_LENGTH_MAX,
  Key,
  LIST_LIMIT_MAX,
  Limit,
  Name,
  Natural,
  named,
  noted,
  Offset,
  Orphans,
  oneOfWords,
  optional,
  orNull,
  PriorityWord,
  pageOf,
  SEQUENCE_REFERENCE,
  Timestamp,
  TimeZone,
  Uuid,
  unsupported,
  withDefault,
} from './common.js';
import { Failure, FailureOrNull } from './failure.js';
import { InstanceFilter, SELECTION } from './instance-filter.js';
import {
  actById,
  byId,
  get,
  getById,
  listOf,
  type RouteRow,
  refusals,
  rowsOf,
} from './route-row.js';
import { SignalAccepted, SignalListQuery, StoredSignal } from './signal.js';
import { NODE_STATES } from './states.js';
import { strictNamed, strictObject } from './strict.js';

const BATCH_INSTANCES_MAX = 10_000;
const AUDIT_LIMIT_DEFAULT = 200;

/** Only `data` and `config` are accepted; the engine keeps the other sections. */
export const GivenContext = Type.Object({
  data: optional(JsonObjectSchema),
  config: optional(JsonObjectSchema),
});

/** Not inherited by children. */
export const InstanceTimeout = noted(
  DurationMs,
  'Maximum duration in ms from the first step, without pauses; then it fails.',
);

/** Not empty: an empty key would be a mistake, or no limit where one was meant. */
const ConcurrencyKey = Type.String({ minLength: 1, maxLength: KEY_LENGTH_MAX });

/** An empty `idempotency_key` is absent. `state`, `session_id` and parents are ignored. */
export const CreateInstance = checked(
  'sequence-or-id',
  named('CreateInstance', 'One instance, alone or in a batch.', {
    ...SEQUENCE_REFERENCE,
    tenant_id: BodyTenant,
    namespace: Name,
    priority: optional(withDefault(PriorityWord, 'normal')),
    timezone: optional(withDefault(TimeZone, 'UTC')),
    metadata: optional(JsonObjectSchema),
    context: optional(
      noted(GivenContext, 'At most 256 KiB as JSON, unless the deployment sets another limit.'),
    ),
    next_fire_at: optional(noted(Timestamp, 'Start time; default: now.')),
    timeout: optional(InstanceTimeout),
    concurrency_key: optional(
      noted(ConcurrencyKey, 'Instances of the tenant with this key share a concurrency limit.'),
    ),
    max_concurrency: noted(
      optional(Type.Integer({ exclusiveMinimum: 0, maximum: INT32_MAX })),
      'Maximum number of these instances that run at once.',
    ),
    idempotency_key: noted(
      optional(Key),
      'If an instance of the tenant has this key, its id is returned with deduplicated true.',
    ),
    dry_run: flag(false),
    dry_run_auto_approve: noted(
      flag(false),
      'In a dry run, approvals are answered immediately with the first choice.',
    ),
    ...unsupported('budget'),
  }),
);
export type CreateInstance = Static<typeof CreateInstance>;

/** Each item is deduplicated by its own idempotency key. */
export const CreateBatch = strictNamed('CreateBatch', 'Creates all instances or none.', {
  instances: Type.Array(CreateInstance, { maxItems: BATCH_INSTANCES_MAX }),
});
export type CreateBatch = Static<typeof CreateBatch>;

export const PatchState = named('PatchState', {
  state: InstanceStateWord,
  next_fire_at: noted(
    optional(Timestamp),
    'For a change to scheduled. Default: now, or for a paused ' +
      'instance the time at which it would continue.',
  ),
});

export const PatchContext = named('PatchContext', 'Replaces given sections and keeps the others.', {
  context: Type.Object({
    data: optional(JsonObjectSchema),
    config: optional(JsonObjectSchema),
    audit: optional(Type.Array(AnyJson)),
  }),
  ...UNCHANGED,
});

/**
 * `pause`, `resume`, `cancel`, `update_context` or `custom:<name>`. The form `{"custom": name}` is accepted too, and
 * becomes a string.
 */
const SignalType = Type.Unsafe<string>({
  'x-check': 'signal-type',
  description: 'pause, resume, cancel, update_context or custom:<name>.',
});

/** Before a block id: the answer to its `wait_for_input`. */
export const GATE_SIGNAL = 'custom:human_input:';

export const SendSignal = named('SendSignal', {
  signal_type: SignalType,
  payload: Type.Optional(AnyJson),
});
export type SendSignal = Static<typeof SendSignal>;

/** Terminal instances are skipped (docs/decisions/0019-bulk-changes.md). */
export const BulkState = strictNamed('BulkState', {
  filter: InstanceFilter,
  state: InstanceStateWord,
  dry_run: DryRun,
  orphans: Orphans,
});
export type BulkState = Static<typeof BulkState>;

/** `state` is a comma-separated list on the wire; empty means no filter. */
const InstanceListQuery = Type.Object({
  ...Type.Partial(Type.Object(SELECTION)).properties,
  state: Type.Optional(Type.Array(InstanceStateWord)),
  ...pageOf(),
});

/** A definition may have 5,000 blocks: pages request a part. */
const TreeQuery = Type.Object({
  block_id: Type.Optional(noted(Type.String(), 'Only this block and the blocks inside it.')),
  depth: noted(Type.Optional(Type.Integer({ minimum: 0 })), 'Number of levels below the first.'),
});

const ChildListQuery = Type.Object({
  ...ALL_BY_KEY,
  state: Type.Optional(Type.Array(InstanceStateWord)),
});

export const MaxBytes = noted(
  Type.Optional(Type.Integer({ minimum: 1 })),
  'Maximum size of the response, which has at least one row.',
);

const OutputListQuery = Type.Object({
  ...BLOCK_QUERY,
  ...ALL_BY_KEY,
  max_bytes: MaxBytes,
});

const AuditListQuery = Type.Object({
  limit: Limit(AUDIT_LIMIT_DEFAULT, LIST_LIMIT_MAX, 1),
  cursor: Cursor,
});

const TimelineQuery = strictObject({
  ...BLOCK_QUERY,
  cursor: Cursor,
  max_bytes: MaxBytes,
  offset: Offset,
  limit: Limit(200, LIST_LIMIT_MAX, 1),
  include_outputs: Type.Boolean({ default: true }),
});

export const CapitalPriority = oneOfWords(['Low', 'Normal', 'High', 'Critical']);
export type CapitalPriority = Static<typeof CapitalPriority>;

/** Facts about the run; fields appear once they are known. */
const RuntimeContext = Type.Object({
  instance_id: Type.Optional(Uuid),
  run_id: Type.Optional(Uuid),
  current_step: Type.Optional(orNull(Type.String())),
  attempt: Type.Optional(Type.Integer()),
  started_at: Type.Optional(orNull(Timestamp)),
  current_step_started_at: Type.Optional(orNull(Timestamp)),
  total_steps_executed: Type.Optional(Type.Integer()),
  dry_run: Type.Optional(Type.Boolean()),
  dry_run_auto_approve: Type.Optional(Type.Boolean()),
});

export const InstanceContext = named(
  'InstanceContext',
  'data, config and audit: together at most 256 KiB, unless the deployment sets another limit.',
  {
    data: JsonObjectSchema,
    config: JsonObjectSchema,
    audit: Type.Array(AnyJson),
    runtime: RuntimeContext,
  },
);
export type InstanceContext = Static<typeof InstanceContext>;

export const Cancelling = named('Cancelling', 'Cancelled or timed out; finishes protected work.', {
  since: Timestamp,
  reason: oneOfWords(['cancel', 'timeout']),
  waiting_for: Type.Array(noted(Type.String(), 'Running blocks, at most 20.')),
});
export type Cancelling = Static<typeof Cancelling>;

export const TaskInstance = named('TaskInstance', 'A run of a sequence.', {
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
  timeout: Type.Optional(noted(Type.Integer(), 'As requested.')),
  failure: noted(FailureOrNull, 'The failure; null if it has not failed or was retried since.'),
  cancelling: Type.Optional(Cancelling),
  created_at: Timestamp,
  updated_at: Timestamp,
});
export type TaskInstance = Static<typeof TaskInstance>;

const InstanceList = Type.Array(TaskInstance);

export const InstanceCreated = named('InstanceCreated', {
  id: Uuid,
  deduplicated: noted(Type.Boolean(), 'True: id is that of an existing instance.'),
});
export type InstanceCreated = Static<typeof InstanceCreated>;

export const BatchCreated = named('BatchCreated', {
  count: Type.Integer({ description: 'Accepted items.' }),
  created: Type.Integer({ description: 'New instances.' }),
});
export type BatchCreated = Static<typeof BatchCreated>;

export const BulkUpdated = named('BulkUpdated', {
  count: noted(Type.Integer(), 'Changed instances; with dry_run, those that would be changed.'),
  updated: Type.Integer({ description: 'Alias of count for older clients; 0 with dry_run.' }),
  dry_run: Type.Optional(Type.Literal(true)),
  repeats_effects: Type.Optional(noted(RepeatsEffects, 'Absent: 0.')),
});
export type BulkUpdated = Static<typeof BulkUpdated>;

export const ContextPatched = named('ContextPatched', { context: InstanceContext });

export const InstanceRetried = named('InstanceRetried', {
  id: Uuid,
  state: Type.Literal('scheduled'),
});
export type InstanceRetried = Static<typeof InstanceRetried>;

/** Absent outside loops. */
const Iteration = noted(Type.String(), 'Counters of the enclosing loops, such as 2.0.');

/** `output_size` is in bytes of compact JSON (docs/reference/instances.md). */
export const BlockOutput = named('BlockOutput', 'Output of a block. attempt counts from 0.', {
  id: Uuid,
  instance_id: Uuid,
  block_id: Type.String(),
  output: AnyJson,
  output_ref: orNull(Type.String()),
  output_size: Type.Integer(),
  attempt: Type.Integer(),
  iteration: Type.Optional(Iteration),
  created_at: Timestamp,
});
export type BlockOutput = Static<typeof BlockOutput>;

export const ItemCounts = named('ItemCounts', 'Items of an open for_each.', {
  total: Natural,
  running: Natural,
  ended: Natural,
});

export const TreeNode = named('TreeNode', {
  id: Uuid,
  instance_id: Uuid,
  block_id: Type.String(),
  parent_id: orNull(Uuid),
  block_type: Type.String(),
  branch_index: orNull(Type.Integer()),
  state: oneOfWords(NODE_STATES),
  child_instance_id: Type.Optional(noted(Uuid, 'For a sub_sequence: its last child.')),
  started_at: orNull(Timestamp),
  completed_at: orNull(Timestamp),
  items: Type.Optional(ItemCounts),
  iteration: Type.Optional(
    Type.Integer({ description: 'For an open loop: the current iteration, from 0.' }),
  ),
  output_count: noted(Type.Optional(Type.Integer()), 'In loops: output rows over all iterations.'),
});
export type TreeNode = Static<typeof TreeNode>;

/** Newest first, at most 200 of an instance. */
export const AuditEntry = named('AuditEntry', {
  id: Uuid,
  instance_id: Uuid,
  tenant_id: Type.String(),
  event_type: Type.String(),
  from_state: Type.Optional(InstanceStateWord),
  to_state: Type.Optional(InstanceStateWord),
  block_id: Type.Optional(Type.String()),
  details: AnyJson,
  failure: Type.Optional(noted(Failure, 'Present for a change to failed.')),
  created_at: Timestamp,
});
export type AuditEntry = Static<typeof AuditEntry>;

export const StateTransition = Type.Object({
  from_state: Type.Optional(InstanceStateWord),
  to_state: Type.Optional(InstanceStateWord),
  at: Timestamp,
});

export const TimelineEntry = Type.Object({
  block_id: Type.String(),
  attempt: Type.Integer(),
  iteration: Type.Optional(Iteration),
  completed_at: Timestamp,
  output: Type.Optional(AnyJson),
  output_ref: Type.Optional(orNull(Type.String())),
  is_sentinel: Type.Boolean(),
});

/** Oldest first; internal rows are marked `is_sentinel`, not hidden. */
export const Timeline = named('Timeline', {
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
});
export type Timeline = Static<typeof Timeline>;

/** Reads of the current state, by its owner. */
const ask = rowsOf({ method: 'GET', ...byId }, 400, 404);

export const INSTANCE_ROWS = {
  'instances.create': {
    method: 'POST',
    path: '/instances',
    summary: 'Create an instance of a sequence.',
    owner: 'by-body',
    ledBy: { kind: 'instance-key', members: ['idempotency_key', 'tenant_id', 'dry_run'] },
    body: CreateInstance,
    bodySize: 'large',
    makes: 'instance',
    keyed: 'body',
    replies: { 201: InstanceCreated, ...refusals(400, 404, 409, 413, 422) },
  },
  'instances.createBatch': {
    method: 'POST',
    path: '/instances/batch',
    summary: 'Create up to 10,000 instances, all or none.',
    owner: 'any-shard',
    body: CreateBatch,
    bodySize: 'large',
    isTenantInBody: true,
    makes: 'instances',
    keyed: 'items',
    replies: { 201: BatchCreated, ...refusals(400, 404, 413, 422) },
  },
  'instances.list': get('/instances', 'List instances, newest first.', InstanceList, {
    query: InstanceListQuery,
  }),
  'instances.deadLetters': get(
    '/instances/dlq',
    'List failed instances, newest first.',
    InstanceList,
    { query: InstanceListQuery },
  ),
  'instances.bulkState': {
    method: 'PATCH',
    path: '/instances/bulk/state',
    summary: 'Set the state of all matching instances that are neither completed nor cancelled.',
    owner: 'front',
    query: BulkQuery,
    body: BulkState,
    replies: { 200: BulkUpdated, 202: BulkJob, ...refusals(400, 429) },
  },
  'instances.get': ask('/instances/{id}', 'Get an instance.', TaskInstance),
  'instances.patchState': {
    method: 'PATCH',
    path: '/instances/{id}/state',
    summary: 'Change the state of an instance.',
    ...byId,
    body: PatchState,
    replies: { 200: TaskInstance, ...refusals(400, 404, 409) },
  },
  'instances.patchContext': {
    method: 'PATCH',
    path: '/instances/{id}/context',
    summary: 'Replace sections of the context.',
    ...byId,
    body: PatchContext,
    bodySize: 'large',
    repeats: 'the same members get the same values',
    replies: { 200: ContextPatched, ...refusals(400, 404, 409, 413) },
  },
  'instances.signal': {
    ...actById,
    path: '/instances/{id}/signals',
    summary: 'Send a signal to an instance.',
    body: SendSignal,
    bodySize: 'large',
    answers: GATE_SIGNAL,
    bringsSignals: true,
    replies: { 201: SignalAccepted, ...refusals(400, 404, 409, 413) },
  },
  'instances.signals': getById(
    '/instances/{id}/signals',
    'List the signals of an instance, oldest first, with their status.',
    listOf(StoredSignal),
    { query: SignalListQuery },
  ),
  'instances.tree': ask(
    '/instances/{id}/tree',
    'Get the nodes of the execution tree.',
    listOf(TreeNode),
    { query: TreeQuery },
  ),
  'instances.outputs': getById(
    '/instances/{id}/outputs',
    'List block outputs, oldest first.',
    listOf(BlockOutput),
    { query: OutputListQuery },
  ),
  'instances.children': getById(
    '/instances/{id}/children',
    'List the child instances, oldest first.',
    InstanceList,
    { query: ChildListQuery },
  ),
  'instances.audit': getById(
    '/instances/{id}/audit',
    'List the audit entries of an instance, newest first.',
    listOf(AuditEntry),
    { query: AuditListQuery },
  ),
  'instances.timeline': getById(
    '/instances/{id}/timeline',
    'Get state transitions and outputs in chronological order.',
    Timeline,
    { query: TimelineQuery },
  ),
} as const satisfies Record<string, RouteRow>;
