/** Rows of what is done to instances beside their normal course. */

import * as instance from './instance.js';
import { byId, listOf, type RouteRow, readById, refusals } from './route-row.js';
import * as surgery from './surgery.js';

export const SURGERY_ROWS = {
  'sequences.migrateInstance': {
    method: 'POST',
    path: '/sequences/migrate-instance',
    summary: 'Move an instance at rest to another version of its sequence.',
    owner: 'any-shard',
    body: surgery.MigrateInstance,
    replies: { 200: surgery.InstanceMigrated, ...refusals(400, 404, 409) },
  },
  'instances.bulkReschedule': {
    method: 'PATCH',
    path: '/instances/bulk/reschedule',
    summary: 'Shift the start of every matching scheduled instance.',
    owner: 'front',
    body: surgery.BulkReschedule,
    replies: { 200: instance.BulkUpdated, ...refusals(400) },
  },
  'instances.batchAction': {
    method: 'POST',
    path: '/instances/batch-action',
    summary: 'Retry, pause, resume, cancel or signal matching instances.',
    owner: 'front',
    body: surgery.BatchAction,
    replies: { 200: surgery.BatchActionResult, ...refusals(400) },
  },
  'instances.logs': {
    method: 'GET',
    path: '/instances/{id}/logs',
    summary: 'List the lines that steps logged, oldest first.',
    ...readById,
    query: instance.PageQuery,
    replies: { 200: listOf(surgery.StepLogLine), ...refusals(400, 404) },
  },
  'instances.stream': {
    method: 'GET',
    path: '/instances/{id}/stream',
    summary: 'Follow states and outputs as server-sent events until the instance ends.',
    ...readById,
    query: surgery.StreamQuery,
    replies: { 200: null, ...refusals(400, 404, 503) },
  },
  'instances.injectBlocks': {
    method: 'POST',
    path: '/instances/{id}/inject-blocks',
    summary: 'Let this instance run further blocks after those of its sequence.',
    ...byId,
    body: surgery.InjectBlocks,
    replies: { 200: surgery.BlocksInjected, ...refusals(400, 404, 413) },
  },
  'instances.resumeFrom': {
    method: 'POST',
    path: '/instances/{id}/resume-from/{block_id}',
    summary: 'Run an instance again from one of its top-level blocks.',
    params: surgery.BlockParams,
    owner: { shardOf: 'id' },
    body: surgery.ResumeFrom,
    isBodyOptional: true,
    replies: { 200: surgery.ResumedFrom, ...refusals(400, 404, 413) },
  },
  'instances.fork': {
    method: 'POST',
    path: '/instances/{id}/fork',
    summary: 'Create a copy of an instance that runs on from one of its top-level blocks.',
    ...byId,
    body: surgery.ForkInstance,
    replies: { 201: surgery.InstanceForked, ...refusals(400, 404, 413) },
  },
  'instances.saveCheckpoint': {
    method: 'POST',
    path: '/instances/{id}/checkpoints',
    summary: 'Keep a value with the instance.',
    ...byId,
    body: surgery.SaveCheckpoint,
    replies: { 201: surgery.CheckpointSaved, ...refusals(400, 404, 413) },
  },
  'instances.checkpoints': {
    method: 'GET',
    path: '/instances/{id}/checkpoints',
    summary: 'List the newest 100 checkpoints, newest first.',
    ...readById,
    replies: { 200: listOf(surgery.Checkpoint), ...refusals(400, 404) },
  },
  'instances.latestCheckpoint': {
    method: 'GET',
    path: '/instances/{id}/checkpoints/latest',
    summary: 'Get the newest checkpoint.',
    ...readById,
    replies: { 200: surgery.Checkpoint, ...refusals(400, 404) },
  },
  'instances.pruneCheckpoints': {
    method: 'POST',
    path: '/instances/{id}/checkpoints/prune',
    summary: 'Delete all but the newest checkpoints.',
    ...byId,
    body: surgery.PruneCheckpoints,
    replies: { 200: surgery.CheckpointsPruned, ...refusals(400, 404) },
  },
} as const satisfies Record<string, RouteRow>;
