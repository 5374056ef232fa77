/**
 * The heart of the engine: `advance` takes one event into an instance and says what follows. Pure:
 * it changes the snapshot in place and performs nothing; time and randomness are arguments, and the
 * same events on the same snapshot give the same progress.
 *
 * An event is taken in first (this file: what it means for the instance as a whole), then everything
 * that is due and queued runs within the budget (`evaluation.ts`, `blocks/`), then the state of the
 * instance follows from what is open (`instance-state.ts`).
 */

import { CANCELLED, type CleanupFailure, COMPLETED, FAILED } from '../../schema/execution.js';
import { isEnded, isTerminal } from '../../schema/states.js';
import { isoTime, type UnixMs } from '../base/time.js';
import { decideRaces } from './blocks/branches.js';
import { startAt } from './blocks/list.js';
import { forgetErrors } from './caught.js';
import { cut, cutAll } from './cutting.js';
import {
  endDeadlineHandler,
  isDeadlineHandler,
  recoverDeadlineHandlers,
} from './deadline-handlers.js';
import { Evaluation } from './evaluation.js';
import { failureOfWhole, isErrorRow } from './failures.js';
import {
  advanceHooks,
  beginHooks,
  forgetHooksThatFailed,
  isForHooks,
  runHooksAgain,
  withHooks,
} from './hooks.js';
import {
  awaitPermit,
  awaitsPermit,
  cleanUp,
  clearHolds,
  end,
  firstDeferral,
  heldUntil,
  isOnlyDeferred,
  mayRun,
  moveTo,
  noteMove,
  openLeaves,
  outlook,
  settle,
} from './instance-state.js';
import { dropOwn } from './item-outputs.js';
import { isDeferred } from './open-leaves.js';
import type { Plan } from './plan-nodes.js';
import type { EngineEvent, Env, Progress, Snapshot, TryEvent } from './progress.js';
import { rewind } from './rewind.js';
import { reopen } from './runs-again.js';
import { limitOf, noteTimeOut, shiftLimits, startTimeLimit } from './time-limits.js';

export type {
  AuditEvent,
  Dispatch,
  EngineEvent,
  Env,
  LogLine,
  OutputRow,
  Progress,
  RateRequest,
  Snapshot,
  StepTry,
  Withdrawal,
} from './progress.js';
export { partOf, type TreeNode, type TreePart, treeOf } from './tree.js';

/** What taking in an event came to: `run`: go on as far as possible; `settle`: what is open tells the state; `set`: that is set. */
type Taken = 'run' | 'settle' | 'set' | 'stale';

/** Takes in one event. The snapshot is changed in place; the progress is to be stored with it. */
export function advance(plan: Plan, snapshot: Snapshot, event: EngineEvent, env: Env): Progress {
  if (isForHooks(event)) return advanceHooks(plan, snapshot, event, env);
  const run = new Evaluation(plan, snapshot, env);
  const from = snapshot.state;
  const taken = takeIn(run, event);
  if (taken === 'run') runOn(run);
  if (taken === 'run' || taken === 'settle') settle(run);
  noteMove(run, from, event.kind === 'stop');
  if (isEnded(snapshot.state)) cleanUp(run);
  run.storeQueue();
  const progress = progressOf(run, taken === 'stale');
  const { hooks } = plan;
  if (hooks === undefined && snapshot.execution.j === undefined) return progress;
  if (snapshot.state !== from) beginHooks(hooks, snapshot);
  if (isTerminal(snapshot.state)) forgetHooksThatFailed(snapshot.execution);
  return withHooks(plan, snapshot, event, env, progress);
}

/** Built field by field: this runs for every event, and spreads show in its time. */
function progressOf(run: Evaluation, isStale: boolean): Progress {
  const { wakeAt, more } = outlook(run);
  const progress: { -readonly [K in keyof Progress]: Progress[K] } = {
    outputs: run.outputs,
    dispatches: run.dispatches,
    withdrawals: run.withdrawals,
    rateRequests: run.rateRequests,
    snapshots:
      run.newSnapshots === undefined
        ? []
        : Array.from(run.newSnapshots, ([key, items]) => ({ key, items })),
    droppedSnapshots: run.droppedSnapshots,
    droppedOutputs: run.droppedOutputs,
    logs: run.logs,
    audit: run.audit,
    more,
    dropErrorRows: run.dropErrorRows,
    wakeAt,
    counts: run.counts,
  };
  if (run.effects !== undefined) progress.effects = run.effects;
  if (run.children !== undefined) progress.children = run.children;
  if (run.takenSignals !== undefined) progress.takenSignals = run.takenSignals;
  if (run.opensEventWait) progress.opensEventWait = true;
  if (run.gates !== undefined) progress.gates = run.gates;
  if (isStale) progress.stale = true;
  return progress;
}

function takeIn(run: Evaluation, event: EngineEvent): Taken {
  const { snapshot } = run;
  switch (event.kind) {
    case 'wake':
      // Handlers and questions whose answers can never come: their process is gone.
      if (event.recovered === true) recoverDeadlineHandlers(run);
      if (isEnded(snapshot.state)) return 'set';
      if (event.recovered === true) {
        for (const [node, record] of openLeaves(run)) node.kind.recover(run, node, record);
      }
      return 'run';
    case 'step.outcome':
    case 'step.refused':
    case 'gate.answered':
    case 'step.claimed':
    case 'step.returned':
    case 'rate.granted':
    case 'rate.deferred':
    case 'rate.changed':
    case 'child.made':
    case 'child.ended':
    case 'event.arrived':
      return takeInTry(run, event);
    case 'admitted':
      if (run.execution.w !== 1) return 'set';
      delete run.execution.w;
      return 'run';
    case 'cancel':
      return cancel(run);
    case 'stop':
      return stop(run, event);
    // Taken in by the hooks themselves.
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
      moveTo(snapshot, 'waiting', null);
      return 'set';
    case 'reschedule':
      return isEnded(snapshot.state) ? 'set' : schedule(run, event.at ?? run.env.now);
    case 'retry':
      if (snapshot.state !== 'failed') return 'set';
      run.execution.f = 1;
      return schedule(run, run.env.now);
    case 'rewind':
      rewind(run, run.plan.nodes[event.node]!);
      moveTo(snapshot, 'scheduled', run.env.now);
      return 'set';
  }
}

// ---------------------------------------------------------------- events about one try

function takeInTry(run: Evaluation, event: TryEvent): Taken {
  if (isDeadlineHandler(event)) return endDeadlineHandler(run, event) ? 'set' : 'stale';
  const node = run.plan.nodes[event.node];
  const record = run.execution.o[event.node];
  if (node === undefined || record === undefined || isEnded(run.snapshot.state)) return 'stale';
  if (run.iterationOf(node) !== event.iteration) return 'stale';
  if (!node.kind.takeIn(run, node, record, event)) return 'stale';
  // Nothing goes on by that, and others may be made in the same turn.
  if (event.kind === 'child.made') return 'settle';
  if (run.execution.p === 1 && !IS_NO_NEWS.test(event.kind)) delete run.execution.p;
  return 'run';
}

/**
 * The end of a try wakes a parked instance, and so does a person or a child; what a rate limit says, or who
 * has the task, does not.
 */
const IS_NO_NEWS = /^(?:rate\.|step\.(?:claimed|returned)$)/;

// ---------------------------------------------------------------- events about the instance

/** The signal: what is protected goes on, in every state, and then the instance is cancelled. */
function cancel(run: Evaluation): Taken {
  const { snapshot, execution } = run;
  if (isTerminal(snapshot.state)) return 'set';
  // Somebody has seen what could not be cleaned up.
  if (snapshot.state === 'failed' || execution.f === 1) cutAll(run);
  endPause(run);
  // It may be about to fail since it has timed out.
  if (execution.x === 1) delete execution.y;
  if (cutRoots(run)) {
    if (snapshot.state === 'paused') snapshot.state = 'running';
    return 'run';
  }
  end(run, CANCELLED);
  return 'set';
}

/** Cuts off everything but what is protected from a cancel. Returns whether such work goes on. */
function cutRoots(run: Evaluation): boolean {
  const { execution, plan } = run;
  clearHolds(run);
  delete execution.u;
  let isProtected = false;
  for (const root of plan.roots) {
    if (execution.o[root] === undefined) continue;
    // What is still to be cleaned up keeps it open, too.
    if (cut(run, plan.nodes[root]!, 'signal') || execution.o[root] !== undefined) {
      isProtected = true;
    }
  }
  if (isProtected) execution.x = 1;
  return isProtected;
}

function stop(
  run: Evaluation,
  { state, failure = BY_REQUEST }: Extract<EngineEvent, { kind: 'stop' }>,
): Taken {
  const { execution, env } = run;
  if (isTerminal(run.snapshot.state)) return 'set';
  cutAll(run);
  if (state === 'failed') {
    execution.y ??= failureOfWhole(failure.code, failure.message, env.now);
  } else if (state === 'completed') forgetErrors(run);
  end(run, state === 'completed' ? COMPLETED : state === 'failed' ? FAILED : CANCELLED);
  return 'set';
}

const BY_REQUEST = { code: 'failed_by_request', message: 'failed by request' } as const;

function pause(run: Evaluation, byParent: true | undefined): Taken {
  const { snapshot, execution } = run;
  if (isTerminal(snapshot.state) || snapshot.state === 'paused') return 'set';
  // What holds it back is kept, but for the wish for a slot: that is made again.
  const start = heldUntil(run);
  if (start !== null && start > run.env.now) execution.h = start;
  if (execution.w !== undefined) delete execution.w;
  if (byParent === true) execution.l = 1;
  else if (execution.l !== undefined) delete execution.l;
  // A failed instance that goes on after a pause has to be retried.
  if (snapshot.state === 'failed') execution.f = 1;
  execution.z = run.env.now;
  moveTo(snapshot, 'paused', null);
  return 'set';
}

/** Gives back what was there: limits have what was left of them, a start in the future stays there. */
function resume(run: Evaluation): Taken {
  const { snapshot, execution, env } = run;
  if (execution.f === 1) return schedule(run, env.now);
  endPause(run);
  // One with nothing left to do has nothing to start at that time.
  const isOver = execution.e !== undefined || (execution.h ?? env.now) <= env.now;
  if (execution.h !== undefined && isOver) delete execution.h;
  const next = execution.h ?? (isOnlyDeferred(run) ? firstDeferral(run) : env.now);
  moveTo(snapshot, 'scheduled', Math.max(next, env.now));
  return 'set';
}

/** Whatever becomes of a paused instance next: limits of time go on with what was left of them. */
function endPause(run: Evaluation): void {
  const { execution, env } = run;
  if (execution.z === undefined) return;
  shiftLimits(execution, Math.max(0, env.now - execution.z));
  run.dropLeaves();
  delete execution.z;
}

/** Scheduled at `at`, by request: nothing new starts before. */
function schedule(run: Evaluation, at: UnixMs): Taken {
  const { snapshot, execution, env } = run;
  endPause(run);
  if (execution.f === 1) {
    const hooks = runHooksAgain(execution);
    // It was cancelled, and failed by its hooks, which may have stayed behind in a handover.
    if (hooks === 'on_cancel' || execution.e === CANCELLED) {
      end(run, CANCELLED);
      return 'set';
    }
    // It had timed out, and ends so once more.
    if (hooks !== undefined) delete execution.f;
    else prepareRetry(run);
  }
  if (snapshot.state === 'scheduled') hasten(run, at);
  clearHolds(run);
  if (at > env.now) execution.h = at;
  moveTo(snapshot, 'scheduled', at);
  return 'set';
}

/** The deferrals that `next_fire_at` stood for end with the new time, if that is earlier. */
function hasten(run: Evaluation, at: UnixMs): void {
  const due = run.snapshot.nextFireAt;
  if (due === null || at >= due) return;
  for (const [node, record] of openLeaves(run)) {
    const { w } = record;
    if (isDeferred(record) && w! <= due && w! > at) run.putLeaf(node, { ...record, w: at });
  }
}

/**
 * Prepares a failed execution to go on: what failed or was cut off is pending again, with tries
 * counted from the start (docs/reference/instances.md); what completed or was skipped stays and is
 * stepped over; routers, loops, sagas and try_catch blocks go on from where they were.
 */
function prepareRetry(run: Evaluation): void {
  const { execution, plan, snapshot } = run;
  const { a: cleanup } = execution;
  if (cleanup === undefined) reopen(run, execution.s ?? 0, plan.nodes.length);
  for (const [id, { output }] of snapshot.outputs) {
    if (isErrorRow(output)) snapshot.outputs.delete(id);
  }
  for (const items of Object.values(snapshot.items ?? {})) dropOwn(items, isErrorRow);
  run.dropErrorRows = true;
  delete execution.e;
  if (execution.y !== undefined) delete execution.y;
  delete execution.f;
  if (execution.t !== null) {
    snapshot.runtime.attempt = 0;
    snapshot.runtime.total_steps_executed = 0;
    if (cleanup === undefined) startTimeLimit(run);
  }
  run.dropQueue();
  if (cleanup !== undefined) {
    cleanUpAgain(run, cleanup);
    return;
  }
  if (execution.t === null || startAt(run, plan.roots, firstRoot(run))) return;
  // It was stopped as failed when nothing was left to do, such as during a pause.
  execution.e = COMPLETED;
}

/** What was being cut off still is: it ends as it was to end once it has cleaned up. */
function cleanUpAgain(run: Evaluation, { y }: CleanupFailure): void {
  const { execution, plan } = run;
  delete execution.a;
  if (y !== undefined) execution.y = y;
  for (const key of Object.keys(execution.o)) {
    const node = plan.nodes[Number(key)]!;
    const record = execution.o[node.index]!;
    if (record.z === undefined) continue;
    delete record.z;
    node.kind.cleanUpAgain(run, node, record);
  }
}

/** Where the list of the root begins: at its first block unless a caller resumed from a later one. */
function firstRoot({ execution, plan }: Evaluation): number {
  return execution.s === undefined ? 0 : plan.nodes[execution.s]!.position;
}

// ---------------------------------------------------------------- running on

function runOn(run: Evaluation): void {
  const { execution, env, snapshot } = run;
  if (snapshot.state === 'paused') {
    decideRaces(run);
    return;
  }
  if (execution.u !== undefined && execution.u <= env.now && execution.e === undefined) {
    noteTimeOut(run);
    // As the signal `cancel` does it, but in the end it has failed.
    if (!cutRoots(run)) {
      run.dropQueue();
      execution.e = FAILED;
      return;
    }
  }
  const isHeld = !mayRun(run);
  if ((!isHeld || execution.p === 1) && awaitsPermit(run)) {
    awaitPermit(run);
    fireLimits(run);
    return;
  }
  if (isHeld) {
    fireLimits(run);
    return;
  }
  clearHolds(run);
  if (execution.t === null) begin(run);
  else run.fireDue();
  run.drain();
}

function begin(run: Evaluation): void {
  const { snapshot, execution, env } = run;
  execution.t = env.now;
  // One that begins anew in another version goes on with what was left.
  if (execution.u === undefined) startTimeLimit(run);
  snapshot.runtime.instance_id = snapshot.id;
  snapshot.runtime.started_at = isoTime(env.now);
  if (!startAt(run, run.plan.roots, firstRoot(run))) execution.e = COMPLETED;
}

/** While nothing new may start, only limits count; all other times can wait. */
function fireLimits(run: Evaluation): void {
  for (const key of Object.keys(run.execution.o)) {
    const node = run.plan.nodes[Number(key)]!;
    const record = run.execution.o[node.index];
    // An earlier one of this round may have cut this one off.
    const at = record && limitOf(record);
    if (at !== undefined && at <= run.env.now) node.kind.due(run, node, record!);
  }
  decideRaces(run);
}
