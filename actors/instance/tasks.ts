/**
 * Messages of workers and queues to the tasks of an instance. A claim is a commit unit that raises
 * the epoch. A call with another epoch or worker changes only the history of the task.
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
import { rowOf } from '../../src/db/lines.js';
import type { NamedSecrets } from '../runtime/protocol.js';
import type { Effect, Turn } from '../runtime/turn.js';
import { advance, advanceTry } from './advance.js';
import type { Handler, LiveInstance } from './live-instance.js';
import { checkBytes, checkSize } from './memory.js';
import type { MessageOf, WorkerRequest } from './messages.js';
import { addWorkerLines } from './notes.js';
import {
  closeTask,
  countTask,
  isOffered,
  isRetried,
  putHistory,
  putTask,
  queueHint,
  recordAttempt,
} from './progress.js';
import { TASK } from './task-tables.js';
import { wireTask } from './wire-texts.js';
import {
  type Attempt,
  historyOf,
  NO_HISTORY,
  taskRank,
  type WorkerTaskRecord,
} from './worker-task.js';

type Claim = MessageOf<'claim'>;
type Complete = MessageOf<'task.complete'>;
type Fail = MessageOf<'task.fail'>;

/** A queue selected the task for a poll: it is claimed, or reported as gone. */
export const claim: Handler<'claim'> = (actor, turn, message) => {
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
  recordAttempt(actor, task, 'claimed');
  putClaim(turn, task);
  countTask(turn, task, 'taken', Math.max(0, actor.env.now() - msOfTime(task.created_at)));
  const { secrets, tenant_id: tenant } = task;
  const texts = message.maySeeSecrets && secrets !== null ? JSON.parse(secrets) : undefined;
  const named = texts && { tenant, texts };
  turn.effects.push(claimAnswer(message, task.claim_epoch, wireText(actor, task), named));
  turn.effects.push(heartbeatWatch(actor, task));
  return notifyStep(actor, turn, task, 'step.claimed');
};

/** Informs the evaluator if a time limit of the step starts or ends with the claim. */
function notifyStep(
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

/** Removes pending tasks from the queues, or returns them, after `offersTasks` has changed. */
export function offerTasks(actor: LiveInstance, turn: Turn): void {
  for (const task of actor.tasks.values()) {
    if (task.state !== 'pending') continue;
    placeTask(actor, turn, task);
    turn.effects.push(queueHint(actor, task));
  }
}

function placeTask(actor: LiveInstance, turn: Turn, task: WorkerTaskRecord): void {
  task.rank = taskRank(task, isOffered(actor, task));
  putTask(turn, TASK.rank, task, { id: task.id, rank: task.rank });
}

function putClaim(turn: Turn, task: WorkerTaskRecord): void {
  putTask(turn, TASK.claim, task, rowOf(TASK.claim, task));
  if (task.history !== NO_HISTORY) putHistory(turn, task);
}

/** @param epoch 0 when the task is gone; -1 when unknown: the queue offers it again */
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

export const unclaim: Handler<'unclaim'> = (actor, turn, { task: taskId, epoch }) => {
  const task = claimedTask(actor, taskId, epoch);
  return task && giveBack(actor, turn, task, 'the poll was abandoned');
};

function claimedTask({ tasks }: LiveInstance, id: string, epoch: number) {
  const task = tasks.get(id);
  return task?.state === 'claimed' && task.claim_epoch === epoch ? task : undefined;
}

/** A secret is missing: the step fails permanently, as no worker can receive the task. */
export const secretMissing: Handler<'secret.missing'> = (
  actor,
  turn,
  { task: taskId, epoch, reason: message },
) => {
  const task = claimedTask(actor, taskId, epoch);
  const code = 'secret_missing';
  return task && settle(actor, turn, task, { kind: 'failure', retryable: false, message, code });
};

/** The task returns to its queue with its checkpoint, unless too many workers fell silent. */
export const reap: Handler<'reap'> = (actor, turn, { task: taskId }) => {
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
};

/** A task that seems to crash its workers fails permanently. */
function claimsLost(actor: LiveInstance, turn: Turn, task: WorkerTaskRecord): Progress {
  recordAttempt(actor, task, 'reclaimed', { reason: SILENCE_REASON });
  const message = `workers fell silent over ${task.lost_claims} claims of this try`;
  const code = 'claims_lost';
  // Not `settle`: no worker reported a failure, so the outcome of the effect is unknown.
  return conclude(actor, turn, task, { kind: 'failure', retryable: false, message, code });
}

function giveBack(
  actor: LiveInstance,
  turn: Turn,
  task: WorkerTaskRecord,
  reason: string,
): Progress | undefined {
  recordAttempt(actor, task, 'reclaimed', { reason });
  task.state = 'pending';
  task.worker_id = null;
  task.claimed_at = null;
  task.heartbeat_at = null;
  putClaim(turn, task);
  countTask(turn, task, 'arrived');
  if (!isOffered(actor, task)) placeTask(actor, turn, task);
  turn.effects.push(queueHint(actor, task));
  const progress = notifyStep(actor, turn, task, 'step.returned');
  // A paused or postponed instance kept its slot for this worker, and releases it now.
  const isKept = actor.record.snapshot.execution.r === 1;
  return progress ?? (isKept ? advance(actor, turn, { kind: 'wake' }) : undefined);
}

/** After downtime, silence counts from readiness; otherwise every claim would be reclaimed. */
function silentAt(actor: LiveInstance, task: WorkerTaskRecord): number {
  const heartbeatAt = task.heartbeat_at === null ? 0 : msOfTime(task.heartbeat_at);
  const since = Math.max(heartbeatAt, actor.env.readySince(actor.record.tenant_id));
  return since + actor.env.workerStaleMs;
}

function heartbeatWatch(actor: LiveInstance, task: WorkerTaskRecord): Effect {
  return { kind: 'reap', instance: actor.record.id, task: task.id, at: silentAt(actor, task) };
}

/** The hints and watches of a loaded actor, which may have been lost. */
export function taskHints(actor: LiveInstance): Effect[] {
  return [...actor.tasks.values()].flatMap((task) => {
    if (task.state === 'claimed') return [heartbeatWatch(actor, task)];
    return isOffered(actor, task) ? [queueHint(actor, task)] : [];
  });
}

export const complete: Handler<'task.complete'> = (actor, turn, message) => {
  const output = message.body.output as JsonObject;
  const task = heldTask(actor, turn, message);
  if (task === undefined) return undefined;
  checkSize('output is', output, actor.env.maxOutputBytes);
  task.output = textOfJson(output);
  return end(actor, turn, message, task, { kind: 'success', output });
};

/** A failed task that is tried again is withdrawn. A final failure stays listed. */
export const fail: Handler<'task.fail'> = (actor, turn, message) => {
  const { message: reason, retryable } = message.body;
  const task = heldTask(actor, turn, message);
  if (task === undefined) return undefined;
  const outcome = { kind: 'failure', retryable: retryable ?? false, message: reason } as const;
  return end(actor, turn, message, task, outcome);
};

function end(
  actor: LiveInstance,
  turn: Turn,
  { request, body, isBrief }: Complete | Fail,
  task: WorkerTaskRecord,
  outcome: StepOutcome,
): Progress {
  addWorkerLines(actor, turn, task.block_id, body.logs);
  const progress = settle(actor, turn, task, outcome);
  if (isBrief) turn.reply(request, 204, '');
  else turn.reply(request, 200, wireText(actor, task));
  return progress;
}

function settle(
  actor: LiveInstance,
  turn: Turn,
  task: WorkerTaskRecord,
  outcome: StepOutcome,
): Progress {
  if (outcome.kind === 'success') recordAttempt(actor, task, 'completed');
  else recordAttempt(actor, task, 'failed', { reason: outcome.message });
  return conclude(actor, turn, task, outcome);
}

function conclude(
  actor: LiveInstance,
  turn: Turn,
  task: WorkerTaskRecord,
  outcome: StepOutcome,
): Progress {
  task.state = outcome.kind === 'success' ? 'completed' : 'failed';
  task.completed_at = isoTime(actor.env.now());
  if (outcome.kind === 'failure') {
    task.error_message = outcome.message;
    task.error_retryable = outcome.retryable;
  }
  measure(actor, task);
  const { node, iteration, attempt } = task;
  const step = { node, iteration, attempt };
  const progress = advance(actor, turn, { kind: 'step.outcome', ...step, outcome, external: true });
  task.withdrawn = outcome.kind === 'failure' && isRetried(progress, task.block_id);
  closeTask(actor, turn, task);
  return progress;
}

function measure(actor: LiveInstance, task: WorkerTaskRecord): void {
  const { claimed_at, completed_at, handler_name, state } = task;
  if (claimed_at === null || completed_at === null) return;
  const seconds = Math.max(0, msOfTime(completed_at) - msOfTime(claimed_at)) / 1_000;
  actor.env.measures?.attemptEnded(handler_name, seconds, state === 'completed');
}

/** Refreshes or releases the claim. `checkpoint_seq` is that of the previous checkpoint. */
export const heartbeat: Handler<'task.heartbeat'> = (actor, turn, message) => {
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
    if (task.resume_checkpoint !== text) {
      task.resume_checkpoint = text;
      putTask(turn, TASK.checkpoint, task, `{"id":"${task.id}","resume_checkpoint":${text}}`);
    }
  }
  turn.reply(message.request, 200, `{"checkpoint_seq":${task.checkpoint_seq}}`);
  if (message.body.release === true) return giveBack(actor, turn, task, 'the worker gave it back');
  task.heartbeat_at = isoTime(actor.env.now());
  putTask(turn, TASK.claim, task, rowOf(TASK.claim, task));
  return undefined;
};

/** The task if its claim is held. Otherwise 404 without an epoch, else 409 and an attempt. */
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
    const present = `this claim has already ended worker task ${message.task}`;
    reject(actor, turn, message, task, present, 'ENG_RESULT_REPEATED');
  } else {
    reject(actor, turn, message, task, `the claim on worker task ${message.task} is not held`);
  }
  return undefined;
}

function isEndedBy(task: WorkerTaskRecord, worker: string, epoch: number): boolean {
  const { state, worker_id, claim_epoch } = task;
  if (worker_id !== worker || claim_epoch !== epoch) return false;
  const isFailure = ({ event, claim_epoch: of }: Attempt) => event === 'failed' && of === epoch;
  return state === 'completed' || (state === 'failed' && historyOf(task).some(isFailure));
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
  recordAttempt(actor, task, 'stale_mutation_rejected', {
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
  const present =
    isOpen && mayDiffer
      ? overlayAt(plan, snapshot, node)
      : (JSON.parse(overlay ?? 'null') as JsonObject | null);
  return wireTask(task, snapshot, present, traceparent);
}
