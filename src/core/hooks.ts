/**
 * The hooks of a sequence (docs/reference/instances.md): steps that run after an instance has failed or was cancelled.
 * Each list is a plan of its own; its run is an execution stored in that of the instance, and its steps are recognised
 * by their iteration. A failed hook is audited, and the next one runs. Only if hooks of a cancelled or timed-out
 * instance fail does the instance fail with `cleanup_failed`; a retry runs these hooks again.
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
} from '../../schema/execution.js';
import type { Failure } from '../../schema/failure.js';
import type { InstanceState } from '../../schema/states.js';
import type { JsonObject } from '../base/json.js';
import { startAt } from './blocks/list.js';
import { cutAll } from './cutting.js';
import { deadlineOf, earlier } from './deadlines.js';
import { Evaluation } from './evaluation.js';
import { openLeaves } from './instance-state.js';
import type { Plan } from './plan-nodes.js';
import type {
  AuditEvent,
  EngineEvent,
  Env,
  Progress,
  Snapshot,
  StepTry,
  TryEvent,
} from './progress.js';

/** Pending runs of hooks per instance; further ones are dropped. */
const RUNS_MAX = 16;

const LIST_OF: Readonly<Partial<Record<InstanceState, HookList>>> = {
  failed: 'on_failure',
  cancelled: 'on_cancel',
};

const ITERATION = /^on_(?:failure|cancel)\.\d+$/;
/** The iteration of a run's steps and rows. No loop has such an iteration. */
const iterationOf = ({ l, n }: HookRun): string => `${l}.${n}`;

export function isOfHooks(iteration: string): boolean {
  return iteration.startsWith('on_') && ITERATION.test(iteration);
}

export function isForHooks(event: EngineEvent): event is TryEvent {
  return 'iteration' in event && isOfHooks(event.iteration);
}

export const hasHooks = ({ j }: Execution): boolean => j !== undefined && j.r.length > 0;

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

/** Whether the hooks of this end have already run. Failed hooks of a cancel keep both lists from running again. */
function hasRun(j: HookState | undefined, list: HookList): boolean {
  const isAgain = j?.a === list;
  if (isAgain) delete j.a;
  const owed = j?.f?.l;
  return isAgain || owed === 'on_cancel' || owed === list;
}

/**
 * For a retry after failed hooks: these run again, and later skipped hooks are evaluated again, since their `when` may
 * depend on the failure. Returns the list; the instance then ends as before.
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

/** Advances the hooks by a `wake` or an event of a hook's step, and adds the results to the progress. */
export function withHooks(
  plan: Plan,
  snapshot: Snapshot,
  event: EngineEvent,
  env: Env,
  progress: Progress,
): Progress {
  const [active] = snapshot.execution.j?.r ?? [];
  const isOfHook = isForHooks(event);
  if (isOfHook && (active === undefined || iterationOf(active) !== event.iteration)) {
    progress.stale = true;
  } else if (active !== undefined) {
    // Any other event is stored before the hooks begin.
    const isMoved = isOfHook || event.kind === 'wake' || event.kind === 'hooks.dropped';
    if (isMoved) move(plan, snapshot, event, env, progress);
  }
  wakeWithHooks(snapshot.execution, env, progress);
  return progress;
}

/** Applies the event to the first run of hooks. */
function move(plan: Plan, snapshot: Snapshot, event: EngineEvent, env: Env, progress: Progress) {
  const { r: runs } = snapshot.execution.j!;
  const hooks = runs[0]!;
  const own = plan.hooks?.[hooks.l];
  if (own === undefined) {
    // The instance was migrated to a version without them.
    runs.shift();
    return;
  }
  const run = new Evaluation(own, scopeOf(snapshot, hooks), env);
  const isApplied = applyEvent(run, event);
  if (event.kind === 'hooks.dropped') {
    // A hook may have begun again when the instance was reloaded after the refusal.
    cutAll(run);
    const details = { hooks: hooks.l, message: event.message };
    run.progress.audit.push({ eventType: 'hook_failed', details });
    runs.shift();
  } else {
    if (isApplied) runOn(run, hooks);
    run.storeQueue();
    if (run.execution.e === COMPLETED) runs.shift();
  }
  append(progress, run.progress, hooks);
  if (!isApplied && event.kind !== 'hooks.dropped') progress.stale = true;
  const isOwed = hooks.f !== undefined && !runs.includes(hooks);
  if (isOwed && hasToCleanUp(snapshot, hooks.l)) failToCleanUp(plan, snapshot, hooks, progress);
}

/** The snapshot that steps of hooks see: the current instance, with its failure as `data._error`. */
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

function failToCleanUp({ hooks }: Plan, snapshot: Snapshot, run: HookRun, progress: Progress) {
  const { execution, state: fromState } = snapshot;
  const failure: Failure = { ...run.f!, code: 'cleanup_failed' };
  execution.m = 1;
  execution.y = failure;
  snapshot.state = 'failed';
  if (fromState !== 'failed') beginHooks(hooks, snapshot);
  execution.j!.f = run;
  if (fromState === 'failed') return;
  progress.audit.push({ eventType: 'state_transition', fromState, toState: 'failed', failure });
}

function append(progress: Progress, own: Progress, hooks: HookRun): void {
  const iteration = iterationOf(hooks);
  const named = <T extends object>(items: readonly T[]) =>
    items.map((item) => ({ ...item, iteration }));
  const rows = named(own.outputs.filter(({ outputRef }) => outputRef === null));
  progress.outputs.push(...rows.map((row) => ({ ...row, attempt: hooks.n })));
  progress.dispatches.push(...named(own.dispatches));
  progress.withdrawals.push(...named(own.withdrawals));
  progress.logs.push(...own.logs);
  progress.audit.push(...own.audit.map((event) => asHook(event, hooks.l)));
  for (const name of Object.keys(own.counts) as (keyof Progress['counts'])[]) {
    progress.counts[name] += own.counts[name];
  }
  if (own.effects === undefined) return;
  progress.effects = [...(progress.effects ?? []), ...named(own.effects)];
}

function asHook(event: AuditEvent, list: HookList): AuditEvent {
  if (event.eventType !== 'step_failed') return event;
  return { ...event, eventType: 'hook_failed', details: { ...event.details, hooks: list } };
}

function wakeWithHooks({ j }: Execution, { now }: Env, progress: Progress): void {
  const [active] = j?.r ?? [];
  if (active === undefined) return;
  const { t, o, q = [] } = active.e;
  for (const record of Object.values(o)) {
    progress.wakeAt = earlier(progress.wakeAt ?? undefined, deadlineOf(record)) ?? null;
  }
  const isIdle = t === null || q.length > 0 || Object.keys(o).length === 0;
  progress.more ||= isIdle || (progress.wakeAt !== null && progress.wakeAt <= now);
}
