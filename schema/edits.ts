/**
 * Wire shapes and routes of edits of instances: injected blocks, resuming and forking from a block, migration, bulk
 * actions, checkpoints and step logs.
 */

import { InjectedBlocks } from './blocks.js';
import { BulkJob, BulkQuery, RepeatsEffects } from './bulk-job.js';
import * as t from './common.js';
import { Warnings } from './finding.js';
import { BulkUpdated, InstanceRetried, MaxBytes, SendSignal } from './instance.js';
import { InstanceFilter } from './instance-filter.js';
import { LINE_FILTERS } from './log.js';
import {
  act,
  byBody,
  byId,
  created,
  did,
  front,
  getById,
  ok,
  type RouteRow,
  refusals,
  stream,
} from './route-row.js';
import { words } from './states.js';

/** Offsets of a bulk reschedule: a year either way. */
const OFFSET_SECS_MAX = 365 * 86_400;
export const BATCH_ACTION_LIMIT_DEFAULT = 1_000;
const BATCH_ACTION_MAX = 10_000;
/** More than an unpaced job changes. */
const PER_MINUTE_MAX = 600_000;
export const CHECKPOINTS_LISTED_MAX = 100;
const SIGNALS_MAX = 1_000;

/** `position` is an index into the injected blocks, which run after the stored ones; default: the end. */
export const InjectBlocks = t.named('InjectBlocks', {
  blocks: t.noted(InjectedBlocks, 'At most 1 MiB as JSON over all injections of an instance.'),
  position: t.nullish(t.integer({ minimum: 0 })),
});

export const BlocksInjected = t.named('BlocksInjected', {
  injected_block_ids: t.list(t.text()),
  position: t.integer(),
  total_injected: t.integer(),
  warnings: Warnings,
});
export type BlocksInjected = t.Static<typeof BlocksInjected>;

const Signals = t.list(SendSignal, { maxItems: SIGNALS_MAX });

/** How `context` is applied; a merge replaces top-level members. */
const CONTEXT_MODES = ['merge', 'replace'] as const;

const AMENDED_DATA = {
  context: t.nullish(t.JsonObjectSchema, 'Changes context.data before anything runs.'),
  context_mode: t.nullish(
    t.withDefault(t.oneOf(CONTEXT_MODES, 'merge: top-level members; replace: all data.'), 'merge'),
  ),
};

/** Strict, since a misspelt `context` would retry without the new data. */
export const RetryInstance = t.strictNamed('RetryInstance', AMENDED_DATA);

/** `context` is merged into context.data by top-level members; signals are applied before the instance runs. */
export const ResumeFrom = t.strictNamed('ResumeFrom', {
  ...AMENDED_DATA,
  signals: t.nullish(Signals),
});
export type ResumeFrom = t.Static<typeof ResumeFrom>;

export const ResumedFrom = t.named('ResumedFrom', {
  id: t.Uuid,
  state: t.literal('scheduled'),
  resumed_from: t.text(),
  outputs_deleted: t.integer(),
  signals_enqueued: t.integer(),
});
export type ResumedFrom = t.Static<typeof ResumedFrom>;

const BlockParams = t.object({ id: t.Uuid, block_id: t.text() });

export const ForkInstance = t.strictNamed('ForkInstance', {
  from_block_id: t.Name,
  ...AMENDED_DATA,
  dry_run: t.flag(true),
  signals: t.nullish(Signals),
});

export const InstanceForked = t.named('InstanceForked', {
  id: t.Uuid,
  forked_from: t.Uuid,
  state: t.literal('scheduled'),
  copied_blocks: t.list(t.text()),
  rerun_blocks: t.list(t.text()),
  dry_run: t.boolean(),
});
export type InstanceForked = t.Static<typeof InstanceForked>;

export const MigrateInstance = t.named('MigrateInstance', {
  instance_id: t.Uuid,
  target_sequence_id: t.Uuid,
});

export const InstanceMigrated = t.named('InstanceMigrated', {
  migrated: t.literal(true),
  instance_id: t.Uuid,
  from_sequence_id: t.Uuid,
  to_sequence_id: t.Uuid,
});
export type InstanceMigrated = t.Static<typeof InstanceMigrated>;

/** Moves only scheduled instances, by `offset_secs`, which may be negative. */
export const BulkReschedule = t.strictNamed('BulkReschedule', {
  filter: InstanceFilter,
  offset_secs: t.integer({ minimum: -OFFSET_SECS_MAX, maximum: OFFSET_SECS_MAX }),
  dry_run: t.DryRun,
});
export type BulkReschedule = t.Static<typeof BulkReschedule>;

const BATCH_ACTIONS = ['retry', 'pause', 'resume', 'cancel', 'signal'] as const;

/** The check: `signal` requires `signal_type`, the name of a custom signal without prefix. */
export const BatchAction = t.object(
  {
    filter: InstanceFilter,
    action: t.oneOf(BATCH_ACTIONS),
    signal_type: t.nullish(t.Name),
    payload: t.optional(t.AnyJson),
    dry_run: t.DryRun,
    orphans: t.Orphans,
    per_minute: t.nullish(
      t.integer({ minimum: 1, maximum: PER_MINUTE_MAX }),
      'Maximum number of instances changed per minute, spread evenly; runs as a job.',
    ),
    limit: t.nullish(
      t.integer({ minimum: 1, maximum: BATCH_ACTION_MAX, default: BATCH_ACTION_LIMIT_DEFAULT }),
    ),
  },
  { $id: 'BatchAction', 'x-check': 'batch-action', additionalProperties: false },
);
export type BatchAction = t.Static<typeof BatchAction>;

/** Listed failures; all are counted. */
export const REFUSALS_LISTED_MAX = 20;

export const ChangeRefusal = t.named('ChangeRefusal', {
  instance_id: t.Uuid,
  error: t.text('Error, as in the response to a change of only this instance.'),
});
export type ChangeRefusal = t.Static<typeof ChangeRefusal>;

export const BatchActionResult = t.named('BatchActionResult', {
  matched: t.integer(),
  applied: t.integer(),
  skipped: t.integer(),
  failed: t.integer(),
  dry_run: t.boolean(),
  repeats_effects: RepeatsEffects,
  job_id: t.optional(t.Uuid, 'The record of the change; absent with dry_run.'),
  refusals: t.optional(
    t.list(ChangeRefusal, { maxItems: REFUSALS_LISTED_MAX }),
    'The first failures; absent if none.',
  ),
});
export type BatchActionResult = t.Static<typeof BatchActionResult>;

export const SaveCheckpoint = t.named('SaveCheckpoint', {
  checkpoint_data: t.noted(t.AnyJson, 'Value of the checkpoint, at most 256 KiB as JSON.'),
});

export const CheckpointSaved = t.named('CheckpointSaved', { id: t.Uuid });

export const Checkpoint = t.named('Checkpoint', {
  id: t.Uuid,
  instance_id: t.Uuid,
  checkpoint_data: t.AnyJson,
  created_at: t.Timestamp,
});
export type Checkpoint = t.Static<typeof Checkpoint>;

/** 0 deletes all. */
export const PruneCheckpoints = t.strictNamed('PruneCheckpoints', {
  keep: t.integer({ minimum: 0, maximum: 2 ** 31 - 1 }),
  dry_run: t.DryRun,
});

export const CheckpointsPruned = t.named('CheckpointsPruned', {
  count: t.integer(),
  dry_run: t.optional(t.literal(true)),
});

export const StepLogLine = t.named('StepLogLine', {
  block_id: t.text(),
  ts: t.Timestamp,
  level: t.text(),
  message: t.text(),
});
export type StepLogLine = t.Static<typeof StepLogLine>;

const StepLogQuery = t.object({
  ...LINE_FILTERS,
  order: t.withDefault(t.oneOf(['oldest', 'newest'], 'Sort order.'), 'oldest'),
  ...t.ALL_BY_KEY,
  max_bytes: MaxBytes,
});

export const RESUMABLE_STATES: readonly t.InstanceStateWord[] = words(
  'failed paused completed cancelled',
);

export const EDIT_ROWS = {
  'sequences.migrateInstance': byBody.post('/sequences/migrate-instance', {
    summary: 'Move an idle instance to another version of its sequence.',
    ledBy: { kind: 'id', members: ['instance_id'] },
    body: MigrateInstance,
    replies: ok(InstanceMigrated, 404, 409),
    action: did('instance', 'migrated', { target: ['instance_id'], shows: ['target_sequence_id'] }),
  }),
  'instances.bulkReschedule': front.patch('/instances/bulk/reschedule', {
    summary: 'Shift the start of every matching scheduled instance.',
    query: BulkQuery,
    body: BulkReschedule,
    replies: { 200: BulkUpdated, 202: BulkJob, ...refusals(400, 429) },
    action: did('bulk_job', 'rescheduled many instances by', { unless: ['dry_run'] }),
  }),
  'instances.batchAction': front.post('/instances/batch-action', {
    summary: 'Retry, pause, resume, cancel or signal matching instances.',
    query: BulkQuery,
    body: BatchAction,
    replies: { 200: BatchActionResult, 202: BulkJob, ...refusals(400, 429) },
    action: did('bulk_job', 'changed many instances by', {
      shows: ['action', 'signal_type', 'per_minute'],
      words: {
        action: {
          retry: 'retried many instances by',
          pause: 'paused many instances by',
          resume: 'resumed many instances by',
          cancel: 'cancelled many instances by',
          signal: 'sent a signal to many instances by',
        },
      },
      unless: ['dry_run'],
    }),
  }),
  'instances.logs': getById(
    '/instances/{id}/logs',
    'List the log lines of steps, oldest first unless order says otherwise.',
    t.list(StepLogLine),
    { query: StepLogQuery },
  ),
  'instances.stream': stream.get('/instances/{id}/stream', {
    summary: 'Stream states and outputs as server-sent events until the instance finishes.',
    query: t.object({
      poll_ms: t.integer({ minimum: 0, default: 500 }),
      include_outputs: t.boolean({
        default: true,
        description: 'false: a state event for each change of the instance, and no outputs.',
      }),
    }),
    contentType: 'text/event-stream',
    replies: ok(null, 404, 503),
  }),
  'instances.injectBlocks': act(
    '/instances/{id}/inject-blocks',
    'Add blocks to this instance, after those of its sequence.',
    BlocksInjected,
    {
      body: InjectBlocks,
      bodySize: 'large',
      definition: 'the body',
      makes: 'definition',
      action: did('instance', 'added blocks to'),
    },
  ),
  'instances.retry': act(
    '/instances/{id}/retry',
    'Retry a failed instance where it failed, optionally with changed data.',
    InstanceRetried,
    {
      body: RetryInstance,
      bodySize: 'large',
      isBodyOptional: true,
      action: did('instance', 'retried'),
    },
  ),
  'instances.resumeFrom': byId.post('/instances/{id}/resume-from/{block_id}', {
    summary: 'Run an instance again from one of its top-level blocks.',
    params: BlockParams,
    body: ResumeFrom,
    bringsSignals: true,
    bodySize: 'large',
    isBodyOptional: true,
    replies: ok(ResumedFrom, 404, 409, 413),
    action: did('instance', 'ran again', { shows: ['block_id'] }),
  }),
  'instances.fork': byId.post('/instances/{id}/fork', {
    summary: 'Create a copy of an instance that continues from one of its top-level blocks.',
    body: ForkInstance,
    bringsSignals: true,
    bodySize: 'large',
    makes: 'instance',
    replies: created(InstanceForked, 404, 409, 413, 422),
    action: did('instance', 'forked', { shows: ['from_block_id', 'dry_run'] }),
  }),
  'instances.saveCheckpoint': byId.post('/instances/{id}/checkpoints', {
    summary: 'Save a value as a checkpoint of the instance.',
    body: SaveCheckpoint,
    replies: created(CheckpointSaved, 404, 409, 413),
  }),
  'instances.checkpoints': getById(
    '/instances/{id}/checkpoints',
    'List the newest 100 checkpoints, newest first.',
    t.list(Checkpoint),
  ),
  'instances.latestCheckpoint': getById(
    '/instances/{id}/checkpoints/latest',
    'Get the newest checkpoint.',
    Checkpoint,
  ),
  'instances.pruneCheckpoints': byId.post('/instances/{id}/checkpoints/prune', {
    summary: 'Delete all but the newest checkpoints.',
    body: PruneCheckpoints,
    replies: ok(CheckpointsPruned, 404, 409),
    action: did('instance', 'deleted checkpoints of', { shows: ['keep'], unless: ['dry_run'] }),
  }),
} as const satisfies Record<string, RouteRow>;
