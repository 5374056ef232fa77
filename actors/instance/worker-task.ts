/** A worker task as its instance's actor holds it, its wire form, and the entries of its history. Pure. */

import { WorkerTask } from '../../schema/worker.js';
import type { JsonObject, JsonValue } from '../../src/core/json.js';
import type { Dispatch } from '../../src/core/progress.js';
import type { SecretText } from '../../src/core/secret-texts.js';
import { rankOf } from '../../src/core/states.js';
import { isoTime, type UnixMs } from '../../src/core/time.js';
import { MUTATIONS, type MutationRow } from '../../src/db/mutations.js';
import type { WorkerTaskRow } from '../runtime/rows.js';
import type { InstanceRecord } from './record.js';

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

/** What columns of JSON hold; everything else is as the row is read. */
interface Values {
  params: JsonValue;
  /** What a for_each adds to context.data for this step. */
  overlay: JsonObject | null;
  /** Where `params` name secrets. */
  secrets: readonly SecretText[] | null;
  output: JsonValue;
  resume_checkpoint: JsonValue;
  history: Attempt[];
}

/** The task's row, which its actor changes in place. */
export type WorkerTaskRecord = {
  -readonly [K in keyof WorkerTaskRow]: K extends keyof Values ? Values[K] : WorkerTaskRow[K];
};

/**
 * @param previous the task of the same step's last try: its checkpoint is handed on
 */
export function newTask(
  id: string,
  owner: Pick<InstanceRecord, 'id' | 'tenant_id' | 'priority'>,
  dispatch: Dispatch,
  previous: WorkerTaskRecord | undefined,
  now: UnixMs,
): WorkerTaskRecord {
  return {
    id,
    instance_id: owner.id,
    tenant_id: owner.tenant_id,
    block_id: dispatch.blockId,
    node: dispatch.node,
    iteration: dispatch.iteration,
    handler_name: dispatch.handler,
    queue_name: dispatch.queueName,
    params: dispatch.params,
    overlay: dispatch.overlay,
    secrets: dispatch.secrets ?? null,
    attempt: dispatch.attempt,
    timeout_ms: dispatch.timeoutMs,
    priority: owner.priority,
    created_at: isoTime(now),
    state: 'pending',
    withdrawn: false,
    worker_id: null,
    claim_epoch: 0,
    claimed_at: null,
    heartbeat_at: null,
    completed_at: null,
    output: null,
    error_message: null,
    error_retryable: null,
    checkpoint_seq: previous?.checkpoint_seq ?? 0,
    resume_checkpoint: previous?.resume_checkpoint ?? null,
    history: [],
  };
}

/** Indexes change with the plan of an instance; the ids of its blocks do not. */
export function taskOfRow(row: WorkerTaskRow, node: number): WorkerTaskRecord {
  return {
    ...row,
    node,
    params: JSON.parse(row.params) as JsonValue,
    overlay: JSON.parse(row.overlay ?? 'null') as JsonObject | null,
    secrets: JSON.parse(row.secrets ?? 'null') as SecretText[] | null,
    output: JSON.parse(row.output ?? 'null') as JsonValue,
    resume_checkpoint: JSON.parse(row.resume_checkpoint ?? 'null') as JsonValue,
    history: JSON.parse(row.history) as Attempt[],
  };
}

/** The row of `task.update`: every column that can change, but for the checkpoint. */
export function changingTaskColumns(task: WorkerTaskRecord): MutationRow<'task.update'> {
  return picked(task, MUTATIONS['task.update'].columns);
}

function picked<Field extends string>(
  task: WorkerTaskRecord,
  fields: readonly Field[],
): Pick<WorkerTaskRecord, Field & keyof WorkerTaskRecord> {
  const from: Readonly<Record<string, unknown>> = task;
  const to: Record<string, unknown> = {};
  for (const field of fields) to[field] = from[field];
  return to as Pick<WorkerTaskRecord, Field & keyof WorkerTaskRecord>;
}

/** The row of `openTask.insert`: what a queue needs to order and offer the task. */
export function openTaskColumns(task: WorkerTaskRecord): MutationRow<'openTask.insert'> {
  const { id, instance_id, tenant_id, handler_name, queue_name, created_at } = task;
  const rank = openTaskRank(task, true);
  return { task_id: id, instance_id, tenant_id, handler_name, queue_name, rank, created_at };
}

/** Ranks of priorities are 0 to 3, and whoever reads a queue begins behind -1. */
const NOT_OFFERED = -100;

/** Where the task stands in the queues; one that is not offered stands before where they are read. */
export function openTaskRank({ priority }: WorkerTaskRecord, isOffered: boolean): number {
  return rankOf(priority) + (isOffered ? 0 : NOT_OFFERED);
}

/** In the order in which they are shown. */
const SHOWN = Object.keys(WorkerTask.properties) as (keyof WorkerTask)[];

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
  const data = task.overlay === null ? context.data : { ...context.data, ...task.overlay };
  return {
    ...picked(task, SHOWN),
    queue_name: task.queue_name ?? undefined,
    context: { data, config: context.config },
    resume_checkpoint: task.resume_checkpoint ?? undefined,
    traceparent: traceparent ?? undefined,
  };
}
