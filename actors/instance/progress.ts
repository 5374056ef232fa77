/** Turns the progress of the evaluator into rows and effects; `settling.ts` adds the rest. */

import { type InstanceState, rankOf } from '../../schema/states.js';
import {
  rateLimitId,
  routeOf,
  routeOfName,
  shardOf,
  stepIdempotencyKey,
} from '../../src/base/ids.js';
import { textOfJson } from '../../src/base/json.js';
import { LIMITS } from '../../src/base/limits.js';
import { isoTime, msOfTime } from '../../src/base/time.js';
import { DEADLINE_HANDLER_MS_MAX, isDeadlineHandler } from '../../src/core/deadline-handlers.js';
import { isProgressNote } from '../../src/core/loop-items.js';
import {
  type AuditEvent,
  type Dispatch,
  GATE_REF,
  NOTE_MARK,
  type OutputRow,
  type Progress,
  type TakenSignal,
  type Withdrawal,
} from '../../src/core/progress.js';
import { rowOf } from '../../src/db/lines.js';
import type { Mutation } from '../../src/db/mutation.js';
import type { StoredRow } from '../../src/db/table.js';
import type { PeerMessage } from '../runtime/protocol.js';
import type { Effect, TaskChange, Turn } from '../runtime/turn.js';
import { entryText, hasOwnId } from './core/audit-entry.js';
import { type OutputEffect, recordEffect, settleEffects } from './effects.js';
import { endGates } from './gate-rows.js';
import { type LiveInstance, nextId, stepKey } from './live-instance.js';
import { charactersOf } from './memory.js';
import { addLine } from './notes.js';
import { TASK_BEFORE } from './old-tables.js';
import {
  AUDIT,
  type BLOCK_OUTPUTS,
  OUTPUT,
  type PackedOutput,
  packedText,
  SIGNAL,
  SNAPSHOT,
  unpacked,
} from './output-tables.js';
import { offersTasks } from './record.js';
import { TASK } from './task-tables.js';
import {
  type AttemptEvent,
  historyOf,
  isDerived,
  isOpen,
  newTask,
  shorten,
  type WorkerTaskRecord,
} from './worker-task.js';

export function recordProgress(actor: LiveInstance, turn: Turn, progress: Progress): void {
  if (progress.dropErrorRows) {
    turn.put(OUTPUT.dropErrors, actor.record.id, { instance_id: actor.record.id });
  }
  if (progress.droppedOutputs.length > 0) {
    const { id } = actor.record;
    turn.put(OUTPUT.dropBlocks, id, { instance_id: id, block_ids: progress.droppedOutputs });
  }
  const effects =
    progress.effects && settleEffects(actor, turn, progress.effects, progress.outputs);
  for (const output of progress.outputs) putOutput(actor, turn, output, effects?.get(output));
  for (const withdrawal of progress.withdrawals) {
    withdraw(actor, turn, withdrawal, isRetried(progress, withdrawal.blockId));
  }
  for (const dispatch of progress.dispatches) {
    if (dispatch.external) openTask(actor, turn, dispatch);
    else perform(actor, turn, dispatch);
  }
  // `limits.ts` receives the answers.
  for (const { node, iteration, attempt, key } of progress.rateRequests) {
    const { id: instance, tenant_id: tenant } = actor.record;
    const limit = rateLimitId(tenant, key);
    const asker = { tenant, name: key, instance, node, iteration, attempt };
    sendToPeer(actor, turn, limit, { kind: 'rate.asked', limit, ...asker });
  }
  if (progress.takenSignals !== undefined) putTaken(actor, turn, progress.takenSignals);
  if (progress.gates !== undefined) endGates(actor, turn, progress.gates);
  putSnapshots(actor, turn, progress);
  putAudit(actor, turn, progress.audit);
  for (const line of progress.logs) {
    addLine(actor, turn, line);
    const { blockId, level } = line;
    turn.effects.push({ kind: 'log', instance: actor.record.id, blockId, level });
  }
}

/** In characters: a larger row would be compressed, or stored out of line. */
const END_OUTPUTS_MAX = 1_000;

/** @param effect the receipt, which the row of the output includes */
function putOutput(
  actor: LiveInstance,
  turn: Turn,
  output: OutputRow,
  effect: OutputEffect | undefined,
): void {
  const id = effect?.id ?? nextId(actor);
  const text = textOfJson(output.output);
  // A gate note must not occupy the key of the step's output row.
  const isNote = output.outputRef === GATE_REF;
  if (!isNote && !isProgressNote(output.output)) actor.shown?.set(output.blockId, text);
  const iteration = isNote ? `${output.iteration}${NOTE_MARK}${id}` : output.iteration;
  if (!isNote && actor.record.snapshot.outputs.has(output.blockId)) {
    actor.kept.output(output.blockId, text.length);
  }
  const row = {
    id,
    instance_id: actor.record.id,
    block_id: output.blockId,
    iteration,
    attempt: output.attempt,
    try: output.tryNumber,
    output: text,
    output_ref: output.outputRef,
    output_size: Buffer.byteLength(text),
    created_at: isoTime(actor.env.now()),
    effect: effect?.text ?? null,
  };
  if (!packOutput(actor, row)) turn.put(OUTPUT.insert, id, rowOf(OUTPUT.insert, row));
}

/**
 * Adds the output to the row of its instance if the unit completes it. While the instance goes on, each
 * update of its row would write the output again: `unpackOutputs` comes first.
 * @returns false if the output needs a row of its own
 */
function packOutput({ record }: LiveInstance, row: StoredRow<typeof BLOCK_OUTPUTS>): boolean {
  if (record.snapshot.state !== 'completed') return false;
  if (row.output_ref !== null || row.effect !== null) return false;
  const packed = record.end_outputs === null ? '[' : `${record.end_outputs.slice(0, -1)},`;
  const text = `${packed}${packedText(row)}]`;
  if (text.length > END_OUTPUTS_MAX) return false;
  record.end_outputs = text;
  return true;
}

/** Gives the outputs in the row of a completed instance rows of their own, except those of these blocks. */
export function unpackOutputs(
  { record }: LiveInstance,
  turn: Turn,
  dropped: readonly string[],
): void {
  const packed = JSON.parse(record.end_outputs ?? '[]') as PackedOutput[];
  for (const output of packed) {
    if (dropped.includes(output.block_id)) continue;
    turn.put(OUTPUT.insert, output.id, unpacked(record.id, output));
  }
  record.end_outputs = null;
}

function openTask(actor: LiveInstance, turn: Turn, dispatch: Dispatch): void {
  const previous = actor.tasks.lastOf(dispatch);
  const task = newTask(nextId(actor), actor.record, dispatch, previous, actor.env.now());
  actor.tasks.set(task);
  // The row of the task is also the receipt of its effect.
  turn.put(TASK.insert, task.id, rowOf(TASK.insert, task));
  turn.effects.push(queueHint(actor, task));
  countTask(turn, task, 'arrived');
}

/** For statistics of its queue. */
export function countTask(
  turn: Turn,
  task: WorkerTaskRecord,
  change: TaskChange,
  waitedMs = 0,
): void {
  const { tenant_id: tenant, handler_name: handler, queue_name } = task;
  turn.effects.push({ kind: 'tasked', tenant, handler, queue: queue_name ?? '', change, waitedMs });
}

/** Whether workers may claim the task. */
export function isOffered({ record }: LiveInstance, { state }: WorkerTaskRecord): boolean {
  return state === 'pending' && offersTasks(record);
}

/** The message that adds the task to its queue, or removes it. */
export function queueHint(actor: LiveInstance, task: WorkerTaskRecord): Effect {
  const { env, record } = actor;
  const { id, handler_name: handler, tenant_id: tenant } = task;
  const queue = task.queue_name ?? '';
  const message: PeerMessage = isOffered(actor, task)
    ? {
        kind: 'task.ready',
        handler,
        task: id,
        tenant,
        queue,
        instance: record.id,
        rank: rankOf(task.priority),
        createdAt: msOfTime(task.created_at),
      }
    : { kind: 'task.gone', handler, task: id, tenant, queue };
  return { kind: 'peer', shard: shardOf(routeOfName(handler), env.shards), message };
}

/** Sends the message to the actor with this id once the unit is durable. */
export function sendToPeer(
  actor: LiveInstance,
  turn: Turn,
  id: string,
  message: PeerMessage,
): void {
  turn.effects.push({ kind: 'peer', shard: shardOf(routeOf(id), actor.env.shards), message });
}

export function putTaken(actor: LiveInstance, turn: Turn, taken: readonly TakenSignal[]): void {
  const { id } = actor.record;
  const taken_at = isoTime(actor.env.now());
  for (const { seq, status, blockId, reply } of taken) {
    const changes = { instance_id: id, seq, status, taken_at, taken_by: blockId };
    turn.put(SIGNAL.update, `${id}:${seq}`, changes);
    const answer = {
      taken: status === 'taken',
      block_id: blockId,
      ...(reply !== undefined && { reply }),
    };
    turn.effects.push({ kind: 'signal.taken', instance: id, seq, answer });
  }
}

function perform(actor: LiveInstance, turn: Turn, dispatch: Dispatch): void {
  const { node, iteration, attempt, blockId, runs } = dispatch;
  actor.running.set(stepKey(dispatch), { node, iteration, attempt });
  const key = stepIdempotencyKey(actor.record.id, blockId, iteration, runs);
  recordEffect(actor, dispatch, key);
  turn.effects.push({
    kind: 'perform',
    instance: actor.record.id,
    step: {
      node,
      iteration,
      attempt,
      tenant: actor.record.tenant_id,
      handler: dispatch.handler,
      params: dispatch.params,
      idempotencyKey: key,
      traceparent: actor.record.traceparent ?? undefined,
      secrets: dispatch.secrets && { tenant: actor.record.tenant_id, texts: dispatch.secrets },
      ...(dispatch.timeoutMs === null ? {} : { timeoutMs: dispatch.timeoutMs }),
      ...(isDeadlineHandler(dispatch) ? { maxMs: DEADLINE_HANDLER_MS_MAX } : {}),
    },
  });
}

/** Aborts the handler of a withdrawn step, or withdraws its task. */
function withdraw(
  actor: LiveInstance,
  turn: Turn,
  withdrawal: Withdrawal,
  isDispatchedAgain: boolean,
): void {
  const { node, iteration, reason } = withdrawal;
  if (actor.running.delete(stepKey(withdrawal))) {
    turn.effects.push({ kind: 'abort', instance: actor.record.id, step: { node, iteration } });
    return;
  }
  const task = actor.tasks.lastOf(withdrawal);
  if (task === undefined || !isOpen(task)) return;
  withdrawTask(actor, turn, task, reason, isDispatchedAgain);
}

/** Ends a task without a result. Its step may be dispatched again. */
export function withdrawTask(
  actor: LiveInstance,
  turn: Turn,
  task: WorkerTaskRecord,
  reason: Withdrawal['reason'],
  isDispatchedAgain: boolean,
): void {
  const isCancelled = reason === 'cancelled';
  task.state = 'failed';
  task.withdrawn = isCancelled || isDispatchedAgain;
  task.completed_at = isoTime(actor.env.now());
  task.error_message = WITHDRAWN[reason](task);
  task.error_retryable = reason === 'timed_out' || reason === 'unclaimed';
  const more = reason === 'timed_out' || isCancelled ? {} : { reason: task.error_message };
  recordAttempt(actor, task, isCancelled ? 'cancelled' : 'timed_out', more);
  closeTask(actor, turn, task);
}

const WITHDRAWN: Readonly<Record<Withdrawal['reason'], (task: WorkerTaskRecord) => string>> = {
  cancelled: () => 'cancelled',
  timed_out: ({ timeout_ms }) => `timed out after ${timeout_ms} ms`,
  unclaimed: () => 'no worker claimed it within the queue_timeout of the step',
  deadline: () => 'the deadline of the step has passed',
};

/** Whether the block is tried again; its current task is then no longer listed. */
export function isRetried(progress: Progress, block: string): boolean {
  return progress.audit.some(
    ({ eventType, blockId }) => eventType === 'step_retried' && blockId === block,
  );
}

export function closeTask(actor: LiveInstance, turn: Turn, task: WorkerTaskRecord): void {
  task.rank = null;
  countTask(turn, task, task.claimed_at === null ? 'withdrawn' : 'ended');
  putTask(turn, TASK.end, task, rowOf(TASK.end, task));
  turn.effects.push(queueHint(actor, task));
  actor.tasks.ended(task.id);
}

/** Stores the history of a task whose claim has not changed. */
export function putHistory(turn: Turn, task: WorkerTaskRecord): void {
  const { id, history, checkpoint_seq } = task;
  if (isOpen(task)) {
    putTask(turn, TASK.history, task, `{"id":"${id}","history":${history}}`);
    return;
  }
  const row = `{"id":"${id}","checkpoint_seq":${checkpoint_seq},"history":${history}}`;
  putTask(turn, TASK.note, task, row);
}

/** Writes to the row of a task. @param row its columns, or their text */
export function putTask<Row extends object>(
  turn: Turn,
  mutation: Mutation<Row>,
  task: WorkerTaskRecord,
  row: NoInfer<Row> | string,
): void {
  if (task.is_before === true) {
    turn.put(TASK_BEFORE.move, task.id, { id: task.id });
    task.is_before = false;
  }
  turn.put(mutation, task.id, row);
}

function putSnapshots(actor: LiveInstance, turn: Turn, progress: Progress): void {
  const { id } = actor.record;
  for (const key of progress.droppedSnapshots) {
    turn.put(SNAPSHOT.clear, `${id}:${key}`, { instance_id: id, key });
  }
  for (const { key, items } of progress.snapshots) {
    actor.kept.items(key, charactersOf(items));
    turn.put(SNAPSHOT.set, `${id}:${key}`, { instance_id: id, key, items });
  }
}

/** Audits a transition outside the evaluator. Call it before the transition. */
export function putTransition(actor: LiveInstance, turn: Turn, toState: InstanceState): void {
  const fromState = actor.record.snapshot.state;
  putAudit(actor, turn, [{ eventType: 'state_transition', fromState, toState }]);
}

export function putAudit(actor: LiveInstance, turn: Turn, events: readonly AuditEvent[]): void {
  if (events.length === 0) return;
  const { record } = actor;
  turn.effects.push({ kind: 'audited', tenant: record.tenant_id });
  const entries = actor.creationAudit ?? [];
  for (const event of events) {
    const id = hasOwnId(entries.length) ? actor.env.ids.first(actor.route) : undefined;
    entries.push(entryText(id, event));
  }
  if (actor.creationAudit !== undefined) return;
  record.audit_count += 1;
  turn.put(
    AUDIT.insert,
    `${record.id}:${record.audit_count}`,
    rowOf(AUDIT.insert, {
      instance_id: record.id,
      seq: record.audit_count,
      tenant_id: record.tenant_id,
      entries: `[${entries.join(',')}]`,
      created_at: isoTime(actor.env.stamp()),
    }),
  );
}

export function recordAttempt(
  actor: LiveInstance,
  task: WorkerTaskRecord,
  event: AttemptEvent,
  entry: { epoch?: number; worker?: string; reason?: string } = {},
): void {
  if (isDerived(task, event)) return;
  const history = historyOf(task);
  const worker = entry.worker ?? task.worker_id;
  history.push({
    id: nextId(actor),
    task_id: task.id,
    claim_epoch: entry.epoch ?? task.claim_epoch,
    ...(worker === null ? {} : { worker_id: worker }),
    event,
    ...(entry.reason === undefined ? {} : { reason: entry.reason }),
    created_at: isoTime(actor.env.now()),
  });
  if (history.length > LIMITS.taskHistoryMax) shorten(history);
  task.history = JSON.stringify(history);
}
