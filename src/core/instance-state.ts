/**
 * The state of an instance: what follows from what is open (docs/reference/instances.md), what holds it
 * back, and when it has to be looked at again.
 */

import {
  CANCELLED,
  type CleanupFailure,
  COMPLETED,
  type DoneCode,
  FAILED,
  SKIPPED,
  type StepRecord,
} from '../../schema/execution.js';
import { canPatch, type InstanceState, isEnded } from '../../schema/states.js';
import type { UnixMs } from '../base/time.js';
import { forgetCancelling, noteCancelling } from './cancelling.js';
import type { Evaluation } from './evaluation.js';
import { earlier, isDeferred } from './open-leaves.js';
import { owesCleanUp } from './owed.js';
import type { PlanNode } from './plan-nodes.js';
import type { Snapshot } from './progress.js';
import { firstLimit } from './time-limits.js';

/** Sets the state of the instance by what is open. */
export function settle(run: Evaluation): void {
  decideState(run);
  if (run.execution.x !== 1 || isEnded(run.snapshot.state)) return;
  const open = openLeaves(run).filter(([, { z }]) => z === undefined);
  noteCancelling(
    run,
    open.map(([node]) => node),
  );
}

function decideState(run: Evaluation): void {
  const { snapshot, execution } = run;
  if (execution.e !== undefined) {
    // Nothing but a new failure of a step-only instance ends a paused one.
    const isFatal = execution.e === FAILED && run.plan.isStepOnly && execution.f !== 1;
    if (snapshot.state !== 'paused' || isFatal) end(run, execution.e);
    return;
  }
  if (snapshot.state === 'paused') return;
  if (!mayRun(run)) {
    if (isParked(run)) moveTo(snapshot, 'waiting', null);
    return;
  }
  const { leaves } = run;
  const isMixed = leaves.outside > 0 && leaves.deferred > 0;
  if (hasMore(run) || leaves.active > 0 || isMixed) moveTo(snapshot, 'running', null);
  else if (leaves.outside > 0) moveTo(snapshot, 'waiting', null);
  else if (leaves.deferred > 0) moveTo(snapshot, 'scheduled', firstDeferral(run));
  else if (execution.a !== undefined) failToCleanUp(run, execution.a);
  else throw new Error(`instance ${snapshot.id} has nothing open and has not ended`);
}

/** When the first of the steps goes on that wait for nothing but a time. */
export function firstDeferral(run: Evaluation): UnixMs {
  const next = run.leaves.next()!;
  const record = run.execution.o[next.node] as StepRecord;
  if (record.w === next.at) return next.at;
  // A limit comes first.
  const waits = openLeaves(run).filter(([, leaf]) => isDeferred(leaf));
  return Math.min(...waits.map(([, { w }]) => w!));
}

/** Whether the instance has begun and only waits for times. */
export function isOnlyDeferred(run: Evaluation): boolean {
  const { leaves, execution } = run;
  if (execution.t === null || execution.e !== undefined || execution.p === 1) return false;
  return !run.hasQueue && leaves.deferred > 0 && leaves.active === 0 && leaves.outside === 0;
}

function hasMore(run: Evaluation): boolean {
  if (run.hasQueue) return true;
  const next = run.leaves.next();
  return next !== undefined && next.at <= run.env.now;
}

export function moveTo(snapshot: Snapshot, state: InstanceState, nextFireAt: UnixMs | null): void {
  snapshot.state = state;
  snapshot.nextFireAt = nextFireAt;
}

/** Nothing goes on but what could not be cleaned up: the instance waits for a person. */
function failToCleanUp(run: Evaluation, { f }: CleanupFailure): void {
  const { execution } = run;
  execution.a = execution.y === undefined ? { f } : { f, y: execution.y };
  execution.y = { ...f, code: 'cleanup_failed' };
  end(run, FAILED);
}

const END_STATES: Readonly<Record<DoneCode, InstanceState>> = {
  [COMPLETED]: 'completed',
  [FAILED]: 'failed',
  [CANCELLED]: 'cancelled',
  [SKIPPED]: 'completed',
};

export function end(run: Evaluation, code: DoneCode): void {
  run.execution.e = code;
  moveTo(run.snapshot, END_STATES[code], null);
}

/** What an ended execution has no use for; a failed one may be retried. */
export function cleanUp(run: Evaluation): void {
  const { execution } = run;
  run.dropQueue();
  clearHolds(run);
  forgetCancelling(run.snapshot);
  if (execution.x !== undefined && execution.a === undefined) delete execution.x;
  if (execution.f !== undefined) delete execution.f;
  if (execution.z !== undefined) delete execution.z;
  if (execution.u !== undefined) delete execution.u;
  const isFailed = run.snapshot.state === 'failed';
  if (isFailed && owesCleanUp(run)) execution.m = 1;
  else if (execution.m !== undefined) delete execution.m;
  if (isFailed) return;
  if (execution.k !== undefined) delete execution.k;
  if (execution.y !== undefined) delete execution.y;
  run.dropSnapshots();
}

/** Audits the move, by way of `running` where the table of states has no direct one. */
export function noteMove(run: Evaluation, from: InstanceState, isDirect: boolean): void {
  const to = run.snapshot.state;
  if (from === to) return;
  if (!isDirect && !canPatch(from, to) && canPatch(from, 'running') && to !== 'running') {
    noteTransition(run, from, 'running');
    noteTransition(run, 'running', to);
  } else noteTransition(run, from, to);
}

function noteTransition(run: Evaluation, fromState: InstanceState, toState: InstanceState): void {
  const { y: failure } = run.execution;
  run.audit.push(
    toState === 'failed' && failure !== undefined
      ? { eventType: 'state_transition', fromState, toState, failure }
      : { eventType: 'state_transition', fromState, toState },
  );
}

/** When the instance has to be woken; computed from the snapshot alone. */
export function outlook(run: Evaluation): { wakeAt: UnixMs | null; more: boolean } {
  const { snapshot, execution, env } = run;
  if (isEnded(snapshot.state)) return { wakeAt: null, more: false };
  if (snapshot.state === 'paused') return { wakeAt: null, more: false };
  if (execution.p === 1 || execution.w === 1) {
    // Parked before a pause: it is parked again.
    return { wakeAt: firstLimit(run), more: isParked(run) && snapshot.state === 'scheduled' };
  }
  const held = heldUntil(run);
  if (held !== null && held > env.now) {
    return { wakeAt: Math.min(held, firstLimit(run) ?? held), more: false };
  }
  const next = execution.t === null ? null : (earlier(run.leaves.next()?.at, execution.u) ?? null);
  const isDue = snapshot.state === 'scheduled' && (snapshot.nextFireAt ?? env.now) <= env.now;
  if (isDue) return { wakeAt: Math.min(env.now, next ?? env.now), more: true };
  return { wakeAt: next, more: hasMore(run) };
}

/** Whether anything new may start now. */
export function mayRun(run: Evaluation): boolean {
  const { snapshot, execution } = run;
  if (snapshot.state === 'paused' || execution.p === 1 || execution.w === 1) return false;
  return (heldUntil(run) ?? run.env.now) <= run.env.now;
}

/** The start that was asked for, at creation or by a reschedule; null: none. */
export function heldUntil({ snapshot, execution }: Evaluation): UnixMs | null {
  if (execution.h !== undefined) return execution.h;
  return execution.t === null && snapshot.state === 'scheduled' ? snapshot.nextFireAt : null;
}

/** Waits by request, and has the slot that it needs for that. */
function isParked({ execution }: Evaluation): boolean {
  return execution.p === 1 && execution.w !== 1;
}

export function clearHolds(run: Evaluation): void {
  if (run.execution.p !== undefined) delete run.execution.p;
  if (run.execution.h !== undefined) delete run.execution.h;
  if (run.execution.w !== undefined) delete run.execution.w;
}

/**
 * Whether the instance has to wait for a slot of its concurrency key (docs/reference/instances.md):
 * it may go on, that would make it running or waiting, and it has none. One that is only deferred
 * keeps the one it has; without one, such as behind a pause, it asks when its time has come.
 */
export function awaitsPermit(run: Evaluation): boolean {
  const { execution } = run;
  if (run.env.holdsPermit !== false || execution.e !== undefined) return false;
  if (execution.p === 1) return run.snapshot.state === 'scheduled' && execution.w !== 1;
  const { leaves } = run;
  return execution.t === null || hasMore(run) || leaves.active > 0 || leaves.outside > 0;
}

/** Waits for a slot; a deferral that is over stays what `next_fire_at` shows. */
export function awaitPermit(run: Evaluation): void {
  const { snapshot, execution, env } = run;
  execution.w = 1;
  moveTo(snapshot, 'scheduled', snapshot.nextFireAt ?? env.now);
}

export function openLeaves(run: Evaluation): [PlanNode, StepRecord][] {
  const leaves: [PlanNode, StepRecord][] = [];
  for (const key in run.execution.o) {
    const node = run.plan.nodes[Number(key)]!;
    if (node.kind.isLeaf) leaves.push([node, run.execution.o[key] as StepRecord]);
  }
  return leaves;
}
