/**
 * Turns what the evaluator did into the rows and effects of a commit unit: outputs, worker tasks,
 * in-process steps, withdrawals, snapshots, audit and log lines. The instance's own row follows
 * when the whole message is handled.
 */

import { routeOfName, shardOf } from '../src/core/ids.js';
import type { Dispatch, OutputRow, Progress, Withdrawal } from '../src/core/progress.js';
import type { InstanceState } from '../src/core/states.js';
import { isoTime } from '../src/core/time.js';
import type { InstanceActor } from './instance.js';
import { stepKey } from './instance.js';
import type { Turn } from './turn.js';
import {
  allTaskColumns,
  changingTaskColumns,
  newTask,
  note,
  openTaskColumns,
  taskRank,
  type WorkerTaskRecord,
} from './worker-task.js';

export function recordProgress(actor: InstanceActor, turn: Turn, progress: Progress): void {
  if (progress.dropErrorRows) {
    turn.put('output.dropErrors', actor.record.id, { instance_id: actor.record.id });
  }
  for (const output of progress.outputs) putOutput(actor, turn, output);
  for (const withdrawal of progress.withdrawals) withdraw(actor, turn, withdrawal);
  for (const dispatch of progress.dispatches) {
    if (dispatch.external) openTask(actor, turn, dispatch);
    else perform(actor, turn, dispatch);
  }
  putSnapshots(actor, turn, progress);
  putAudit(actor, turn, progress.audit);
  for (const line of progress.logs) {
    turn.effects.push({ kind: 'log', instance: actor.record.id, ...line });
  }
  turn.count('engine_steps_executed_total', progress.counts.stepsExecuted);
  turn.count('engine_steps_failed_total', progress.counts.stepsFailed);
  turn.count('engine_steps_retried_total', progress.counts.stepsRetried);
}

function putOutput(actor: InstanceActor, turn: Turn, output: OutputRow): void {
  const id = actor.nextId();
  const text = JSON.stringify(output.output);
  turn.put(
    'output.insert',
    id,
    `{"id":"${id}","instance_id":"${actor.record.id}",` +
      `"block_id":${JSON.stringify(output.blockId)},"iteration":"${output.iteration}",` +
      `"attempt":${output.attempt},"try":${output.tryNumber},"output":${text},` +
      `"output_ref":${JSON.stringify(output.outputRef)},` +
      `"output_size":${Buffer.byteLength(text)},"created_at":"${isoTime(actor.env.now())}"}`,
  );
}

/** The task's row and the hint to its queue: the row is found again through `open_tasks`. */
function openTask(actor: InstanceActor, turn: Turn, dispatch: Dispatch): void {
  const previous = lastTaskOf(actor, dispatch);
  const task = newTask(actor.nextId(), actor.record, dispatch, previous, actor.env.now());
  actor.tasks.set(task.id, task);
  turn.put('task.insert', task.id, allTaskColumns(task));
  turn.put('openTask.insert', task.id, openTaskColumns(task));
  turn.effects.push({ kind: 'task.opened', instance: actor.record.id, task: task.id });
  hintReady(actor, turn, task);
}

export function hintReady(actor: InstanceActor, turn: Turn, task: WorkerTaskRecord): void {
  turn.effects.push({
    kind: 'peer',
    shard: shardOf(routeOfName(task.handlerName), actor.env.shards),
    message: [
      'task.ready',
      task.handlerName,
      task.id,
      actor.record.id,
      task.tenantId,
      task.queueName ?? '',
      taskRank(task),
      task.createdAt,
    ],
  });
}

export function hintGone(actor: InstanceActor, turn: Turn, task: WorkerTaskRecord): void {
  turn.effects.push({
    kind: 'peer',
    shard: shardOf(routeOfName(task.handlerName), actor.env.shards),
    message: ['task.gone', task.handlerName, task.id],
  });
}

function lastTaskOf(
  actor: InstanceActor,
  step: { readonly node: number; readonly iteration: string },
): WorkerTaskRecord | undefined {
  let last: WorkerTaskRecord | undefined;
  for (const task of actor.tasks.values()) {
    if (task.node === step.node && task.iteration === step.iteration) last = task;
  }
  return last;
}

function perform(actor: InstanceActor, turn: Turn, dispatch: Dispatch): void {
  const { node, iteration, attempt } = dispatch;
  actor.running.set(stepKey(dispatch), { node, iteration, attempt });
  turn.effects.push({
    kind: 'perform',
    instance: actor.record.id,
    step: {
      node,
      iteration,
      attempt,
      handler: dispatch.handler,
      params: dispatch.params,
      token: `${actor.record.id}:${dispatch.blockId}:${iteration}:${attempt}`,
    },
  });
}

/** A step that is cut off: its handler is aborted, its task is neither offered nor listed again. */
function withdraw(actor: InstanceActor, turn: Turn, withdrawal: Withdrawal): void {
  const { node, iteration } = withdrawal;
  if (actor.running.delete(stepKey(withdrawal))) {
    turn.effects.push({ kind: 'abort', instance: actor.record.id, step: { node, iteration } });
    return;
  }
  const task = lastTaskOf(actor, withdrawal);
  if (task === undefined || (task.state !== 'pending' && task.state !== 'claimed')) return;
  const timedOut = withdrawal.reason === 'timed_out';
  const now = actor.env.now();
  task.state = 'failed';
  task.withdrawn = !timedOut;
  task.completedAt = now;
  task.errorMessage = timedOut ? `timed out after ${task.timeoutMs} ms` : 'cancelled';
  task.errorRetryable = timedOut;
  note(task, timedOut ? 'timed_out' : 'cancelled', { id: actor.nextId(), now });
  closeTask(actor, turn, task);
}

/** Writes a task that ended, and takes it out of the open ones. */
export function closeTask(actor: InstanceActor, turn: Turn, task: WorkerTaskRecord): void {
  turn.put('task.update', task.id, changingTaskColumns(task));
  turn.put('openTask.delete', task.id, { task_id: task.id });
  hintGone(actor, turn, task);
  forgetOldTasks(actor);
}

/** Ended tasks are kept for a while, for late calls and for the checkpoint of a next try. */
const ENDED_TASKS_KEPT = 32;

function forgetOldTasks(actor: InstanceActor): void {
  let ended = 0;
  for (const task of actor.tasks.values()) {
    if (task.state === 'completed' || task.state === 'failed') ended += 1;
  }
  for (const [id, task] of actor.tasks) {
    if (ended <= ENDED_TASKS_KEPT) return;
    if (task.state !== 'completed' && task.state !== 'failed') continue;
    actor.tasks.delete(id);
    ended -= 1;
  }
}

function putSnapshots(actor: InstanceActor, turn: Turn, progress: Progress): void {
  const { id } = actor.record;
  for (const key of progress.droppedSnapshots) {
    turn.put('snapshot.clear', `${id}:${key}`, { instance_id: id, key });
  }
  for (const { key, items } of progress.snapshots) {
    turn.put('snapshot.set', `${id}:${key}`, { instance_id: id, key, items });
  }
}

/** A move that a request makes without the evaluator. */
export function recordTransition(
  actor: InstanceActor,
  turn: Turn,
  fromState: InstanceState,
  toState: InstanceState,
): void {
  putAudit(actor, turn, [{ eventType: 'state_transition', fromState, toState }]);
}

/** The audit entries of one evaluation are packed in one row. */
function putAudit(actor: InstanceActor, turn: Turn, events: Progress['audit']): void {
  if (events.length === 0) return;
  const { record } = actor;
  const entries = events.map((event) => ({
    id: actor.nextId(),
    event_type: event.eventType,
    from_state: event.fromState,
    to_state: event.toState,
    block_id: event.blockId,
    details: event.details ?? {},
  }));
  if (actor.birthAudit !== undefined) {
    actor.birthAudit.push(...entries);
    return;
  }
  record.auditCount += 1;
  turn.put('audit.insert', `${record.id}:${record.auditCount}`, {
    instance_id: record.id,
    seq: record.auditCount,
    tenant_id: record.tenantId,
    entries,
    created_at: isoTime(actor.env.now()),
  });
}
