/**
 * The switch of an instance to another version of its sequence by order of its execution, and the way
 * back. All was replayed, judged and sealed before; what is left to do here is to change the instance
 * and to keep every row it has consistent with that.
 */

import type { MigrationFinding } from '../../schema/continuity.js';
import type { Execution, StepRecord } from '../../schema/execution.js';
import { conflict, notFound } from '../../src/base/errors.js';
import { isJsonObject, type JsonObject, type JsonValue } from '../../src/base/json.js';
import { shiftLimits } from '../../src/core/deadlines.js';
import { putData } from '../../src/core/loop-items.js';
import { conflictFor, migrationFinding } from '../../src/core/migration-findings.js';
import { iterationOf } from '../../src/core/paths.js';
import type { Plan } from '../../src/core/plan.js';
import type { KeptOutput, Progress, StepTry } from '../../src/core/progress.js';
import type { Turn } from '../runtime/turn.js';
import type { Action, Sources } from './action.js';
import { advance, checkContextSize } from './advance.js';
import { type CarriedOver, type CarriedTask, carryOver, isCarried } from './core/carry-over.js';
import { lostCleanUps } from './core/owed-clean-ups.js';
import { goOver, nodeOf, rebind } from './edits.js';
import { renewEventWaits } from './event-waits.js';
import { keptOutputs } from './kept-outputs.js';
import type { LiveInstance } from './live-instance.js';
import type { OrderedMigration, OrderedRestore, ToVersion } from './orders.js';
import { putTransition, withdrawTask } from './progress.js';
import { type InstanceRecord, isKeyed } from './record.js';
import { INSTANCE } from './tables.js';
import { isOpen, type WorkerTaskRecord } from './worker-task.js';

/** Rejects with 404 or 409 when the instance cannot go over to that version. */
export async function migrated(
  actor: LiveInstance,
  sources: Sources,
  { sequenceId, data, epoch, continuityId, pauses }: OrderedMigration,
): Promise<Action> {
  const { record } = actor;
  const { plans } = sources;
  const { deletions } = plans;
  checkContextSize(actor, data, record.snapshot.config, record.context_audit);
  const crossing = await crossingTo(actor, sources, { sequenceId, data });
  if (!isCarried(crossing.carried)) throw conflictFor(crossing.carried);
  const { target, carried } = crossing as Crossing & { readonly carried: CarriedOver };
  const { execution } = carried;
  const { snapshot } = record;
  const place = { ...snapshot, execution, snapshots: [...snapshot.snapshots.keys()] };
  const kept = await keptOutputs(sources.rows, target, place);
  return (turn) => {
    plans.checkUsable(sequenceId, deletions);
    for (const id of carried.withdrawn) withdrawTask(actor, turn, actor.tasks.get(id));
    goOver(actor, target, execution, kept);
    record.continuity_id = continuityId;
    switchTo(actor, turn, sequenceId, epoch);
    putData(target, record.snapshot, data);
    if (pauses && record.snapshot.state !== 'failed') {
      // A parked one waits for a caller, who is whoever ends this pause.
      if (execution.p !== undefined) delete execution.p;
      advance(actor, turn, { kind: 'pause' });
    }
    return goOn(actor, turn);
  };
}

export interface Foreseen {
  /** Why the instance could not go over to the version as it is; none: it could. */
  readonly obstacles: readonly MigrationFinding[];
  /** Clean-ups that it owes, and that would be forgotten there. */
  readonly lost: readonly MigrationFinding[];
}

export const NOTHING_FORESEEN: Foreseen = { obstacles: [], lost: [] };

export async function foresee(
  actor: LiveInstance,
  sources: Sources,
  to: ToVersion,
): Promise<Foreseen> {
  const { target, carried } = await crossingTo(actor, sources, to);
  if (!isCarried(carried)) return { obstacles: carried, lost: [] };
  const { execution } = actor.record.snapshot;
  return { obstacles: [], lost: lostCleanUps(actor.plan, execution, target, carried.execution) };
}

interface Crossing {
  readonly target: Plan;
  readonly outputs: Map<string, KeptOutput>;
  readonly carried: ReturnType<typeof carryOver>;
}

async function crossingTo(
  actor: LiveInstance,
  { rows, plans }: Sources,
  { sequenceId, data }: ToVersion,
): Promise<Crossing> {
  const { record, plan: source, env } = actor;
  checkAtRest(actor);
  const target = await planOf(actor, plans, sequenceId);
  const [outputs, ended] = await Promise.all([
    rows.outputs(record.id, target.outputRefs),
    rows.endedBlocks(record.id),
  ]);
  const { random, unpoliciedRetry } = env;
  const budget = { stepBudget: 0, outputBytesBudget: 0 };
  const carried = carryOver({
    source,
    target,
    snapshot: record.snapshot,
    data,
    outputs,
    ended,
    env: { now: env.now(), random, unpoliciedRetry, ...budget },
    taskOf: (step) => carriedTask(openTaskOf(actor, source, step)),
  });
  return { target, outputs, carried };
}

function carriedTask(task: WorkerTaskRecord | undefined): CarriedTask | undefined {
  return (
    task && {
      id: task.id,
      params: JSON.parse(task.params) as JsonValue,
      isHeld: task.claim_epoch > 0,
    }
  );
}

/** The task of a try that no worker has ended. */
function openTaskOf(
  { tasks }: LiveInstance,
  plan: Plan,
  { node, iteration, attempt }: StepTry,
): WorkerTaskRecord | undefined {
  const blockId = plan.nodes[node]?.id ?? '';
  const task = tasks.lastOf({ blockId, iteration });
  return task?.attempt === attempt && isOpen(task) ? task : undefined;
}

/** Steps that await an answer which names them by the old plan's indexes are begun again. */
function goOn(actor: LiveInstance, turn: Turn): Progress {
  return advance(actor, turn, { kind: 'wake', recovered: true });
}

/** Rejects with 404 or 409 when the instance cannot go back to that version. */
export async function restored(
  actor: LiveInstance,
  { rows, plans }: Sources,
  { sequenceId, context, execution, state, nextFireAt, epoch, ...progress }: OrderedRestore,
): Promise<Action> {
  const { record } = actor;
  const { deletions } = plans;
  checkAtRest(actor);
  const source = await planOf(actor, plans, sequenceId);
  const outputs = await rows.outputs(record.id, source.outputRefs);
  for (const block of progress.dropped) outputs.delete(block);
  for (const [block, output] of progress.outputs) {
    if (source.nodes[nodeOf(source, block)]?.isRead === true) outputs.set(block, output);
  }
  return (turn) => {
    plans.checkUsable(sequenceId, deletions);
    const { snapshot } = record;
    const pausedAt = snapshot.execution.z;
    // The ids of children that were made since are taken, and so are the numbers of wishes for a slot.
    const { g, n, r } = snapshot.execution;
    if (g !== undefined) execution.g = Math.max(g, execution.g ?? 0);
    if (n !== undefined) execution.n = Math.max(n, execution.n ?? 0);
    if (execution.r !== undefined) delete execution.r;
    if (r !== undefined) execution.r = r;
    offerAgain(actor, turn, source, execution);
    goOver(actor, source, execution, { outputs, items: { ...progress.itemOutputs } });
    // In the pause that ends here its limits of time have stood still.
    if (state !== 'paused' && pausedAt !== undefined) {
      shiftLimits(execution, Math.max(0, actor.env.now() - pausedAt));
    }
    switchTo(actor, turn, sequenceId, epoch);
    snapshot.snapshots = new Map(progress.items.map(([key, items]) => [key, [...items]]));
    actor.kept.count(snapshot);
    snapshot.data = sectionOf(context, 'data');
    snapshot.config = sectionOf(context, 'config');
    snapshot.runtime = sectionOf(context, 'runtime');
    record.context_audit = Array.isArray(context.audit) ? context.audit : [];
    if (snapshot.state !== state) putTransition(actor, turn, state);
    snapshot.state = state;
    // The start that was asked for holds what has not begun.
    snapshot.nextFireAt = nextFireAt === null ? null : Date.parse(nextFireAt);
    // Unless a worker is still at it, it gave its slot back when it was paused, and waits for one where it stands.
    if (state === 'waiting' && isKeyed(record) && r === undefined) execution.w = 1;
    renewEventWaits(actor, turn);
    const came = goOn(actor, turn);
    snapshot.nextFireAt = nextFireAt === null ? null : Date.parse(nextFireAt);
    return came;
  };
}

/** The steps of tasks that no worker has had are begun again, at the next wake. */
export function takeBack(actor: LiveInstance, turn: Turn): void {
  const isUnclaimed = (task: WorkerTaskRecord) => isOpen(task) && task.claim_epoch === 0;
  if (![...actor.tasks.values()].some(isUnclaimed)) return;
  const { snapshot } = actor.record;
  // Another object, since what is open is indexed by its execution.
  const execution = structuredClone(snapshot.execution);
  offerAgain(actor, turn, actor.plan, execution);
  snapshot.execution = execution;
}

/**
 * Of the tasks that are open those stay that a worker has, or had, as tries of this execution. All
 * others are taken back, and what the execution says of tries of tasks is begun again.
 */
function offerAgain(actor: LiveInstance, turn: Turn, plan: Plan, execution: Execution): void {
  const kept = new Set<WorkerTaskRecord>();
  for (const [index, open] of Object.entries(execution.o)) {
    const node = plan.nodes[Number(index)];
    const { p, a, b, x } = open as StepRecord;
    if (node?.type !== 'step' || p !== 'task') continue;
    const step = { node: node.index, iteration: iterationOf(execution, node), attempt: a };
    const task = openTaskOf(actor, plan, step);
    if (task !== undefined && task.claim_epoch > 0) {
      kept.add(task);
      continue;
    }
    // The rate limit has let it pass before.
    execution.o[node.index] = { b, p: 'ready', a, ...(x && { x }), g: 1 } satisfies StepRecord;
    execution.q = [...(execution.q ?? []), node.index];
    // A parked instance is woken by what it waits for, which it would never dispatch again.
    if (execution.p !== undefined) delete execution.p;
  }
  for (const task of [...actor.tasks.values()]) {
    if (isOpen(task) && !kept.has(task)) withdrawTask(actor, turn, task);
  }
}

function sectionOf(context: JsonObject, section: string): JsonObject {
  const value = context[section];
  return isJsonObject(value) ? value : {};
}

function switchTo(actor: LiveInstance, turn: Turn, sequenceId: string, epoch: number): void {
  actor.record.ownership_epoch = epoch;
  rebind(actor, turn, sequenceId);
  putOwnership(actor.record, turn);
}

/** @throws EngineError 404, or 409 when its own blocks do not go with the version */
async function planOf(
  { record }: LiveInstance,
  plans: Sources['plans'],
  sequenceId: string,
): Promise<Plan> {
  const stored = await plans.seek(sequenceId, record.tenant_id);
  if (stored?.tenantId !== record.tenant_id) throw notFound(`sequence ${sequenceId}`);
  const compiled = await plans.compile(sequenceId, record.injected);
  if (compiled === undefined) throw notFound(`sequence ${sequenceId}`);
  if (!compiled.ok) throw conflict(compiled.message);
  return compiled.plan;
}

/** @throws EngineError 409 while a handler of this process is at one of its steps */
export function checkAtRest({ record, running, plan }: LiveInstance): void {
  const [step] = running.values();
  if (step === undefined) return;
  const block_id = plan.nodes[step.node]?.id ?? null;
  const summary = `step ${block_id} of instance ${record.id} is at work inside the server`;
  throw conflictFor([migrationFinding('STEP_AT_WORK', summary, { block_id })]);
}

export function putOwnership(record: InstanceRecord, turn: Turn): void {
  const { id, continuity_id, ownership_epoch, fence } = record;
  turn.put(INSTANCE.ownership, id, { id, continuity_id, ownership_epoch, fence });
}
