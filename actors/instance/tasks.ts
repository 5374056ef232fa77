/**
 * What workers and queues do with the tasks of an instance. A claim is a commit unit that raises the
 * epoch; a call with another epoch or worker changes nothing but the task's history.
 */

import { EngineError, invalid, notFound } from '../../src/base/errors.js';
import { type JsonObject, type JsonValue, textOfJson } from '../../src/base/json.js';
import { LIMITS } from '../../src/base/limits.js';
import { isoTime, msOfTime } from '../../src/base/time.js';
import type { StepOutcome } from '../../src/core/builtin.js';
import { SILENCE_REASON } from '../../src/core/effects.js';
import { overlayAt } from '../../src/core/evaluator.js';
import { isOfHooks } from '../../src/core/hooks.js';
import type { Progress } from '../../src/core/progress.js';
import { caughtBy } from '../../src/core/scopes.js';
import type { NamedSecrets } from '../runtime/protocol.js';
import type { Effect, Turn } from '../runtime/turn.js';
import { advance, advanceTry } from './advance.js';
import type { LiveInstance } from './live-instance.js';
import { checkBytes, checkSize } from './memory.js';
import type { MessageOf, WorkerRequest } from './messages.js';
import { noteWorkerLines } from './notes.js';
import { closeTask, isOffered, isRetried, note, putHistory, queueHint } from './progress.js';
import { OPEN_TASK, TASK } from './task-tables.js';
import {
  type Attempt,
  claimRow,
  openTaskRank,
  type WorkerTaskRecord,
  wireTask,
} from './worker-task.js';

type Claim = MessageOf<'claim'>;
type Complete = MessageOf<'task.complete'>;
type Fail = MessageOf<'task.fail'>;
type Heartbeat = MessageOf<'task.heartbeat'>;

/** A queue picked the task for a poll: it is claimed, or the queue is told that it is gone. */
export function claim(actor: LiveInstance, turn: Turn, message: Claim): Progress | undefined {
  const task = actor.tasks.get(message.task);
  if (task === undefined || !isOffered(actor, task)) {
    turn.effects.push(claimAnswer(message, 0));
    return undefined;
  }
  task.state = 'claimed';
  task.worker_id = message.worker;
  task.claim_epoch += 1;
  task.claimed_at = isoTime(actor.env.now());
  task.heartbeat_at = task.claimed_at;
  note(actor, task, 'claimed');
  putClaim(turn, task);
  const { secrets, tenant_id: tenant } = task;
  const named = message.maySeeSecrets && secrets !== null ? { tenant, texts: secrets } : undefined;
  turn.effects.push(claimAnswer(message, task.claim_epoch, wireText(actor, task), named));
  turn.effects.push(heartbeatWatch(actor, task));
  return tellStep(actor, turn, task, 'step.claimed');
}

/** The step hears of the claim if a time limit begins or ends with it; others are left as they are. */
function tellStep(
  actor: LiveInstance,
  turn: Turn,
  { node, iteration, attempt, timeout_ms }: WorkerTaskRecord,
  kind: 'step.claimed' | 'step.returned',
): Progress | undefined {
  const step = actor.plan.nodes[node];
  const isLimited = step?.type === 'step' && step.queueTimeoutMs !== null;
  if (timeout_ms === null && !isLimited) return undefined;
  return advanceTry(actor, turn, { kind, node, iteration, attempt });
}

/** The instance is held back from now on, or not any more: what waits for a worker leaves the queues, or is put back. */
export function offerTasks(actor: LiveInstance, turn: Turn): void {
  for (const task of actor.tasks.values()) {
    if (task.state !== 'pending') continue;
    placeTask(actor, turn, task);
    turn.effects.push(queueHint(actor, task));
  }
}

/** Its place in the queues, which it loses while it is not offered. */
function placeTask(actor: LiveInstance, turn: Turn, task: WorkerTaskRecord): void {
  const rank = openTaskRank(task, isOffered(actor, task));
  turn.put(OPEN_TASK.rank, task.id, { task_id: task.id, rank });
}

/** The claim, or that there is none any more. */
function putClaim(turn: Turn, task: WorkerTaskRecord): void {
  turn.put(OPEN_TASK.claim, task.id, claimRow(task));
  if (task.history.length > 0) putHistory(turn, task);
}

/** @param epoch of the claim; 0: the task is gone, -1: it is not known, and is offered again */
export function claimAnswer(
  message: Claim,
  epoch: number,
  record = '',
  secrets?: NamedSecrets,
): Effect {
  const { handler, poll, task, queueShard: shard } = message;
  const answer = { kind: 'claimed', handler, poll, task, epoch, record } as const;
  return { kind: 'peer', shard, message: secrets === undefined ? answer : { ...answer, secrets } };
}

/** The poller went away after its claim was committed: the task waits again, at once. */
export function unclaim(
  actor: LiveInstance,
  turn: Turn,
  { task: taskId, epoch }: MessageOf<'unclaim'>,
): Progress | undefined {
  const task = actor.tasks.get(taskId);
  if (task === undefined || task.state !== 'claimed' || task.claim_epoch !== epoch) {
    return undefined;
  }
  return giveBack(actor, turn, task, 'the poll was abandoned');
}

/** Nobody can be given the task as it is: its step fails for good. */
export function secretMissing(
  actor: LiveInstance,
  turn: Turn,
  { task: taskId, epoch, reason: message }: MessageOf<'secret.missing'>,
): Progress | undefined {
  const task = actor.tasks.get(taskId);
  if (task === undefined || task.state !== 'claimed' || task.claim_epoch !== epoch) return;
  task.error_message = message;
  task.error_retryable = false;
  const code = 'secret_missing';
  return settle(actor, turn, task, { kind: 'failure', retryable: false, message, code });
}

/**
 * Heartbeat silence: the task returns to its queue with the same id, try and checkpoint. What silences one worker
 * after the other is offered to no more of them.
 */
export function reap(
  actor: LiveInstance,
  turn: Turn,
  { task: taskId }: MessageOf<'reap'>,
): Progress | undefined {
  const task = actor.tasks.get(taskId);
  if (task === undefined || task.state !== 'claimed') return undefined;
  if (silentAt(actor, task) > actor.env.now()) {
    turn.effects.push(heartbeatWatch(actor, task));
    return undefined;
  }
  task.lost_claims += 1;
  const max = actor.env.lostClaimsMax;
  if (max > 0 && task.lost_claims >= max) return claimsLost(actor, turn, task);
  return giveBack(actor, turn, task, SILENCE_REASON);
}

/** A person has to see what ends the workers: the step fails for good. */
function claimsLost(actor: LiveInstance, turn: Turn, task: WorkerTaskRecord): Progress {
  note(actor, task, 'reclaimed', { reason: SILENCE_REASON });
  const message = `workers fell silent over ${task.lost_claims} claims of this try`;
  task.error_message = message;
  task.error_retryable = false;
  // No worker has said that it failed: what became of its effect nobody knows.
  return conclude(actor, turn, task, {
    kind: 'failure',
    retryable: false,
    message,
    code: 'claims_lost',
  });
}

function giveBack(
  actor: LiveInstance,
  turn: Turn,
  task: WorkerTaskRecord,
  reason: string,
): Progress | undefined {
  note(actor, task, 'reclaimed', { reason });
  task.state = 'pending';
  task.worker_id = null;
  task.claimed_at = null;
  task.heartbeat_at = null;
  putClaim(turn, task);
  if (!isOffered(actor, task)) placeTask(actor, turn, task);
  turn.effects.push(queueHint(actor, task));
  const came = tellStep(actor, turn, task, 'step.returned');
  // The slot of an instance that is held back was kept for this worker.
  const isKept = actor.record.snapshot.execution.r === 1;
  return came ?? (isKept ? advance(actor, turn, { kind: 'wake' }) : undefined);
}

/** After downtime silence counts from readiness, or every live worker would be reclaimed. */
function silentAt(actor: LiveInstance, task: WorkerTaskRecord): number {
  const heardAt = task.heartbeat_at === null ? 0 : msOfTime(task.heartbeat_at);
  const since = Math.max(heardAt, actor.env.readySince(actor.record.tenant_id));
  return since + actor.env.workerStaleMs;
}

function heartbeatWatch(actor: LiveInstance, task: WorkerTaskRecord): Effect {
  return { kind: 'reap', instance: actor.record.id, task: task.id, at: silentAt(actor, task) };
}

/**
 * For an actor that was loaded: whoever watched its claims before may have been lost, and so may the
 * hints of tasks that wait, when the writer dies after it has committed.
 */
export function taskHints(actor: LiveInstance): Effect[] {
  return [...actor.tasks.values()].flatMap((task) => {
    if (task.state === 'claimed') return [heartbeatWatch(actor, task)];
    return isOffered(actor, task) ? [queueHint(actor, task)] : [];
  });
}

export function complete(actor: LiveInstance, turn: Turn, message: Complete): Progress | undefined {
  const output = message.body.output as JsonObject;
  const task = heldTask(actor, turn, message);
  if (task === undefined) return undefined;
  checkSize('output is', output, actor.env.maxOutputBytes);
  task.output = textOfJson(output);
  return end(actor, turn, message, task, { kind: 'success', output });
}

/**
 * A failed try that is dispatched again leaves the queue for good: the next try is a new task.
 * A final failure stays listed.
 */
export function fail(actor: LiveInstance, turn: Turn, message: Fail): Progress | undefined {
  const { message: reason, retryable } = message.body;
  const task = heldTask(actor, turn, message);
  if (task === undefined) return undefined;
  task.error_message = reason;
  task.error_retryable = retryable ?? false;
  const outcome = { kind: 'failure', retryable: retryable ?? false, message: reason } as const;
  return end(actor, turn, message, task, outcome);
}

function end(
  actor: LiveInstance,
  turn: Turn,
  { request, body, isBrief }: Complete | Fail,
  task: WorkerTaskRecord,
  outcome: StepOutcome,
): Progress {
  noteWorkerLines(actor, turn, task.block_id, body.logs);
  const progress = settle(actor, turn, task, outcome);
  turn.reply(request, 200, isBrief ? '' : wireText(actor, task));
  return progress;
}

/** The task has ended, which its history tells. */
function settle(
  actor: LiveInstance,
  turn: Turn,
  task: WorkerTaskRecord,
  outcome: StepOutcome,
): Progress {
  if (outcome.kind === 'success') note(actor, task, 'completed');
  else note(actor, task, 'failed', { reason: outcome.message });
  return conclude(actor, turn, task, outcome);
}

/** What is at an end with the task: the try of its step. */
function conclude(
  actor: LiveInstance,
  turn: Turn,
  task: WorkerTaskRecord,
  outcome: StepOutcome,
): Progress {
  task.state = outcome.kind === 'success' ? 'completed' : 'failed';
  task.completed_at = isoTime(actor.env.now());
  measure(actor, task);
  const { node, iteration, attempt } = task;
  const step = { node, iteration, attempt };
  const progress = advance(actor, turn, { kind: 'step.outcome', ...step, outcome, external: true });
  task.withdrawn = outcome.kind === 'failure' && isRetried(progress, task.block_id);
  closeTask(actor, turn, task);
  return progress;
}

/** What a worker took, from its claim on. */
function measure(actor: LiveInstance, task: WorkerTaskRecord): void {
  const { claimed_at, completed_at, handler_name, state } = task;
  if (claimed_at === null || completed_at === null) return;
  const seconds = Math.max(0, msOfTime(completed_at) - msOfTime(claimed_at)) / 1_000;
  actor.env.measures?.attemptEnded(handler_name, seconds, state === 'completed');
}

/** Refreshes the claim, or gives it back; a checkpoint must be sent with the number of the last one. */
export function heartbeat(
  actor: LiveInstance,
  turn: Turn,
  message: Heartbeat,
): Progress | undefined {
  const { checkpoint_seq: checkpointSeq } = message.body;
  const checkpoint = (message.body.checkpoint ?? null) as JsonValue;
  if (checkpoint !== null && checkpointSeq == null) {
    throw invalid('checkpoint_seq is required with a checkpoint');
  }
  const text = JSON.stringify(checkpoint);
  const bytes = checkpoint === null ? 0 : Buffer.byteLength(text);
  checkBytes('checkpoint is', bytes, LIMITS.checkpointBytesMax);
  const task = heldTask(actor, turn, message);
  if (task === undefined) return undefined;
  if (checkpoint !== null) {
    if (checkpointSeq !== task.checkpoint_seq) {
      const present = `checkpoint_seq is ${task.checkpoint_seq}, not ${checkpointSeq}`;
      reject(actor, turn, message, task, present);
      return undefined;
    }
    task.checkpoint_seq += 1;
    const isChanged = JSON.stringify(task.resume_checkpoint) !== text;
    task.resume_checkpoint = checkpoint;
    if (isChanged)
      turn.put(TASK.checkpoint, task.id, { id: task.id, resume_checkpoint: checkpoint });
  }
  turn.reply(message.request, 200, `{"checkpoint_seq":${task.checkpoint_seq}}`);
  if (message.body.release === true) return giveBack(actor, turn, task, 'the worker gave it back');
  task.heartbeat_at = isoTime(actor.env.now());
  turn.put(OPEN_TASK.claim, task.id, claimRow(task));
  return undefined;
}

/**
 * The task, if the caller holds its claim. Otherwise the refusal is in the turn: 404 when no epoch
 * was sent, else 409, which the history keeps.
 */
function heldTask(
  actor: LiveInstance,
  turn: Turn,
  message: WorkerRequest,
): WorkerTaskRecord | undefined {
  const task = actor.tasks.get(message.task);
  if (task === undefined) throw notFound(`worker task ${message.task}`);
  const { worker_id: worker, claim_epoch } = message.body;
  const epoch = claim_epoch ?? undefined;
  if (epoch === undefined && actor.env.requireClaimEpoch) {
    throw invalid('claim_epoch is required');
  }
  const held =
    task.state === 'claimed' &&
    task.worker_id === worker &&
    (epoch === undefined || task.claim_epoch === epoch);
  if (held) return task;
  if (epoch === undefined) throw notFound(`worker task ${message.task}`);
  if (message.kind !== 'task.heartbeat' && isEndedBy(task, worker, epoch)) {
    const present = `this claim has ended worker task ${message.task} before`;
    reject(actor, turn, message, task, present, 'ENG_RESULT_REPEATED');
  } else {
    reject(actor, turn, message, task, `the claim on worker task ${message.task} is not held`);
  }
  return undefined;
}

/** The result of this claim was taken: whoever repeats it need not wonder. */
function isEndedBy(task: WorkerTaskRecord, worker: string, epoch: number): boolean {
  const { state, worker_id, claim_epoch, history } = task;
  if (worker_id !== worker || claim_epoch !== epoch) return false;
  const isFailure = ({ event, claim_epoch: of }: Attempt) => event === 'failed' && of === epoch;
  return state === 'completed' || (state === 'failed' && history.some(isFailure));
}

function reject(
  actor: LiveInstance,
  turn: Turn,
  message: WorkerRequest,
  task: WorkerTaskRecord,
  reason: string,
  code: 'ENG_STALE_EPOCH' | 'ENG_RESULT_REPEATED' = 'ENG_STALE_EPOCH',
): void {
  const error = new EngineError(code, `conflict: ${reason}`);
  note(actor, task, 'stale_mutation_rejected', {
    epoch: message.body.claim_epoch ?? task.claim_epoch,
    worker: message.body.worker_id,
    reason: error.message,
  });
  putHistory(turn, task);
  turn.fail(message.request, error);
}

function wireText({ record, plan }: LiveInstance, task: WorkerTaskRecord): string {
  const { snapshot, traceparent } = record;
  const { node, iteration, overlay } = task;
  const isOpen = !isOfHooks(iteration) && snapshot.execution.o[node] !== undefined;
  const mayDiffer = overlay !== null || caughtBy(snapshot.data) !== undefined;
  const over = isOpen && mayDiffer ? overlayAt(plan, snapshot, node) : overlay;
  return wireTask(task, snapshot, over, traceparent);
}
