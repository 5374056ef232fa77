/** A worker task in memory, its rows, and the entries of its history. Pure. */

import { rankOf } from '../../schema/states.js';
import { hashedUuid, stepIdempotencyKey } from '../../src/base/ids.js';
import { isoTime, type UnixMs } from '../../src/base/time.js';
import type { Dispatch } from '../../src/core/progress.js';
import type { WorkerTaskRow } from './loads.js';
import type { InstanceRecord } from './record.js';

export type AttemptEvent =
  | 'claimed'
  | 'reclaimed'
  | 'completed'
  | 'failed'
  | 'timed_out'
  | 'cancelled'
  | 'stale_mutation_rejected';

/** An entry of a task's history, as in `GET /workers/tasks/{id}/attempts`. */
export interface Attempt {
  readonly id: string;
  readonly task_id: string;
  readonly claim_epoch: number;
  readonly worker_id?: string;
  readonly event: AttemptEvent;
  readonly reason?: string;
  readonly created_at: string;
}

/** The row of a task, which its actor changes in place. JSON columns are text. */
export type WorkerTaskRecord = { -readonly [K in keyof WorkerTaskRow]: WorkerTaskRow[K] };

/** The `history` of a task whose entries `historyOf` derives. */
export const NO_HISTORY = '[]';

/** @param previous the task of the previous try, whose checkpoint is handed on */
export function newTask(
  id: string,
  owner: Pick<InstanceRecord, 'id' | 'tenant_id' | 'priority' | 'ownership_epoch'>,
  dispatch: Dispatch,
  previous: WorkerTaskRecord | undefined,
  now: UnixMs,
): WorkerTaskRecord & { readonly ownership_epoch: number | null } {
  const { runs } = dispatch;
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
    overlay: dispatch.overlay && JSON.stringify(dispatch.overlay),
    secrets: dispatch.secrets === undefined ? null : JSON.stringify(dispatch.secrets),
    attempt: dispatch.attempt,
    idempotency_key:
      runs === 0 ? null : stepIdempotencyKey(owner.id, dispatch.blockId, dispatch.iteration, runs),
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
    history: NO_HISTORY,
    rank: taskRank(owner, true),
    ownership_epoch: owner.ownership_epoch || null,
  };
}

/** That of the first run is not stored. */
export function taskIdempotencyKey(
  task: Pick<WorkerTaskRow, 'idempotency_key' | 'instance_id' | 'block_id' | 'iteration'>,
): string {
  const { idempotency_key, instance_id, block_id, iteration } = task;
  return idempotency_key ?? stepIdempotencyKey(instance_id, block_id, iteration, 0);
}

export function isOpen({ state }: Pick<WorkerTaskRecord, 'state'>): boolean {
  return state === 'pending' || state === 'claimed';
}

/** Removes refusals first: repeated late results must not displace the claims and the end. */
export function shorten(history: Attempt[]): void {
  const refused = history.findIndex(({ event }) => event === 'stale_mutation_rejected');
  history.splice(Math.max(refused, 0), 1);
}

type Claimed = Pick<
  WorkerTaskRecord,
  'id' | 'state' | 'worker_id' | 'claim_epoch' | 'claimed_at' | 'completed_at' | 'history'
>;

/** A task that was claimed once and at most completed since has no stored history. */
export function historyOf(task: Claimed): Attempt[] {
  const { id: task_id, history, worker_id, claimed_at, completed_at } = task;
  if (history !== NO_HISTORY || claimed_at === null) return JSON.parse(history) as Attempt[];
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

export function isDerived({ history, claim_epoch }: Claimed, event: AttemptEvent): boolean {
  if (history !== NO_HISTORY) return false;
  return event === 'completed' || (event === 'claimed' && claim_epoch === 1);
}

export function textOrNull(text: string | null): string {
  return text === null ? 'null' : JSON.stringify(text);
}

/** Times and ids never need escapes. */
export function timeOrNull(text: string | null): string {
  return text === null ? 'null' : `"${text}"`;
}

/** Priorities rank from 0 to 3; queues read ranks above -1. */
const NOT_OFFERED = -100;

/** Tasks that are not offered rank below the part of the queue that is read. */
export function taskRank(
  { priority }: Pick<WorkerTaskRecord, 'priority'>,
  isOffered: boolean,
): number {
  return rankOf(priority) + (isOffered ? 0 : NOT_OFFERED);
}
