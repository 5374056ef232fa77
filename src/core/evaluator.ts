/**
 * `advance` applies one event to an instance and returns what follows from it. Pure: the snapshot is changed in place
 * and nothing else happens; time and randomness are arguments, so the same events on the same snapshot give the same
 * progress. The event is applied first (this file), then everything due and queued runs within the budget
 * (`evaluation.ts`, `blocks/`), then the state follows from what is open (`instance-state.ts`).
 */

import {
  CANCELLED,
  type CleanupFailure,
  COMPLETED,
  FAILED,
  WAITS_FOR_SLOT,
  WAITS_FOR_START,
} from '../../schema/execution.js';
import { isEnded, isTerminal } from '../../schema/states.js';
import type { JsonObject } from '../base/json.js';
import { isoTime, type UnixMs } from '../base/time.js';
import { decideRaces } from './blocks/branches.js';
import { startAt } from './blocks/list.js';
import { cut, cutAll, reopenDone } from './cutting.js';
import {
  endDeadlineHandler,
  isDeadlineHandler,
  recoverDeadlineHandlers,
} from './deadline-handlers.js';
import { isDeferred, limitOf, shiftLimits, startTimeLimit } from './deadlines.js';
import { Evaluation } from './evaluation.js';
import { failureOfWhole } from './failures.js';
import {
  beginHooks,
  forgetHooksThatFailed,
  isForHooks,
  runHooksAgain,
  withHooks,
} from './hooks.js';
import {
  auditTransition,
  awaitsPermit,
  awaitsStart,
  cleanUp,
  clearHolds,
  end,
  firstDeferral,
  isOnlyDeferred,
  mayRun,
  nextWake,
  openLeaves,
  requestedStart,
  setState,
  settle,
} from './instance-state.js';
import type { Plan } from './plan-nodes.js';
import type { EngineEvent, Env, Progress, Snapshot, TryEvent } from './progress.js';
import { dropErrorRows, reopen, rewind } from './runs-again.js';
import { clearErrors } from './scopes.js';

/** `run`: continue everything; `settle`: derive the state from what is open; `set`: done; `stale`: ignored. */
type Applied = 'run' | 'settle' | 'set' | 'stale';

/** The snapshot is changed in place and must be stored with the progress. */
export function advance(plan: Plan, snapshot: Snapshot, event: EngineEvent, env: Env): Progress {
  const run = new Evaluation(plan, snapshot, env);
  const { progress } = run;
  if (isForHooks(event)) {
    Object.assign(progress, nextWake(run));
    return withHooks(plan, snapshot, event, env, progress);
  }
  const from = snapshot.state;
  const applied = applyEvent(run, event);
  if (applied === 'run') runOn(run);
  if (applied === 'run' || applied === 'settle') settle(run);
  auditTransition(run, from, event.kind === 'stop');
  if (isEnded(snapshot.state)) cleanUp(run);
  run.storeQueue();
  Object.assign(progress, nextWake(run));
  if (applied === 'stale') progress.stale = true;
  const { hooks } = plan;
  if (hooks === undefined && snapshot.execution.j === undefined) return progress;
  if (snapshot.state !== from) beginHooks(hooks, snapshot);
  if (isTerminal(snapshot.state)) forgetHooksThatFailed(snapshot.execution);
  return withHooks(plan, snapshot, event, env, progress);
}

function applyEvent(run: Evaluation, event: EngineEvent): Applied {
  const { snapshot } = run;
  if ('iteration' in event) return applyTryEvent(run, event);
  switch (event.kind) {
    case 'wake':
      // The process of open deadline handlers has ended, so that their outcomes cannot arrive.
      if (event.recovered === true) recoverDeadlineHandlers(run);
      if (isEnded(snapshot.state)) return 'set';
      if (event.recovered === true) {
        for (const [node, record] of openLeaves(run)) node.kind.recover(run, node, record);
      }
      return 'run';
    case 'admitted':
      if (run.execution.w !== WAITS_FOR_SLOT) return 'set';
      delete run.execution.w;
      return 'run';
    case 'start.granted':
      if (run.execution.w !== WAITS_FOR_START) return 'set';
      delete run.execution.w;
      return 'run';
    case 'cancel':
      return cancel(run);
    case 'stop':
      return stop(run, event);
    case 'hooks.dropped':
      return 'set';
    case 'pause':
      return pause(run, event.byParent);
    case 'resume':
      return snapshot.state === 'paused' ? resume(run) : 'set';
    case 'park':
      if (isEnded(snapshot.state)) return 'set';
      endPause(run);
      clearHolds(run);
      run.execution.p = 1;
      setState(snapshot, 'waiting', null);
      return 'set';
    case 'reschedule':
      return isEnded(snapshot.state) ? 'set' : schedule(run, event.at ?? run.env.now);
    case 'retry':
      if (snapshot.state !== 'failed') return 'set';
      run.execution.f = 1;
      return schedule(run, run.env.now);
    case 'rewind':
      rewind(run, run.plan.nodes[event.node]!);
      setState(snapshot, 'scheduled', run.env.now);
      return 'set';
  }
}

function applyTryEvent(run: Evaluation, event: TryEvent): Applied {
  if (isDeadlineHandler(event)) return endDeadlineHandler(run, event) ? 'set' : 'stale';
  const node = run.plan.nodes[event.node];
  const record = run.execution.o[event.node];
  if (node === undefined || record === undefined || isEnded(run.snapshot.state)) return 'stale';
  if (run.iterationOf(node) !== event.iteration) return 'stale';
  if (!node.kind.handleEvent(run, node, record, event)) return 'stale';
  // Nothing continues yet, and further children may be created in the same turn.
  if (event.kind === 'child.made') return 'settle';
  if (run.execution.p === 1 && !KEEPS_PARKED.test(event.kind)) delete run.execution.p;
  return 'run';
}

/** Events that do not wake a parked instance: replies of rate limits, claims and returns of tasks. */
const KEEPS_PARKED = /^(?:rate\.|step\.(?:claimed|returned)$)/;

/** The signal `cancel`: protected work continues, in every state, and then the instance is cancelled. */
function cancel(run: Evaluation): Applied {
  const { snapshot, execution } = run;
  if (isTerminal(snapshot.state)) return 'set';
  // A cancel of a failed instance gives up its failed clean-up.
  const isGivenUp = snapshot.state === 'failed' || execution.f === 1;
  if (isGivenUp) cutAll(run);
  endPause(run);
  // A cancel replaces the pending failure of an instance that has timed out, or has failed in a pause.
  delete execution.y;
  if (!isGivenUp && cutRoots(run)) {
    if (snapshot.state === 'paused') snapshot.state = 'running';
    return 'run';
  }
  end(run, CANCELLED);
  return 'set';
}

/** Cuts off everything that is not protected from a cancel. Returns whether protected work continues. */
function cutRoots(run: Evaluation): boolean {
  const { execution, plan } = run;
  clearHolds(run);
  delete execution.u;
  execution.x = 1;
  let isProtected = false;
  for (const root of plan.roots) {
    const node = plan.nodes[root]!;
    if (execution.o[root] !== undefined) {
      if (cut(run, node, 'signal')) isProtected = true;
    } else if (execution.e === FAILED && root >= (execution.s ?? 0)) {
      // It has failed in a pause, in which the instance does not.
      reopenDone(run, node);
    }
    // A root with failed clean-up stays open as well.
    if (execution.o[root] !== undefined) isProtected = true;
  }
  if (isProtected) delete execution.e;
  return isProtected;
}

function stop(
  run: Evaluation,
  { state, failure = BY_REQUEST }: Extract<EngineEvent, { kind: 'stop' }>,
): Applied {
  const { execution, env } = run;
  if (isTerminal(run.snapshot.state)) return 'set';
  cutAll(run);
  if (state === 'failed') {
    // Whoever retries it has to know that somebody cancelled it.
    const message = execution.x === 1 ? failure.message + NOT_CANCELLED : failure.message;
    execution.y ??= failureOfWhole(failure.code, message, env.now);
  } else if (state === 'completed') clearErrors(run);
  end(run, state === 'completed' ? COMPLETED : state === 'failed' ? FAILED : CANCELLED);
  return 'set';
}

const BY_REQUEST = { code: 'failed_by_request', message: 'failed by request' } as const;
const NOT_CANCELLED = '; its cancellation had not finished, and a retry continues the flow';

function pause(run: Evaluation, byParent: true | undefined): Applied {
  const { snapshot, execution } = run;
  if (isTerminal(snapshot.state) || snapshot.state === 'paused') return 'set';
  // The requested start is kept, but a slot is requested again after the pause.
  const start = requestedStart(run);
  if (start !== null && start > run.env.now) execution.h = start;
  if (execution.w !== undefined) delete execution.w;
  if (byParent === true) execution.l = 1;
  else if (execution.l !== undefined) delete execution.l;
  // A failed instance that is resumed has to be retried.
  if (snapshot.state === 'failed') execution.f = 1;
  execution.z = run.env.now;
  setState(snapshot, 'paused', null);
  return 'set';
}

function resume(run: Evaluation): Applied {
  const { snapshot, execution, env } = run;
  if (execution.f === 1) return schedule(run, env.now);
  endPause(run);
  // A start in the future is kept, unless the instance has nothing left to do.
  const isOver = execution.e !== undefined || (execution.h ?? env.now) <= env.now;
  if (execution.h !== undefined && isOver) delete execution.h;
  const next = execution.h ?? (isOnlyDeferred(run) ? firstDeferral(run) : env.now);
  setState(snapshot, 'scheduled', Math.max(next, env.now));
  return 'set';
}

/** Time limits continue with the remaining time. */
function endPause(run: Evaluation): void {
  const { execution, env } = run;
  if (execution.z === undefined) return;
  shiftLimits(execution, Math.max(0, env.now - execution.z));
  run.dropLeaves();
  delete execution.z;
}

/** Schedules the instance by request: nothing new starts before `at`. */
function schedule(run: Evaluation, at: UnixMs): Applied {
  const { snapshot, execution, env } = run;
  endPause(run);
  if (execution.f === 1) {
    const hooks = runHooksAgain(execution);
    // Its hooks failed after a cancel. After a handover they may no longer exist.
    if (hooks === 'on_cancel' || execution.e === CANCELLED) {
      end(run, CANCELLED);
      return 'set';
    }
    // The instance failed by its time-out, and does so again.
    if (hooks !== undefined) delete execution.f;
    else prepareRetry(run);
  }
  if (snapshot.state === 'scheduled') bringForward(run, at);
  clearHolds(run);
  if (at > env.now) execution.h = at;
  setState(snapshot, 'scheduled', at);
  return 'set';
}

/** An earlier start also ends the deferrals that `next_fire_at` showed. */
function bringForward(run: Evaluation, at: UnixMs): void {
  const due = run.snapshot.nextFireAt;
  if (due === null || at >= due) return;
  for (const [node, record] of openLeaves(run)) {
    const { w } = record;
    if (isDeferred(record) && w! <= due && w! > at) run.putLeaf(node, { ...record, w: at });
  }
}

/** Failed and cut-off blocks become pending, completed blocks stay, and kept records continue. */
function prepareRetry(run: Evaluation): void {
  const { execution, plan, snapshot } = run;
  const { a: cleanup } = execution;
  if (cleanup === undefined) reopen(run, execution.s ?? 0, plan.nodes.length);
  dropErrorRows(run);
  delete execution.e;
  if (execution.y !== undefined) delete execution.y;
  delete execution.f;
  if (execution.t !== null) {
    snapshot.runtime.attempt = 0;
    snapshot.runtime.total_steps_executed = 0;
    if (cleanup === undefined) startTimeLimit(run);
  }
  run.dropQueue();
  if (cleanup !== undefined) cleanUpAgain(run, cleanup);
  else if (execution.t !== null && !startAt(run, plan.roots, firstRoot(run))) {
    // The instance was failed by request with nothing left to do, such as during a pause.
    execution.e = COMPLETED;
  }
}

/** Blocks that were being cut off repeat their failed clean-up, and then end. */
function cleanUpAgain(run: Evaluation, { y }: CleanupFailure): void {
  const { execution, plan } = run;
  delete execution.a;
  if (y !== undefined) execution.y = y;
  for (const key of Object.keys(execution.o)) {
    const node = plan.nodes[Number(key)]!;
    const record = execution.o[node.index]!;
    if (record.z === undefined) continue;
    delete record.z;
    delete record.j;
    node.kind.cleanUpAgain(run, node, record);
  }
}

/** The first root, or the root that a caller resumed from. */
function firstRoot({ execution, plan }: Evaluation): number {
  return execution.s === undefined ? 0 : plan.nodes[execution.s]!.position;
}

function runOn(run: Evaluation): void {
  const { execution, env, snapshot } = run;
  if (snapshot.state === 'paused') {
    decideRaces(run);
    return;
  }
  if (execution.u !== undefined && execution.u <= env.now && execution.e === undefined) {
    run.progress.counts.timeouts += 1;
    const message = `the instance timed out after ${snapshot.timeoutMs} ms`;
    execution.y = failureOfWhole('instance_timeout', message, env.now);
    // Like the signal `cancel`, but the instance fails in the end.
    if (!cutRoots(run)) {
      run.dropQueue();
      execution.e = FAILED;
      return;
    }
  }
  const isDelayed = !mayRun(run);
  const needsSlot = (!isDelayed || execution.p === 1) && awaitsPermit(run);
  // The slot comes first, so that the start follows its grant at once.
  const needsStart = !needsSlot && !isDelayed && awaitsStart(run);
  if (needsSlot || needsStart) {
    execution.w = needsSlot ? WAITS_FOR_SLOT : WAITS_FOR_START;
    // `next_fire_at` keeps showing the deferral that is over.
    setState(snapshot, 'scheduled', snapshot.nextFireAt ?? env.now);
  }
  if (needsSlot || needsStart || isDelayed) fireLimits(run);
  else {
    clearHolds(run);
    if (execution.t === null) begin(run);
    else run.fireDue();
    run.drain();
  }
}

function begin(run: Evaluation): void {
  const { snapshot, execution, env } = run;
  execution.t = env.now;
  if (execution.i !== undefined) delete execution.i;
  // A migration may have carried the time limit over.
  if (execution.u === undefined) startTimeLimit(run);
  snapshot.runtime.instance_id = snapshot.id;
  snapshot.runtime.started_at = isoTime(env.now);
  if (!startAt(run, run.plan.roots, firstRoot(run))) execution.e = COMPLETED;
}

/** While nothing new may start, only time limits count; all other deadlines wait. */
function fireLimits(run: Evaluation): void {
  for (const key of Object.keys(run.execution.o)) {
    const node = run.plan.nodes[Number(key)]!;
    const record = run.execution.o[node.index];
    // An earlier limit in this loop may have cut the node off.
    const at = record && limitOf(record);
    if (at !== undefined && at <= run.env.now) node.kind.due(run, node, record!);
  }
  decideRaces(run);
}

/** The values that expressions at an open node see on top of context.data, for workers; null: none. */
export function overlayAt(plan: Plan, snapshot: Snapshot, node: number): JsonObject | null {
  return new Evaluation(plan, snapshot, NO_TURN).scopes.overlayOf(plan.nodes[node]!);
}

const NO_TURN: Env = {
  now: 0,
  random: () => 0,
  unpoliciedRetry: 'fail',
  stepBudget: 0,
  outputBytesBudget: 0,
};
