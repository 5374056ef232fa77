/**
 * A worker task in its three forms, and the entries of its history. Owned by the instance's actor.
 * Pure.
 */

import { LIMITS } from '../../src/config.js';
import type { JsonObject, JsonValue } from '../../src/core/json.js';
import type { Dispatch } from '../../src/core/progress.js';
import { rankOf, type TaskState } from '../../src/core/states.js';
import { isoTime, isoTimeOrNull, type UnixMs } from '../../src/core/time.js';
import type { MutationRow } from '../../src/db/mutations.js';
import type { WorkerTaskRow } from '../runtime/rows.js';

export type AttemptEvent =
  | 'claimed'
  | 'reclaimed'
  | 'completed'
  | 'failed'
  | 'timed_out'
  | 'cancelled'
  | 'stale_mutation_rejected';

/** One entry of a task's history, as `GET /workers/tasks/{id}/attempts` shows it. */
export interface Attempt {
  readonly id: string;
  readonly task_id: string;
  readonly claim_epoch: number;
  readonly worker_id?: string;
  readonly event: AttemptEvent;
  readonly reason?: string;
  readonly created_at: string;
}

export interface WorkerTaskRecord {
  readonly id: string;
  readonly instanceId: string;
  readonly tenantId: string;
  readonly blockId: string;
  readonly node: number;
  readonly iteration: string;
  readonly handlerName: string;
  readonly queueName: string | null;
  readonly params: JsonValue;
  /** What a for_each adds to context.data for this step. */
  readonly overlay: JsonObject | null;
  readonly attempt: number;
  readonly timeoutMs: number | null;
  readonly priority: number;
  readonly createdAt: UnixMs;
  state: TaskState;
  withdrawn: boolean;
  workerId: string | null;
  epoch: number;
  claimedAt: UnixMs | null;
  heartbeatAt: UnixMs | null;
  completedAt: UnixMs | null;
  output: JsonValue;
  errorMessage: string | null;
  errorRetryable: boolean | null;
  checkpointSeq: number;
  resumeCheckpoint: JsonValue;
  history: Attempt[];
}

/**
 * @param previous the task of the same step's last try: its checkpoint is handed on
 */
export function newTask(
  id: string,
  owner: { readonly id: string; readonly tenantId: string; readonly priority: number },
  dispatch: Dispatch,
  previous: WorkerTaskRecord | undefined,
  now: UnixMs,
): WorkerTaskRecord {
  return {
    id,
    instanceId: owner.id,
    tenantId: owner.tenantId,
    blockId: dispatch.blockId,
    node: dispatch.node,
    iteration: dispatch.iteration,
    handlerName: dispatch.handler,
    queueName: dispatch.queueName,
    params: dispatch.params,
    overlay: dispatch.overlay,
    attempt: dispatch.attempt,
    timeoutMs: dispatch.timeoutMs,
    priority: owner.priority,
    createdAt: now,
    state: 'pending',
    withdrawn: false,
    workerId: null,
    epoch: 0,
    claimedAt: null,
    heartbeatAt: null,
    completedAt: null,
    output: null,
    errorMessage: null,
    errorRetryable: null,
    checkpointSeq: previous?.checkpointSeq ?? 0,
    resumeCheckpoint: previous?.resumeCheckpoint ?? null,
    history: [],
  };
}

export function taskOfRow(row: WorkerTaskRow): WorkerTaskRecord {
  return {
    id: row.id,
    instanceId: row.instance_id,
    tenantId: row.tenant_id,
    blockId: row.block_id,
    node: row.node,
    iteration: row.iteration,
    handlerName: row.handler_name,
    queueName: row.queue_name,
    params: JSON.parse(row.params) as JsonValue,
    overlay: row.overlay === null ? null : (JSON.parse(row.overlay) as JsonObject),
    attempt: row.attempt,
    timeoutMs: row.timeout_ms,
    priority: row.priority,
    createdAt: Date.parse(row.created_at),
    state: row.state,
    withdrawn: row.withdrawn,
    workerId: row.worker_id,
    epoch: row.claim_epoch,
    claimedAt: unixOrNull(row.claimed_at),
    heartbeatAt: unixOrNull(row.heartbeat_at),
    completedAt: unixOrNull(row.completed_at),
    output: row.output === null ? null : (JSON.parse(row.output) as JsonValue),
    errorMessage: row.error_message,
    errorRetryable: row.error_retryable,
    checkpointSeq: row.checkpoint_seq,
    resumeCheckpoint:
      row.resume_checkpoint === null ? null : (JSON.parse(row.resume_checkpoint) as JsonValue),
    history: JSON.parse(row.history) as Attempt[],
  };
}

function unixOrNull(text: string | null): UnixMs | null {
  return text === null ? null : Date.parse(text);
}

/** The row of `task.update`: every column that can change, but for the checkpoint. */
export function changingTaskColumns(task: WorkerTaskRecord): MutationRow<'task.update'> {
  return {
    id: task.id,
    state: task.state,
    withdrawn: task.withdrawn,
    worker_id: task.workerId,
    claim_epoch: task.epoch,
    claimed_at: isoTimeOrNull(task.claimedAt),
    heartbeat_at: isoTimeOrNull(task.heartbeatAt),
    completed_at: isoTimeOrNull(task.completedAt),
    output: task.output,
    error_message: task.errorMessage,
    error_retryable: task.errorRetryable,
    checkpoint_seq: task.checkpointSeq,
    history: task.history,
  };
}

/** The row of `task.heartbeat`. */
export function heartbeatColumns(task: WorkerTaskRecord): MutationRow<'task.heartbeat'> {
  return {
    id: task.id,
    claim_epoch: task.epoch,
    heartbeat_at: isoTimeOrNull(task.heartbeatAt),
    checkpoint_seq: task.checkpointSeq,
  };
}

/** The row of `task.checkpoint`. */
export function checkpointColumns({
  id,
  resumeCheckpoint,
}: WorkerTaskRecord): MutationRow<'task.checkpoint'> {
  return { id, resume_checkpoint: resumeCheckpoint };
}

/**
 * The row of `task.insert`, which is the receipt of what the worker does, too.
 *
 * @param ownershipEpoch in which it is dispatched; 0 is stored as null
 */
export function allTaskColumns(
  task: WorkerTaskRecord,
  ownershipEpoch = 0,
): MutationRow<'task.insert'> {
  return {
    ...changingTaskColumns(task),
    ...checkpointColumns(task),
    ...(ownershipEpoch === 0 ? undefined : { ownership_epoch: ownershipEpoch }),
    instance_id: task.instanceId,
    tenant_id: task.tenantId,
    block_id: task.blockId,
    node: task.node,
    iteration: task.iteration,
    handler_name: task.handlerName,
    queue_name: task.queueName,
    params: task.params,
    overlay: task.overlay,
    attempt: task.attempt,
    timeout_ms: task.timeoutMs,
    priority: task.priority,
    created_at: isoTime(task.createdAt),
  };
}

/** The row of `openTask.insert`: what a queue needs to order and offer the task. */
export function openTaskColumns(task: WorkerTaskRecord): MutationRow<'openTask.insert'> {
  return {
    task_id: task.id,
    instance_id: task.instanceId,
    tenant_id: task.tenantId,
    handler_name: task.handlerName,
    queue_name: task.queueName,
    rank: rankOf(task.priority),
    created_at: isoTime(task.createdAt),
  };
}

/**
 * The wire record (schema `WorkerTask`).
 *
 * @param context the instance's context.data and context.config as the step sees them now
 * @param traceparent of the instance as it is now
 */
export function wireTask(
  task: WorkerTaskRecord,
  context: { readonly data: JsonObject; readonly config: JsonObject },
  traceparent: string | null = null,
): object {
  return {
    id: task.id,
    instance_id: task.instanceId,
    block_id: task.blockId,
    handler_name: task.handlerName,
    queue_name: task.queueName ?? undefined,
    params: task.params,
    context: {
      data: task.overlay === null ? context.data : { ...context.data, ...task.overlay },
      config: context.config,
    },
    attempt: task.attempt,
    timeout_ms: task.timeoutMs,
    state: task.state,
    worker_id: task.workerId,
    claim_epoch: task.epoch,
    claimed_at: isoTimeOrNull(task.claimedAt),
    heartbeat_at: isoTimeOrNull(task.heartbeatAt),
    completed_at: isoTimeOrNull(task.completedAt),
    output: task.output,
    error_message: task.errorMessage,
    error_retryable: task.errorRetryable,
    checkpoint_seq: task.checkpointSeq,
    resume_checkpoint: task.resumeCheckpoint ?? undefined,
    traceparent: traceparent ?? undefined,
    created_at: isoTime(task.createdAt),
  };
}

/** Adds an entry to the history, which keeps the newest LIMITS.taskHistoryMax. */
export function note(
  task: WorkerTaskRecord,
  event: AttemptEvent,
  entry: { id: string; now: UnixMs; epoch?: number; worker?: string | null; reason?: string },
): void {
  const worker = entry.worker === undefined ? task.workerId : entry.worker;
  task.history.push({
    id: entry.id,
    task_id: task.id,
    claim_epoch: entry.epoch ?? task.epoch,
    ...(worker === null ? {} : { worker_id: worker }),
    event,
    ...(entry.reason === undefined ? {} : { reason: entry.reason }),
    created_at: isoTime(entry.now),
  });
  if (task.history.length > LIMITS.taskHistoryMax) task.history.shift();
}
