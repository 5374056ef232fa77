/** A worker task as its instance's actor holds it, its wire form, and the entries of its history. Pure. */

import { rankOf } from '../../schema/states.js';
import { hashedUuid, stepIdempotencyKey } from '../../src/base/ids.js';
import { type JsonObject, type JsonValue, textOfJson } from '../../src/base/json.js';
import { isoTime, type UnixMs } from '../../src/base/time.js';
import type { Dispatch } from '../../src/core/progress.js';
import type { SecretText } from '../../src/core/secret-texts.js';
import { rowOf } from '../../src/db/lines.js';
import type { MutationRow } from '../../src/db/mutation.js';
import type { WorkerTaskRow } from './loads.js';
import type { InstanceRecord } from './record.js';
import { type OPEN_TASK, TASK } from './task-tables.js';

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

/** What columns of JSON hold that somebody looks into; everything else is as the row is read. */
interface Values {
  /** What a for_each adds to context.data for this step. */
  overlay: JsonObject | null;
  /** Where `params` name secrets. */
  secrets: readonly SecretText[] | null;
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
    params: JSON.stringify(dispatch.params),
    overlay: dispatch.overlay,
    secrets: dispatch.secrets ?? null,
    attempt: dispatch.attempt,
    idempotency_key: stepIdempotencyKey(
      owner.id,
      dispatch.blockId,
      dispatch.iteration,
      dispatch.runs,
    ),
    timeout_ms: dispatch.timeoutMs,
    priority: owner.priority,
    created_at: isoTime(now),
    state: 'pending',
    withdrawn: false,
    worker_id: null,
    claim_epoch: 0,
    lost_claims: 0,
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

/** One that was made before tasks had a key has that of a step that was never begun anew. */
export function taskIdempotencyKey(
  task: Pick<WorkerTaskRow, 'idempotency_key' | 'instance_id' | 'block_id' | 'iteration'>,
): string {
  const { idempotency_key, instance_id, block_id, iteration } = task;
  return idempotency_key ?? stepIdempotencyKey(instance_id, block_id, iteration, 0);
}

/** Nobody has ended it yet. */
export function isOpen({ state }: Pick<WorkerTaskRecord, 'state'>): boolean {
  return state === 'pending' || state === 'claimed';
}

/** Indexes change with the plan of an instance; the ids of its blocks do not. */
export function taskOfRow(row: WorkerTaskRow, node: number): WorkerTaskRecord {
  return {
    ...row,
    node,
    overlay: JSON.parse(row.overlay ?? 'null') as JsonObject | null,
    secrets: JSON.parse(row.secrets ?? 'null') as SecretText[] | null,
    resume_checkpoint: JSON.parse(row.resume_checkpoint ?? 'null') as JsonValue,
    history: JSON.parse(row.history) as Attempt[],
  };
}

/**
 * Takes an entry out of a history: the oldest refusal, and the oldest entry where there is none. A worker that
 * sends a late result again and again does not push out who had the task and how it ended.
 */
export function shorten(history: Attempt[]): void {
  const refused = history.findIndex(({ event }) => event === 'stale_mutation_rejected');
  history.splice(Math.max(refused, 0), 1);
}

/** What the history of a task follows from, as it is stored or held. */
type Told = Pick<
  WorkerTaskRecord,
  'id' | 'state' | 'worker_id' | 'claim_epoch' | 'claimed_at' | 'completed_at' | 'history'
>;

/** Of a task that was claimed once, and at most completed since, the history is not stored. */
export function historyOf(task: Told): Attempt[] {
  const { id: task_id, history, worker_id, claimed_at, completed_at } = task;
  if (history.length > 0 || claimed_at === null) return history;
  const claim = {
    task_id,
    claim_epoch: task.claim_epoch,
    ...(worker_id === null ? {} : { worker_id }),
  };
  const entry = (event: AttemptEvent, created_at: string): Attempt => {
    return { id: hashedUuid(`${task_id}:${event}`), ...claim, event, created_at };
  };
  const claimed = entry('claimed', claimed_at);
  if (task.state !== 'completed' || completed_at === null) return [claimed];
  return [claimed, entry('completed', completed_at)];
}

/** Whether the history goes without this entry: see `historyOf`. */
export function isTold({ history, claim_epoch }: Told, event: AttemptEvent): boolean {
  if (history.length > 0) return false;
  return event === 'completed' || (event === 'claimed' && claim_epoch === 1);
}

/** The row of `openTask.claim`. */
export function claimRow(task: WorkerTaskRecord): string {
  return (
    `{"task_id":"${task.id}","worker_id":${textOrNull(task.worker_id)},` +
    `"claim_epoch":${task.claim_epoch},"lost_claims":${task.lost_claims},` +
    `"claimed_at":${timeOrNull(task.claimed_at)},` +
    `"heartbeat_at":${timeOrNull(task.heartbeat_at)},"checkpoint_seq":${task.checkpoint_seq}}`
  );
}

/** The row of `task.end`. */
export function endRow(task: WorkerTaskRecord): string {
  return (
    `{"id":"${task.id}","state":"${task.state}","withdrawn":${task.withdrawn},` +
    `"worker_id":${textOrNull(task.worker_id)},"claim_epoch":${task.claim_epoch},` +
    `"lost_claims":${task.lost_claims},` +
    `"claimed_at":${timeOrNull(task.claimed_at)},"heartbeat_at":${timeOrNull(task.heartbeat_at)},` +
    `"completed_at":${timeOrNull(task.completed_at)},"output":${task.output},` +
    `"error_message":${textOrNull(task.error_message)},` +
    `"error_retryable":${task.error_retryable},"checkpoint_seq":${task.checkpoint_seq},` +
    `"history":${JSON.stringify(task.history)}}`
  );
}

function textOrNull(text: string | null): string {
  return text === null ? 'null' : JSON.stringify(text);
}

/** Nothing in the text of a time or an id is ever escaped. */
function timeOrNull(text: string | null): string {
  return text === null ? 'null' : `"${text}"`;
}

/** The row of `task.insert`. */
export function taskRow(task: WorkerTaskRecord, ownership_epoch: number | null): string {
  return rowOf(TASK.insert, {
    id: task.id,
    instance_id: task.instance_id,
    tenant_id: task.tenant_id,
    block_id: task.block_id,
    node: task.node,
    iteration: task.iteration,
    handler_name: task.handler_name,
    queue_name: task.queue_name,
    params: task.params,
    overlay: JSON.stringify(task.overlay),
    secrets: JSON.stringify(task.secrets),
    attempt: task.attempt,
    idempotency_key: task.idempotency_key,
    timeout_ms: task.timeout_ms,
    priority: task.priority,
    state: task.state,
    withdrawn: task.withdrawn,
    worker_id: task.worker_id,
    claim_epoch: task.claim_epoch,
    lost_claims: task.lost_claims,
    claimed_at: task.claimed_at,
    heartbeat_at: task.heartbeat_at,
    completed_at: task.completed_at,
    output: task.output,
    error_message: task.error_message,
    error_retryable: task.error_retryable,
    checkpoint_seq: task.checkpoint_seq,
    resume_checkpoint: JSON.stringify(task.resume_checkpoint),
    history: JSON.stringify(task.history),
    created_at: task.created_at,
    ownership_epoch,
  });
}

/** The row of `openTask.insert`: what a queue needs to order and offer the task. */
export function openTaskColumns(task: WorkerTaskRecord): MutationRow<typeof OPEN_TASK.insert> {
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

/**
 * The wire record (schema `WorkerTask`) as text, put together piece by piece: it is half of what an answer to a
 * worker costs, and most of it is text already.
 *
 * @param context the instance's context.data and context.config as they are now
 * @param overlay what lies over the data for the step
 * @param traceparent of the instance as it is now
 */
export function wireTask(
  task: WorkerTaskRecord,
  context: { readonly data: JsonObject; readonly config: JsonObject },
  overlay: JsonObject | null,
  traceparent: string | null = null,
): string {
  const data = overlay === null ? context.data : { ...context.data, ...overlay };
  const queue = task.queue_name === null ? '' : `"queue_name":${JSON.stringify(task.queue_name)},`;
  const checkpoint =
    task.resume_checkpoint === null
      ? ''
      : `"resume_checkpoint":${JSON.stringify(task.resume_checkpoint)},`;
  return (
    `{"id":"${task.id}","instance_id":"${task.instance_id}",` +
    `"block_id":${JSON.stringify(task.block_id)},` +
    `"handler_name":${JSON.stringify(task.handler_name)},${queue}"params":${task.params},` +
    `"context":{"data":${textOfJson(data)},"config":${JSON.stringify(context.config)}},` +
    `"attempt":${task.attempt},"idempotency_key":"${taskIdempotencyKey(task)}",` +
    `"timeout_ms":${task.timeout_ms},"state":"${task.state}",` +
    `"worker_id":${textOrNull(task.worker_id)},"claim_epoch":${task.claim_epoch},` +
    `"lost_claims":${task.lost_claims},` +
    `"claimed_at":${timeOrNull(task.claimed_at)},"heartbeat_at":${timeOrNull(task.heartbeat_at)},` +
    `"completed_at":${timeOrNull(task.completed_at)},"output":${task.output},` +
    `"error_message":${textOrNull(task.error_message)},` +
    `"error_retryable":${task.error_retryable},"checkpoint_seq":${task.checkpoint_seq},` +
    `${checkpoint}${traceparent === null ? '' : `"traceparent":${JSON.stringify(traceparent)},`}` +
    `"created_at":"${task.created_at}"}`
  );
}
