/**
 * Wire shapes and routes of edits of instances: injected blocks, resuming and forking from a block, migration, bulk
 * actions, checkpoints and step logs.
 */

import { type Static, Type } from '@sinclair/typebox';
import { InjectedBlocks } from './blocks.js';
import { BulkJob, BulkQuery, RepeatsEffects } from './bulk-job.js';
import {
  ALL_BY_KEY,
  AnyJson,
  DryRun,
  flag,
  type InstanceStateWord,
  JsonObjectSchema,
  Name,
  named,
  noted,
  Orphans,
  oneOfWords,
  optional,
  Timestamp,
  Uuid,
  withDefault,
} from './common.js';
import { Warnings } from './finding.js';
import { BulkUpdated, InstanceRetried, MaxBytes, SendSignal } from './instance.js';
import { InstanceFilter } from './instance-filter.js';
import { act, actById, getById, listOf, type RouteRow, readById, refusals } from './route-row.js';
import { strictNamed } from './strict.js';

/** Offsets of a bulk reschedule: a year either way. */
const OFFSET_SECS_MAX = 365 * 86_400;
export const BATCH_ACTION_LIMIT_DEFAULT = 1_000;
const BATCH_ACTION_LIMIT_MAX = 10_000;
export const CHECKPOINTS_LISTED_MAX = 100;
const SIGNALS_MAX = 1_000;

/** `position` is an index into the injected blocks, which run after the stored ones; default: the end. */
export const InjectBlocks = named('InjectBlocks', {
  blocks: noted(InjectedBlocks, 'At most 1 MiB as JSON over all injections of an instance.'),
  position: optional(Type.Integer({ minimum: 0 })),
});

export const BlocksInjected = named('BlocksInjected', {
  injected_block_ids: Type.Array(Type.String()),
  position: Type.Integer(),
  total_injected: Type.Integer(),
  warnings: Warnings,
});
export type BlocksInjected = Static<typeof BlocksInjected>;

const Signals = Type.Array(SendSignal, { maxItems: SIGNALS_MAX });

/** How `context` is applied; a merge replaces top-level members. */
const CONTEXT_MODES = ['merge', 'replace'] as const;

const AMENDED_DATA = {
  context: optional(noted(JsonObjectSchema, 'Changes context.data before anything runs.')),
  context_mode: optional(
    withDefault(
      oneOfWords(CONTEXT_MODES, 'merge: replaces top-level members; replace: replaces all data.'),
      'merge',
    ),
  ),
};

/** Strict, since a misspelt `context` would retry without the new data. */
export const RetryInstance = strictNamed('RetryInstance', AMENDED_DATA);

/** `context` is merged into context.data by top-level members; signals are applied before the instance runs. */
export const ResumeFrom = strictNamed('ResumeFrom', {
  ...AMENDED_DATA,
  signals: optional(Signals),
});
export type ResumeFrom = Static<typeof ResumeFrom>;

export const ResumedFrom = named('ResumedFrom', {
  id: Uuid,
  state: Type.Literal('scheduled'),
  resumed_from: Type.String(),
  outputs_deleted: Type.Integer(),
  signals_enqueued: Type.Integer(),
});
export type ResumedFrom = Static<typeof ResumedFrom>;

const BlockParams = Type.Object({ id: Uuid, block_id: Type.String() });

export const ForkInstance = strictNamed('ForkInstance', {
  from_block_id: Name,
  ...AMENDED_DATA,
  dry_run: flag(true),
  signals: optional(Signals),
});

export const InstanceForked = named('InstanceForked', {
  id: Uuid,
  forked_from: Uuid,
  state: Type.Literal('scheduled'),
  copied_blocks: Type.Array(Type.String()),
  rerun_blocks: Type.Array(Type.String()),
  dry_run: Type.Boolean(),
});
export type InstanceForked = Static<typeof InstanceForked>;

export const MigrateInstance = named('MigrateInstance', {
  instance_id: Uuid,
  target_sequence_id: Uuid,
});

export const InstanceMigrated = named('InstanceMigrated', {
  migrated: Type.Literal(true),
  instance_id: Uuid,
  from_sequence_id: Uuid,
  to_sequence_id: Uuid,
});
export type InstanceMigrated = Static<typeof InstanceMigrated>;

/** Moves only scheduled instances, by `offset_secs`, which may be negative. */
export const BulkReschedule = strictNamed('BulkReschedule', {
  filter: InstanceFilter,
  offset_secs: Type.Integer({ minimum: -OFFSET_SECS_MAX, maximum: OFFSET_SECS_MAX }),
  dry_run: DryRun,
});
export type BulkReschedule = Static<typeof BulkReschedule>;

const BATCH_ACTIONS = ['retry', 'pause', 'resume', 'cancel', 'signal'] as const;

/** The check: `signal` requires `signal_type`, the name of a custom signal without prefix. */
export const BatchAction = Type.Object(
  {
    filter: InstanceFilter,
    action: oneOfWords(BATCH_ACTIONS),
    signal_type: optional(Name),
    payload: Type.Optional(AnyJson),
    dry_run: DryRun,
    orphans: Orphans,
    limit: optional(
      Type.Integer({
        minimum: 1,
        maximum: BATCH_ACTION_LIMIT_MAX,
        default: BATCH_ACTION_LIMIT_DEFAULT,
      }),
    ),
  },
  { $id: 'BatchAction', 'x-check': 'batch-action', additionalProperties: false },
);
export type BatchAction = Static<typeof BatchAction>;

/** Listed failures; all are counted. */
export const REFUSALS_LISTED_MAX = 20;

export const ChangeRefusal = named('ChangeRefusal', {
  instance_id: Uuid,
  error: noted(Type.String(), 'As in the response to a change of this instance alone.'),
});
export type ChangeRefusal = Static<typeof ChangeRefusal>;

export const BatchActionResult = named('BatchActionResult', {
  matched: Type.Integer(),
  applied: Type.Integer(),
  skipped: Type.Integer(),
  failed: Type.Integer(),
  dry_run: Type.Boolean(),
  repeats_effects: RepeatsEffects,
  refusals: noted(
    Type.Optional(Type.Array(ChangeRefusal, { maxItems: REFUSALS_LISTED_MAX })),
    'The first failures with their reasons; absent if none.',
  ),
});
export type BatchActionResult = Static<typeof BatchActionResult>;

export const SaveCheckpoint = named('SaveCheckpoint', {
  checkpoint_data: noted(AnyJson, 'At most 256 KiB as JSON.'),
});

export const CheckpointSaved = named('CheckpointSaved', { id: Uuid });

export const Checkpoint = named('Checkpoint', {
  id: Uuid,
  instance_id: Uuid,
  checkpoint_data: AnyJson,
  created_at: Timestamp,
});
export type Checkpoint = Static<typeof Checkpoint>;

/** 0 deletes all. */
export const PruneCheckpoints = strictNamed('PruneCheckpoints', {
  keep: Type.Integer({ minimum: 0, maximum: 2 ** 31 - 1 }),
  dry_run: DryRun,
});

export const CheckpointsPruned = named('CheckpointsPruned', {
  count: Type.Integer(),
  dry_run: Type.Optional(Type.Literal(true)),
});

export const StepLogLine = named('StepLogLine', {
  block_id: Type.String(),
  ts: Timestamp,
  level: Type.String(),
  message: Type.String(),
});
export type StepLogLine = Static<typeof StepLogLine>;

const StepLogQuery = Type.Object({
  block_id: Type.Optional(Type.String()),
  ...ALL_BY_KEY,
  max_bytes: MaxBytes,
});

const StreamQuery = Type.Object({
  poll_ms: Type.Integer({ minimum: 0, default: 500 }),
});

export const RESUMABLE_STATES: readonly InstanceStateWord[] = [
  'failed',
  'paused',
  'completed',
  'cancelled',
];

export const EDIT_ROWS = {
  'sequences.migrateInstance': {
    method: 'POST',
    path: '/sequences/migrate-instance',
    summary: 'Move an idle instance to another version of its sequence.',
    owner: 'by-body',
    ledBy: { kind: 'id', members: ['instance_id'] },
    body: MigrateInstance,
    replies: { 200: InstanceMigrated, ...refusals(400, 404, 409) },
  },
  'instances.bulkReschedule': {
    method: 'PATCH',
    path: '/instances/bulk/reschedule',
    summary: 'Shift the start of every matching scheduled instance.',
    owner: 'front',
    query: BulkQuery,
    body: BulkReschedule,
    replies: { 200: BulkUpdated, 202: BulkJob, ...refusals(400, 429) },
  },
  'instances.batchAction': {
    method: 'POST',
    path: '/instances/batch-action',
    summary: 'Retry, pause, resume, cancel or signal matching instances.',
    owner: 'front',
    query: BulkQuery,
    body: BatchAction,
    replies: { 200: BatchActionResult, 202: BulkJob, ...refusals(400, 429) },
  },
  'instances.logs': getById(
    '/instances/{id}/logs',
    'List the log lines of steps, oldest first.',
    listOf(StepLogLine),
    { query: StepLogQuery },
  ),
  'instances.stream': {
    ...readById,
    path: '/instances/{id}/stream',
    summary: 'Stream states and outputs as server-sent events until the instance finishes.',
    owner: 'stream',
    query: StreamQuery,
    contentType: 'text/event-stream',
    replies: { 200: null, ...refusals(400, 404, 503) },
  },
  'instances.injectBlocks': act(
    '/instances/{id}/inject-blocks',
    'Add blocks to this instance, after those of its sequence.',
    BlocksInjected,
    { body: InjectBlocks, bodySize: 'large', definition: 'the body', makes: 'definition' },
  ),
  'instances.retry': act(
    '/instances/{id}/retry',
    'Retry a failed instance where it failed, optionally with changed data.',
    InstanceRetried,
    { body: RetryInstance, bodySize: 'large', isBodyOptional: true },
  ),
  'instances.resumeFrom': {
    method: 'POST',
    path: '/instances/{id}/resume-from/{block_id}',
    summary: 'Run an instance again from one of its top-level blocks.',
    params: BlockParams,
    owner: 'by-id',
    body: ResumeFrom,
    bringsSignals: true,
    bodySize: 'large',
    isBodyOptional: true,
    replies: { 200: ResumedFrom, ...refusals(400, 404, 409, 413) },
  },
  'instances.fork': {
    ...actById,
    path: '/instances/{id}/fork',
    summary: 'Create a copy of an instance that continues from one of its top-level blocks.',
    body: ForkInstance,
    bringsSignals: true,
    bodySize: 'large',
    makes: 'instance',
    replies: { 201: InstanceForked, ...refusals(400, 404, 409, 413) },
  },
  'instances.saveCheckpoint': {
    ...actById,
    path: '/instances/{id}/checkpoints',
    summary: 'Save a value as a checkpoint of the instance.',
    body: SaveCheckpoint,
    replies: { 201: CheckpointSaved, ...refusals(400, 404, 409, 413) },
  },
  'instances.checkpoints': getById(
    '/instances/{id}/checkpoints',
    'List the newest 100 checkpoints, newest first.',
    listOf(Checkpoint),
  ),
  'instances.latestCheckpoint': getById(
    '/instances/{id}/checkpoints/latest',
    'Get the newest checkpoint.',
    Checkpoint,
  ),
  'instances.pruneCheckpoints': {
    ...actById,
    path: '/instances/{id}/checkpoints/prune',
    summary: 'Delete all but the newest checkpoints.',
    body: PruneCheckpoints,
    replies: { 200: CheckpointsPruned, ...refusals(400, 404, 409) },
  },
} as const satisfies Record<string, RouteRow>;
