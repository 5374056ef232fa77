/**
 * The hooks of a sequence (docs/reference/instances.md): steps that run after an instance has failed or was cancelled.
 * Each list is a plan of its own, and a run of it is an execution stored in that of the instance; its steps are
 * recognised by their iteration. A failed hook is audited and the next one runs; hooks do not change the data, the
 * state or the failure of the instance. Only when hooks of a cancelled or timed-out instance fail does the instance
 * fail with `cleanup_failed`, and a retry runs these hooks again.
 */

import type { HookList } from '../../schema/blocks.js';
import {
  COMPLETED,
  type Execution,
  emptyExecution,
  FAILED,
  type HookRun,
  type HookState,
  type OpenRecord,
  type StepRecord,
} from '../../schema/execution.js';
import type { Failure } from '../../schema/failure.js';
import type { InstanceState } from '../../schema/states.js';
import type { JsonObject } from '../base/json.js';
import { startAt } from './blocks/list.js';
import { cutAll } from './cutting.js';
import { Evaluation } from './evaluation.js';
import { nextWake, openLeaves } from './instance-state.js';
import { deadlineOf } from './open-leaves.js';
import type { Plan } from './plan-nodes.js';
import {
  type AuditEvent,
  type EngineEvent,
  type Env,
  noCounts,
  type Progress,
  type Snapshot,
  type StepTry,
  type TryEvent,
} from './progress.js';

/** Pending runs of hooks per instance; further ones are dropped. */
const RUNS_MAX = 16;

const LIST_OF: Readonly<Partial<Record<InstanceState, HookList>>> = {
  failed: 'on_failure',
  cancelled: 'on_cancel',
};

const ITERATION = /^on_(?:failure|cancel)\.\d+$/;

/** The iteration of the hook's steps and rows, which no loop can have. */
function iterationOf({ l, n }: HookRun): string {
  return `${l}.${n}`;
}

export function isOfHooks(iteration: string): boolean {
  return iteration.startsWith('on_') && ITERATION.test(iteration);
}

export function isForHooks(event: EngineEvent): event is TryEvent {
  return 'iteration' in event && isOfHooks(event.iteration);
}

export function hasHooks({ j }: Execution): boolean {
  return j !== undefined && j.r.length > 0;
}

export function openRecord(
  execution: Execution,
  { node, iteration }: Pick<StepTry, 'node' | 'iteration'>,
): OpenRecord | undefined {
  return (isOfHooks(iteration) ? execution.j?.r[0]?.e : execution)?.o[node];
}

/** Records that the hooks of the state that the instance has just entered are due. */
export function beginHooks(hooks: Plan['hooks'], snapshot: Snapshot): void {
  const list = LIST_OF[snapshot.state];
  if (list === undefined) return;
  const { execution } = snapshot;
  if (hasRun(execution.j, list) || hooks?.[list] === undefined) return;
  const state = execution.j ?? { n: 0, r: [] };
  execution.j = state;
  if (state.r.length >= RUNS_MAX) return;
  const run = { l: list, n: state.n, e: emptyExecution() };
  const failure = list === 'on_failure' ? execution.y : undefined;
  state.r.push(failure === undefined ? run : { ...run, y: failure });
  state.n += 1;
}

/** Whether the hooks of this end have run, for a cancel those of both lists: only a retry repeats failed ones. */
function hasRun(j: HookState | undefined, list: HookList): boolean {
  const isAgain = j?.a === list;
  if (isAgain) delete j.a;
  const owed = j?.f?.l;
  return isAgain || owed === 'on_cancel' || owed === list;
}

/**
 * A retry of an instance whose hooks failed after a cancel or a time-out: failed hooks run again, and later skipped
 * ones are evaluated again, since their `when` may depend on the failure. Returns the list; the instance then ends as
 * before.
 */
export function runHooksAgain(execution: Execution): HookList | undefined {
  const { j } = execution;
  const run = j?.f;
  if (j === undefined || run === undefined) return undefined;
  delete j.f;
  delete run.f;
  delete run.e.e;
  let isBehind = false;
  for (const [index, [code]] of Object.entries(run.e.d)) {
    isBehind ||= code === FAILED;
    if (isBehind && code !== COMPLETED) delete run.e.d[Number(index)];
  }
  j.r.unshift(run);
  j.a = run.l;
  if (run.y !== undefined) execution.y = run.y;
  return run.l;
}

/** The failed hooks will not run again: the instance has ended for good, or continues elsewhere. */
export function forgetHooksThatFailed({ j }: Execution): void {
  delete j?.f;
  delete j?.a;
}

/** The progress of the instance joined with that of its hooks, which advance with a `wake`. */
export function withHooks(
  plan: Plan,
  snapshot: Snapshot,
  event: EngineEvent,
  env: Env,
  progress: Progress,
): Progress {
  if (!hasHooks(snapshot.execution)) return progress;
  // The effect of an event is stored before the hooks begin.
  if (event.kind !== 'wake' && event.kind !== 'hooks.dropped') {
    return { ...progress, ...nextWakeWithHooks(snapshot.execution, env, progress) };
  }
  return joined(plan, snapshot, env, progress, move(plan, snapshot, event, env));
}

/** Applies an event about a step of a hook. The instance itself may be running again by now. */
export function advanceHooks(plan: Plan, snapshot: Snapshot, event: TryEvent, env: Env): Progress {
  const idle: Progress = { ...IDLE, ...nextWake(new Evaluation(plan, snapshot, env)) };
  const [active] = snapshot.execution.j?.r ?? [];
  const isKnown = active !== undefined && iterationOf(active) === event.iteration;
  return isKnown
    ? joined(plan, snapshot, env, idle, move(plan, snapshot, event, env))
    : { ...idle, ...nextWakeWithHooks(snapshot.execution, env, idle), stale: true };
}

function sumOf(a: Progress['counts'], b: Progress['counts']): Progress['counts'] {
  const sums = Object.keys(a) as (keyof Progress['counts'])[];
  return Object.fromEntries(sums.map((name) => [name, a[name] + b[name]])) as Progress['counts'];
}

const IDLE: Omit<Progress, 'wakeAt' | 'more'> = {
  outputs: [],
  dispatches: [],
  withdrawals: [],
  rateRequests: [],
  snapshots: [],
  droppedSnapshots: [],
  droppedOutputs: [],
  logs: [],
  audit: [],
  dropErrorRows: false,
  counts: noCounts(),
};

/** What the event led to in the first run of hooks. */
interface Moved {
  readonly run: Evaluation;
  readonly hooks: HookRun;
  readonly isStale: boolean;
}

function move(plan: Plan, snapshot: Snapshot, event: EngineEvent, env: Env): Moved | undefined {
  const { r: runs } = snapshot.execution.j!;
  const hooks = runs[0]!;
  const own = plan.hooks?.[hooks.l];
  if (own === undefined) {
    // The instance was migrated to a version without them.
    runs.shift();
    return undefined;
  }
  const run = new Evaluation(own, scopeOf(snapshot, hooks), env);
  const isApplied = applyEvent(run, event);
  if (event.kind === 'hooks.dropped') {
    // One may have begun again when the instance was reloaded after the refusal.
    cutAll(run);
    run.audit.push({
      eventType: 'hook_failed',
      details: { hooks: hooks.l, message: event.message },
    });
    runs.shift();
    return { run, hooks, isStale: false };
  }
  if (isApplied) runOn(run, hooks);
  run.storeQueue();
  if (run.execution.e === COMPLETED) runs.shift();
  return { run, hooks, isStale: !isApplied };
}

/** What its steps see: the instance as it is now, and why it failed. */
function scopeOf(snapshot: Snapshot, { e, l, y }: HookRun): Snapshot {
  return {
    ...snapshot,
    state: 'running',
    nextFireAt: null,
    ...(y === undefined ? {} : { error: { ...y, source: l } as JsonObject }),
    runtime: { ...snapshot.runtime },
    execution: e,
    snapshots: new Map(),
  };
}

/** False: the event is about a try that is not open. */
function applyEvent(run: Evaluation, event: EngineEvent): boolean {
  if (event.kind === 'wake' && event.recovered === true) {
    for (const [node, record] of openLeaves(run)) node.kind.recover(run, node, record);
  }
  if (!('iteration' in event)) return true;
  const node = run.plan.nodes[event.node];
  const record = run.execution.o[event.node];
  if (node === undefined || record === undefined) return false;
  return node.kind.handleEvent(run, node, record, event);
}

function runOn(run: Evaluation, hooks: HookRun): void {
  const { execution, plan, env } = run;
  if (execution.t === null) execution.t = env.now;
  else run.fireDue();
  for (;;) {
    const isIdle = !run.hasQueue && Object.keys(execution.o).length === 0;
    if (isIdle || execution.e !== undefined) {
      // After a failed hook the next one runs.
      if (execution.y !== undefined) hooks.f ??= execution.y;
      delete execution.e;
      delete execution.y;
      if (!startAt(run, plan.roots, 0)) execution.e = COMPLETED;
    }
    if (execution.e !== undefined || !run.hasQueue || run.isExhausted) return;
    run.drain();
  }
}

/** The failure of hooks changes only an instance that was cancelled or timed out. */
function hasToCleanUp({ state, execution }: Snapshot, list: HookList): boolean {
  if (list === 'on_cancel') return state === 'cancelled';
  return state === 'failed' && execution.y?.code === 'instance_timeout';
}

/** The instance was cancelled or timed out, and its hooks failed to clean up. */
function failToCleanUp({ hooks }: Plan, snapshot: Snapshot, run: HookRun): AuditEvent[] {
  const { execution, state: fromState } = snapshot;
  const failure: Failure = { ...run.f!, code: 'cleanup_failed' };
  execution.m = 1;
  execution.y = failure;
  snapshot.state = 'failed';
  if (fromState !== 'failed') beginHooks(hooks, snapshot);
  execution.j!.f = run;
  if (fromState === 'failed') return [];
  return [{ eventType: 'state_transition', fromState, toState: 'failed', failure }];
}

function joined(plan: Plan, snapshot: Snapshot, env: Env, progress: Progress, moved?: Moved) {
  const isOwed = moved?.hooks.f !== undefined && !snapshot.execution.j!.r.includes(moved.hooks);
  const hasFailed = isOwed && hasToCleanUp(snapshot, moved.hooks.l);
  const end = hasFailed ? failToCleanUp(plan, snapshot, moved.hooks) : [];
  const next = nextWakeWithHooks(snapshot.execution, env, progress);
  if (moved === undefined) return { ...progress, ...next };
  const { run, hooks, isStale } = moved;
  const iteration = iterationOf(hooks);
  const named = <T extends object>(items: readonly T[]) =>
    items.map((item) => ({ ...item, iteration }));
  const rows = run.outputs.filter(({ outputRef }) => outputRef === null);
  const effects = [...(progress.effects ?? []), ...named(run.effects ?? [])];
  const { counts } = progress;
  return {
    ...progress,
    ...next,
    outputs: [...progress.outputs, ...named(rows).map((row) => ({ ...row, attempt: hooks.n }))],
    dispatches: [...progress.dispatches, ...named(run.dispatches)],
    withdrawals: [...progress.withdrawals, ...named(run.withdrawals)],
    logs: [...progress.logs, ...run.logs],
    audit: [...progress.audit, ...run.audit.map(asHook(hooks.l)), ...end],
    counts: sumOf(counts, run.counts),
    ...(effects.length === 0 ? {} : { effects }),
    ...(isStale && { stale: true as const }),
  };
}

/** A failed step of a hook is not the reason of a failure. */
function asHook(list: HookList) {
  return (event: Progress['audit'][number]): Progress['audit'][number] =>
    event.eventType === 'step_failed'
      ? { ...event, eventType: 'hook_failed', details: { ...event.details, hooks: list } }
      : event;
}

function nextWakeWithHooks({ j }: Execution, { now }: Env, { wakeAt, more }: Progress) {
  const [active] = j?.r ?? [];
  if (active === undefined) return { wakeAt, more };
  const { t, o, q = [] } = active.e;
  let first = wakeAt;
  for (const record of Object.values(o)) {
    const at = deadlineOf(record as StepRecord);
    if (at !== undefined && (first === null || at < first)) first = at;
  }
  const isIdle = t === null || q.length > 0 || Object.keys(o).length === 0;
  return { wakeAt: first, more: more || isIdle || (first !== null && first <= now) };
}
