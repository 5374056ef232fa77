/**
 * Wire shapes and routes of instances, their signals and history (docs/reference/instances.md). Responses omit unset
 * optional fields; fields typed with null are always present.
 */

import { BLOCK_QUERY } from './attempt.js';
import { BulkJob, BulkQuery, RepeatsEffects } from './bulk-job.js';
import { UNCHANGED } from './change-shapes.js';
import * as t from './common.js';
import { Failure, FailureOrNull } from './failure.js';
import { InstanceFilter, SELECTION } from './instance-filter.js';
import { COLLECTED } from './pending-start.js';
import {
  anyShard,
  byBody,
  byId,
  created,
  did,
  front,
  get,
  getById,
  ok,
  type RouteRow,
  refusals,
  rowsOf,
} from './route-row.js';
import { SignalAccepted, SignalAnswer, SignalListQuery, StoredSignal } from './signal.js';
import { NODE_STATES } from './states.js';
import { PollWait } from './worker.js';

const BATCH_INSTANCES_MAX = 10_000;
const AUDIT_LIMIT_DEFAULT = 200;

/** Only `data` and `config` are accepted; the engine keeps the other sections. */
export const GivenContext = t.object({
  data: t.nullish(t.JsonObjectSchema),
  config: t.nullish(t.JsonObjectSchema),
});

/** Not inherited by children. */
export const InstanceTimeout = t.noted(
  t.DurationMs,
  'Maximum duration in ms from the first step, without pauses; then it fails.',
);

/** Not empty: an empty key would be a mistake, or no limit where one was meant. */
const ConcurrencyKey = t.text({ minLength: 1, maxLength: t.KEY_LENGTH_MAX });

/** An empty `idempotency_key` is absent. `state`, `session_id` and parents are ignored. */
export const CreateInstance = t.checked(
  'sequence-or-id',
  t.named('CreateInstance', 'One instance, alone or in a batch.', {
    ...t.SEQUENCE_REFERENCE,
    tenant_id: t.BodyTenant,
    namespace: t.Name,
    priority: t.nullish(t.withDefault(t.PriorityWord, 'normal')),
    timezone: t.nullish(t.withDefault(t.TimeZone, 'UTC')),
    metadata: t.nullish(t.JsonObjectSchema),
    context: t.nullish(GivenContext, 'At most 256 KiB as JSON; deployments may set another limit.'),
    next_fire_at: t.nullish(t.Timestamp, 'Start time; default: now.'),
    timeout: t.nullish(InstanceTimeout),
    concurrency_key: t.nullish(ConcurrencyKey, 'Instances with this key share max_concurrency.'),
    max_concurrency: t.nullish(
      t.integer({ exclusiveMinimum: 0, maximum: t.INT32_MAX }),
      'Maximum number of these instances that run at once.',
    ),
    idempotency_key: t.nullish(t.Key, 'A repeated key returns the id of the first instance.'),
    dry_run: t.flag(false),
    dry_run_auto_approve: t.flag(false, 'In a dry run, approvals get their first choice.'),
    ...t.unsupported('budget'),
  }),
);
export type CreateInstance = t.Static<typeof CreateInstance>;

/** Each item is deduplicated by its own idempotency key. */
export const CreateBatch = t.strictNamed(
  'CreateBatch',
  'Creates all instances or none, except items that may be skipped.',
  {
    instances: t.list(CreateInstance, { maxItems: BATCH_INSTANCES_MAX }),
  },
);
export type CreateBatch = t.Static<typeof CreateBatch>;

export const PatchState = t.named('PatchState', {
  state: t.InstanceStateWord,
  next_fire_at: t.nullish(
    t.Timestamp,
    'For a change to scheduled. Default: now, or for a paused ' +
      'instance the time at which it would continue.',
  ),
});

export const PatchContext = t.named('PatchContext', 'Replaces the given sections of the context.', {
  context: t.object({
    data: t.nullish(t.JsonObjectSchema),
    config: t.nullish(t.JsonObjectSchema),
    audit: t.nullish(t.list(t.AnyJson)),
  }),
  ...UNCHANGED,
});

/**
 * `pause`, `resume`, `cancel`, `update_context` or `custom:<name>`. The form `{"custom": name}` is accepted too, and
 * becomes a string.
 */
const SignalType = t.typed<string>({
  'x-check': 'signal-type',
  description: 'pause, resume, cancel, update_context or custom:<name>.',
});

/** Before a block id: the answer to its `wait_for_input`. */
export const GATE_SIGNAL = 'custom:human_input:';

export const SendSignal = t.named('SendSignal', {
  signal_type: SignalType,
  payload: t.optional(t.AnyJson),
});

/** Terminal instances are skipped (docs/decisions/0019-bulk-changes.md). */
export const BulkState = t.strictNamed('BulkState', {
  filter: InstanceFilter,
  state: t.InstanceStateWord,
  dry_run: t.DryRun,
  orphans: t.Orphans,
});
export type BulkState = t.Static<typeof BulkState>;

/** `state` is a comma-separated list on the wire; empty means no filter. */
const InstanceListQuery = t.object({
  ...t.allOptional(SELECTION),
  state: t.optional(t.list(t.InstanceStateWord)),
  ...t.pageOf(),
});

/** Rows read for one answer, in some tens of milliseconds. */
export const COUNTED_INSTANCES_MAX = 10_000;
const Count = t.integer({ minimum: 0 });

export const InstanceCounts = t.named('InstanceCounts', 'Matching instances by state.', {
  scheduled: Count,
  running: Count,
  waiting: Count,
  paused: Count,
  completed: Count,
  failed: Count,
  cancelled: Count,
  looked_at: t.noted(Count, `Examined newest instances, at most ${COUNTED_INSTANCES_MAX}.`),
  complete: t.boolean('False: there may be further matches among older instances.'),
});
export type InstanceCounts = t.Static<typeof InstanceCounts>;

/** A definition may have 5,000 blocks: pages request a part. */
const TreeQuery = t.object({
  block_id: t.optional(t.text('Only this block and the blocks inside.')),
  depth: t.optional(t.integer({ minimum: 0 }), 'Number of levels below the first.'),
});

export const MaxBytes = t.optional(
  t.integer({ minimum: 1 }),
  'Maximum size of the response, which has at least one row.',
);

const TimelineQuery = t.strictObject({
  ...BLOCK_QUERY,
  cursor: t.Cursor,
  max_bytes: MaxBytes,
  offset: t.Offset,
  limit: t.Limit(200, t.LIST_LIMIT_MAX, 1),
  include_outputs: t.boolean({ default: true }),
});

export const CapitalPriority = t.oneOf(['Low', 'Normal', 'High', 'Critical']);

/** Facts about the run; fields appear once they are known. */
const RuntimeContext = t.object({
  instance_id: t.optional(t.Uuid),
  run_id: t.optional(t.Uuid),
  current_step: t.optional(t.nullable(t.text())),
  attempt: t.optional(t.integer()),
  started_at: t.optional(t.nullable(t.Timestamp)),
  current_step_started_at: t.optional(t.nullable(t.Timestamp)),
  total_steps_executed: t.optional(t.integer()),
  dry_run: t.optional(t.boolean()),
  dry_run_auto_approve: t.optional(t.boolean()),
});

export const InstanceContext = t.named(
  'InstanceContext',
  'data, config and audit: together at most 256 KiB, unless the deployment sets another limit.',
  {
    data: t.JsonObjectSchema,
    config: t.JsonObjectSchema,
    audit: t.list(t.AnyJson),
    runtime: RuntimeContext,
  },
);
export type InstanceContext = t.Static<typeof InstanceContext>;

export const Cancelling = t.named('Cancelling', 'Protected work of a cancelled instance.', {
  since: t.Timestamp,
  reason: t.oneOf(['cancel', 'timeout']),
  waiting_for: t.list(t.text(), 'Ids of running blocks, at most 20.'),
});
export type Cancelling = t.Static<typeof Cancelling>;

export const TaskInstance = t.named('TaskInstance', 'A run of a sequence.', {
  id: t.Uuid,
  sequence_id: t.Uuid,
  tenant_id: t.text(),
  namespace: t.text(),
  state: t.InstanceStateWord,
  next_fire_at: t.nullable(t.Timestamp),
  priority: CapitalPriority,
  timezone: t.text(),
  metadata: t.JsonObjectSchema,
  context: InstanceContext,
  concurrency_key: t.optional(t.text()),
  max_concurrency: t.optional(t.integer()),
  idempotency_key: t.optional(t.text()),
  parent_instance_id: t.optional(t.Uuid),
  timeout: t.optional(t.integer('Time limit in ms, as requested.')),
  traceparent: t.optional(
    t.text('The W3C trace that its steps continue: of its creation, or of a later signal.'),
  ),
  failure: t.noted(FailureOrNull, 'The failure; null if it has not failed or was retried since.'),
  cancelling: t.optional(Cancelling),
  created_at: t.Timestamp,
  updated_at: t.Timestamp,
});
export type TaskInstance = t.Static<typeof TaskInstance>;

const InstanceList = t.list(TaskInstance);

/** The id of the answer is that of the newest holder. */
export const SKIPPED = t.optional(
  t.literal(true),
  'Nothing was created, since all slots are taken (when_full: skip).',
);

export const InstanceCreated = t.named('InstanceCreated', {
  id: t.Uuid,
  deduplicated: t.boolean('True: id is that of an existing instance.'),
  skipped: SKIPPED,
  ...COLLECTED,
});
export type InstanceCreated = t.Static<typeof InstanceCreated>;

export const InstanceResult = t.named(
  'InstanceResult',
  'What became of a creation that waited. Without state nothing was created (skipped).',
  {
    ...InstanceCreated.properties,
    state: t.optional(t.InstanceStateWord),
    outputs: t.optional(
      t.JsonObjectSchema,
      'The last output of each block, by block id, once the instance has ended. Absent if they are ' +
        'together larger than 1 MiB: read /outputs.',
    ),
    failure: t.optional(FailureOrNull, 'The failure; null if it has not failed.'),
  },
);
export type InstanceResult = t.Static<typeof InstanceResult>;

export const BatchCreated = t.named('BatchCreated', {
  count: t.integer('Number of accepted items.'),
  created: t.integer('Number of new instances.'),
  skipped: t.optional(t.integer('Number of items that created nothing (when_full: skip).')),
});
export type BatchCreated = t.Static<typeof BatchCreated>;

export const BulkUpdated = t.named('BulkUpdated', {
  count: t.integer('Number of instances changed or, with dry_run, to be changed.'),
  updated: t.integer('Alias of count for older clients; 0 with dry_run.'),
  dry_run: t.optional(t.literal(true)),
  repeats_effects: t.optional(RepeatsEffects, 'Absent: 0.'),
});
export type BulkUpdated = t.Static<typeof BulkUpdated>;

export const ContextPatched = t.named('ContextPatched', { context: InstanceContext });

export const InstanceRetried = t.named('InstanceRetried', {
  id: t.Uuid,
  state: t.literal('scheduled'),
});

/** Absent outside loops. */
const Iteration = t.text('Counters of the enclosing loops, such as 2.0.');

/** `output_size` is in bytes of compact JSON (docs/reference/instances.md). */
export const BlockOutput = t.named('BlockOutput', 'Output of a block. attempt counts from 0.', {
  id: t.Uuid,
  instance_id: t.Uuid,
  block_id: t.text(),
  output: t.AnyJson,
  output_ref: t.nullable(t.text()),
  output_size: t.integer(),
  attempt: t.integer(),
  iteration: t.optional(Iteration),
  created_at: t.Timestamp,
});
export type BlockOutput = t.Static<typeof BlockOutput>;

export const ItemCounts = t.named('ItemCounts', 'Items of an open for_each.', {
  total: t.Natural,
  running: t.Natural,
  ended: t.Natural,
});

export const TreeNode = t.named('TreeNode', {
  id: t.Uuid,
  instance_id: t.Uuid,
  block_id: t.text(),
  parent_id: t.nullable(t.Uuid),
  block_type: t.text(),
  branch_index: t.nullable(t.integer()),
  state: t.oneOf(NODE_STATES),
  child_instance_id: t.optional(t.Uuid, 'For a sub_sequence: its last child.'),
  started_at: t.nullable(t.Timestamp),
  completed_at: t.nullable(t.Timestamp),
  items: t.optional(ItemCounts),
  iteration: t.optional(t.integer('For an open loop: the current iteration, from 0.')),
  output_count: t.optional(t.integer(), 'In loops: output rows over all iterations.'),
});
export type TreeNode = t.Static<typeof TreeNode>;

/** Newest first, at most 200 of an instance. */
export const AuditEntry = t.named('AuditEntry', {
  id: t.Uuid,
  instance_id: t.Uuid,
  tenant_id: t.text(),
  event_type: t.text(),
  from_state: t.optional(t.InstanceStateWord),
  to_state: t.optional(t.InstanceStateWord),
  block_id: t.optional(t.text()),
  details: t.AnyJson,
  failure: t.optional(Failure, 'Present for a change to failed.'),
  created_at: t.Timestamp,
});
export type AuditEntry = t.Static<typeof AuditEntry>;

export const StateTransition = t.object({
  from_state: t.optional(t.InstanceStateWord),
  to_state: t.optional(t.InstanceStateWord),
  at: t.Timestamp,
});

export const TimelineEntry = t.object({
  block_id: t.text(),
  attempt: t.integer(),
  iteration: t.optional(Iteration),
  completed_at: t.Timestamp,
  output: t.optional(t.AnyJson),
  output_ref: t.optional(t.nullable(t.text())),
  is_sentinel: t.boolean(),
});

/** Oldest first; internal rows are marked `is_sentinel`, not hidden. */
export const Timeline = t.named('Timeline', {
  instance: t.object({
    id: t.Uuid,
    sequence_id: t.Uuid,
    state: t.InstanceStateWord,
    created_at: t.Timestamp,
    updated_at: t.Timestamp,
    context: t.optional(InstanceContext),
  }),
  state_transitions: t.list(StateTransition),
  entries: t.list(TimelineEntry),
  offset: t.integer(),
  limit: t.integer(),
  has_more: t.boolean(),
});
export type Timeline = t.Static<typeof Timeline>;

/** How long the response may wait; without it the response is the same as ever. */
const waitingFor = (what: string) =>
  t.object({ wait_ms: t.optional(PollWait, `Maximum wait in ms for ${what}.`) });

/** Reads of the current state, by its owner. */
const ask = rowsOf({ method: 'GET', owner: 'by-id' }, 400, 404);

export const INSTANCE_ROWS = {
  'instances.create': byBody.post('/instances', {
    summary: 'Create an instance of a sequence.',
    ledBy: { kind: 'instance-key', members: ['idempotency_key', 'tenant_id', 'dry_run'] },
    query: waitingFor('the end of the instance'),
    mayWait: true,
    body: CreateInstance,
    bodySize: 'large',
    makes: 'instance',
    keyed: 'body',
    replies: {
      ...created(InstanceCreated, 404, 409, 413, 422),
      200: InstanceResult,
      202: InstanceResult,
    },
  }),
  'instances.createBatch': anyShard.post('/instances/batch', {
    summary: 'Create up to 10,000 instances, all or none.',
    query: t.strictObject({}),
    body: CreateBatch,
    bodySize: 'large',
    isTenantInBody: true,
    makes: 'instances',
    keyed: 'items',
    replies: created(BatchCreated, 404, 413, 422),
  }),
  'instances.list': get('/instances', 'List instances, newest first.', InstanceList, {
    query: InstanceListQuery,
  }),
  'instances.deadLetters': get(
    '/instances/dlq',
    'List failed instances, newest first.',
    InstanceList,
    { query: InstanceListQuery },
  ),
  'instances.counts': get(
    '/instances/counts',
    'Count matching instances by state.',
    InstanceCounts,
    { query: t.strictObject(t.allOptional(SELECTION)) },
  ),
  'instances.bulkState': front.patch('/instances/bulk/state', {
    summary: 'Set the state of all matching instances that are neither completed nor cancelled.',
    query: BulkQuery,
    body: BulkState,
    replies: { 200: BulkUpdated, 202: BulkJob, ...refusals(400, 429) },
    action: did('bulk_job', 'set the state of many instances by', {
      shows: ['state'],
      unless: ['dry_run'],
    }),
  }),
  'instances.get': ask('/instances/{id}', 'Get an instance.', TaskInstance),
  'instances.patchState': byId.patch('/instances/{id}/state', {
    summary: 'Change the state of an instance.',
    body: PatchState,
    replies: ok(TaskInstance, 404, 409),
    action: did('instance', 'changed the state of', {
      shows: ['state'],
      words: { state: { cancelled: 'cancelled', paused: 'paused', scheduled: 'scheduled' } },
    }),
  }),
  'instances.patchContext': byId.patch('/instances/{id}/context', {
    summary: 'Replace sections of the context.',
    body: PatchContext,
    bodySize: 'large',
    repeats: 'the same members get the same values',
    replies: ok(ContextPatched, 404, 409, 413),
    action: did('instance', 'changed the context of'),
  }),
  'instances.signal': byId.post('/instances/{id}/signals', {
    summary: 'Send a signal to an instance.',
    query: waitingFor('a step to take the signal'),
    mayWait: true,
    body: SendSignal,
    bodySize: 'large',
    answers: GATE_SIGNAL,
    bringsSignals: true,
    replies: {
      ...created(SignalAccepted, 404, 409, 413),
      200: SignalAnswer,
      202: SignalAnswer,
    },
    action: did('instance', 'sent a signal to', {
      shows: ['signal_type'],
      words: {
        signal_type: {
          pause: 'paused',
          resume: 'resumed',
          cancel: 'cancelled',
          update_context: 'updated the context of',
        },
      },
      isOnlyOfWords: true,
    }),
  }),
  'instances.signals': getById(
    '/instances/{id}/signals',
    'List the signals of an instance, oldest first, with their status.',
    t.list(StoredSignal),
    { query: SignalListQuery },
  ),
  'instances.tree': ask(
    '/instances/{id}/tree',
    'Get the nodes of the execution tree.',
    t.list(TreeNode),
    { query: TreeQuery },
  ),
  'instances.outputs': getById(
    '/instances/{id}/outputs',
    'List block outputs, oldest first.',
    t.list(BlockOutput),
    { query: t.object({ ...BLOCK_QUERY, ...t.ALL_BY_KEY, max_bytes: MaxBytes }) },
  ),
  'instances.children': getById(
    '/instances/{id}/children',
    'List the child instances, oldest first.',
    InstanceList,
    { query: t.object({ ...t.ALL_BY_KEY, state: t.optional(t.list(t.InstanceStateWord)) }) },
  ),
  'instances.audit': getById(
    '/instances/{id}/audit',
    'List the audit entries of an instance, newest first.',
    t.list(AuditEntry),
    {
      query: t.object({
        limit: t.Limit(AUDIT_LIMIT_DEFAULT, t.LIST_LIMIT_MAX, 1),
        cursor: t.Cursor,
      }),
    },
  ),
  'instances.timeline': getById(
    '/instances/{id}/timeline',
    'Get state transitions and outputs in chronological order.',
    Timeline,
    { query: TimelineQuery },
  ),
} as const satisfies Record<string, RouteRow>;
