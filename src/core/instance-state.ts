/** Derives the state of an instance and its next wake-up from its open nodes and the holds on its start. */

import {
  type CleanupFailure,
  type DoneCode,
  FAILED,
  type StepRecord,
} from '../../schema/execution.js';
import type { Cancelling } from '../../schema/instance.js';
import { canPatch, type InstanceState, isEnded } from '../../schema/states.js';
import type { JsonObject } from '../base/json.js';
import { isoTime, type UnixMs } from '../base/time.js';
import { earlier, firstLimit, isDeferred } from './deadlines.js';
import type { Evaluation } from './evaluation.js';
import { owesCleanUp } from './owed.js';
import type { PlanNode } from './plan-nodes.js';
import type { Snapshot } from './progress.js';

export function settle(run: Evaluation): void {
  decideState(run);
  if (run.execution.x !== 1 || isEnded(run.snapshot.state)) return;
  noteCancelling(run);
}

function decideState(run: Evaluation): void {
  const { snapshot, execution } = run;
  if (execution.e !== undefined) {
    // Only a new failure of a step-only instance ends it while it is paused.
    const isFatal = execution.e === FAILED && run.plan.isStepOnly && execution.f !== 1;
    if (snapshot.state !== 'paused' || isFatal) end(run, execution.e);
    return;
  }
  if (snapshot.state === 'paused') return;
  if (!mayRun(run)) {
    if (isParked(run)) setState(snapshot, 'waiting', null);
    return;
  }
  const { leaves } = run;
  const isMixed = leaves.outside > 0 && leaves.deferred > 0;
  if (hasMore(run) || leaves.active > 0 || isMixed) setState(snapshot, 'running', null);
  else if (leaves.outside > 0) setState(snapshot, 'waiting', null);
  else if (leaves.deferred > 0) setState(snapshot, 'scheduled', firstDeferral(run));
  else if (execution.a !== undefined) failToCleanUp(run, execution.a);
  else throw new Error(`instance ${snapshot.id} has nothing open and has not ended`);
}

export function firstDeferral(run: Evaluation): UnixMs {
  const next = run.leaves.next()!;
  const record = run.execution.o[next.node] as StepRecord;
  if (record.w === next.at) return next.at;
  // The earliest deadline may be a time limit.
  const waits = openLeaves(run).filter(([, leaf]) => isDeferred(leaf));
  return Math.min(...waits.map(([, { w }]) => w!));
}

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

export function setState(snapshot: Snapshot, state: InstanceState, at: UnixMs | null): void {
  snapshot.state = state;
  snapshot.nextFireAt = at;
}

/** Only failed clean-up is open: the instance waits for a person. */
function failToCleanUp(run: Evaluation, { f }: CleanupFailure): void {
  const { execution } = run;
  execution.a = execution.y === undefined ? { f } : { f, y: execution.y };
  execution.y = { ...f, code: 'cleanup_failed' };
  end(run, FAILED);
}

/** By `DoneCode`. */
const END_STATES = ['completed', 'failed', 'cancelled', 'completed'] as const;

export function end(run: Evaluation, code: DoneCode): void {
  run.execution.e = code;
  setState(run.snapshot, END_STATES[code], null);
}

/** Clears what an ended execution does not need; a failed one keeps what a retry needs. */
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

/** Audits the transition, through `running` if the state table has no direct one. */
export function auditTransition(run: Evaluation, from: InstanceState, isDirect: boolean): void {
  const to = run.snapshot.state;
  if (from === to) return;
  if (!isDirect && !canPatch(from, to) && canPatch(from, 'running') && to !== 'running') {
    pushTransition(run, from, 'running');
    pushTransition(run, 'running', to);
  } else pushTransition(run, from, to);
}

function pushTransition(run: Evaluation, fromState: InstanceState, toState: InstanceState): void {
  const { y: failure } = run.execution;
  run.progress.audit.push(
    toState === 'failed' && failure !== undefined
      ? { eventType: 'state_transition', fromState, toState, failure }
      : { eventType: 'state_transition', fromState, toState },
  );
}

/** When the instance has to be woken; computed from the snapshot alone. */
export function nextWake(run: Evaluation): { wakeAt: UnixMs | null; more: boolean } {
  const { snapshot, execution, env } = run;
  const isStopped = isEnded(snapshot.state) || snapshot.state === 'paused';
  if (isStopped) return { wakeAt: null, more: false };
  if (execution.p === 1 || execution.w !== undefined) {
    // An instance that was parked before a pause is parked again.
    return { wakeAt: firstLimit(run), more: isParked(run) && snapshot.state === 'scheduled' };
  }
  const start = requestedStart(run);
  if (start !== null && start > env.now) {
    return { wakeAt: Math.min(start, firstLimit(run) ?? start), more: false };
  }
  const next = execution.t === null ? null : (earlier(run.leaves.next()?.at, execution.u) ?? null);
  const isDue = snapshot.state === 'scheduled' && (snapshot.nextFireAt ?? env.now) <= env.now;
  if (isDue) return { wakeAt: Math.min(env.now, next ?? env.now), more: true };
  return { wakeAt: next, more: hasMore(run) };
}

export function mayRun(run: Evaluation): boolean {
  const { snapshot, execution } = run;
  if (snapshot.state === 'paused' || execution.p === 1 || execution.w !== undefined) return false;
  return (requestedStart(run) ?? run.env.now) <= run.env.now;
}

/** The start requested at creation or by a reschedule; null: none. */
export function requestedStart({ snapshot, execution }: Evaluation): UnixMs | null {
  if (execution.h !== undefined) return execution.h;
  return execution.t === null && snapshot.state === 'scheduled' ? snapshot.nextFireAt : null;
}

/** Parked by request, and not waiting for a slot or its start. */
const isParked = ({ execution }: Evaluation): boolean =>
  execution.p === 1 && execution.w === undefined;

export function clearHolds(run: Evaluation): void {
  if (run.execution.p !== undefined) delete run.execution.p;
  if (run.execution.h !== undefined) delete run.execution.h;
  if (run.execution.w !== undefined) delete run.execution.w;
}

/** Whether the instance could continue but has no slot of its concurrency key (docs/reference/instances.md). */
export function awaitsPermit(run: Evaluation): boolean {
  const { execution } = run;
  if (run.env.holdsPermit !== false || execution.e !== undefined) return false;
  if (execution.p === 1) return run.snapshot.state === 'scheduled' && execution.w === undefined;
  const { leaves } = run;
  return execution.t === null || hasMore(run) || leaves.active > 0 || leaves.outside > 0;
}

/** Whether the instance could start, but for the throttle of its sequence. */
export function awaitsStart({ env, execution }: Evaluation): boolean {
  const isHeldBack = env.mayStart === false && execution.i !== undefined;
  return isHeldBack && execution.t === null && execution.e === undefined;
}

export function openLeaves(run: Evaluation): [PlanNode, StepRecord][] {
  const leaves: [PlanNode, StepRecord][] = [];
  for (const key in run.execution.o) {
    const node = run.plan.nodes[Number(key)]!;
    if (node.kind.isLeaf) leaves.push([node, run.execution.o[key] as StepRecord]);
  }
  return leaves;
}

/** Blocks in the note `cancelling`; `explain` shows all blocks. */
const BLOCKS_MAX = 20;

/** Called after every event, since the open blocks change. The request is audited once. */
function noteCancelling(run: Evaluation): void {
  const { execution, env } = run;
  const { runtime } = run.snapshot;
  const before = cancellingIn(runtime);
  const reason = execution.y?.code === 'instance_timeout' ? 'timeout' : 'cancel';
  const open = openLeaves(run).flatMap(([{ id }, { z }]) => (z === undefined ? [id] : []));
  const waiting_for = [...new Set(open)].slice(0, BLOCKS_MAX);
  runtime.cancelling = { since: before?.since ?? isoTime(env.now), reason, waiting_for };
  if (before?.reason === reason) return;
  run.progress.audit.push({ eventType: 'cancelling', details: { reason, waiting_for } });
}

export function forgetCancelling({ runtime }: Snapshot): void {
  if (runtime.cancelling !== undefined) delete runtime.cancelling;
}

export const cancellingIn = (runtime: JsonObject) => runtime.cancelling as Cancelling | undefined;
