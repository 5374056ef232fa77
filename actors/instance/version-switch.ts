/**
 * The migration of an instance to another version of its sequence by an order of its execution, and its rollback.
 * Everything was replayed, checked and sealed before; here the instance changes, and all its rows with it.
 */

import type { MigrationFinding } from '../../schema/continuity.js';
import type { Execution, StepRecord } from '../../schema/execution.js';
import { isJsonObject, type JsonObject, type JsonValue } from '../../src/base/json.js';
import { shiftLimits } from '../../src/core/deadlines.js';
import { putData } from '../../src/core/loop-items.js';
import { conflictFor, migrationFinding } from '../../src/core/migration-findings.js';
import { iterationOf } from '../../src/core/paths.js';
import type { Plan } from '../../src/core/plan.js';
import type { StepTry } from '../../src/core/progress.js';
import type { Turn } from '../runtime/turn.js';
import { advance, checkContextSize } from './advance.js';
import { carryOver, isCarried } from './core/carry-over.js';
import { lostCleanUps } from './core/owed-clean-ups.js';
import { goOver, nodeOf, ownSequence, planWithOwnBlocks, rebind } from './edits.js';
import { renewEventWaits } from './event-waits.js';
import { keptOutputs } from './kept-outputs.js';
import type { Action, LiveInstance, Sources } from './live-instance.js';
import type { OrderedMigration, OrderedRestore, ToVersion } from './orders.js';
import { putTransition, withdrawTask } from './progress.js';
import { type InstanceRecord, isKeyed } from './record.js';
import { INSTANCE } from './tables.js';
import { isOpen, type WorkerTaskRecord } from './worker-task.js';

/** Rejects with 404 or 409 when the instance cannot be migrated to that version. */
export async function migrated(
  actor: LiveInstance,
  sources: Sources,
  { sequenceId, data, epoch, continuityId, pauses }: OrderedMigration,
): Promise<Action> {
  const { record } = actor;
  const { plans } = sources;
  const { deletions } = plans;
  checkContextSize(actor, data, record.snapshot.config, record.context_audit);
  const { target, carried } = await crossingTo(actor, sources, { sequenceId, data });
  if (!isCarried(carried)) throw conflictFor(carried);
  const { execution } = carried;
  const { snapshot } = record;
  const place = { ...snapshot, execution, snapshots: [...snapshot.snapshots.keys()] };
  const kept = await keptOutputs(sources.rows, target, place);
  return (turn) => {
    plans.checkUsable(sequenceId, deletions);
    for (const id of carried.withdrawn) {
      const task = actor.tasks.get(id);
      if (task !== undefined) withdrawTask(actor, turn, task, 'cancelled', true);
    }
    goOver(actor, target, execution, kept);
    record.continuity_id = continuityId;
    switchTo(actor, turn, sequenceId, epoch);
    putData(target, record.snapshot, data);
    if (pauses && record.snapshot.state !== 'failed') {
      // A parked instance waits for a caller, as after this pause.
      if (execution.p !== undefined) delete execution.p;
      advance(actor, turn, { kind: 'pause' });
    }
    return advance(actor, turn, RECOVERED);
  };
}

export interface Foreseen {
  /** Why the instance cannot be migrated now. */
  readonly obstacles: readonly MigrationFinding[];
  /** Clean-ups that it owes and that the version does not have. */
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

async function crossingTo(
  actor: LiveInstance,
  { rows, plans }: Sources,
  { sequenceId, data }: ToVersion,
) {
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
    taskOf: (step) => {
      const task = openTaskOf(actor, source, step);
      if (task === undefined) return undefined;
      const params = JSON.parse(task.params) as JsonValue;
      return { id: task.id, params, isHeld: task.claim_epoch > 0 };
    },
  });
  return { target, carried };
}

/** The open task of a try. */
function openTaskOf(
  { tasks }: LiveInstance,
  plan: Plan,
  { node, iteration, attempt }: StepTry,
): WorkerTaskRecord | undefined {
  const blockId = plan.nodes[node]?.id ?? '';
  const task = tasks.lastOf({ blockId, iteration });
  return task?.attempt === attempt && isOpen(task) ? task : undefined;
}

/** Steps whose answers would name them by indexes of the old plan are started again. */
const RECOVERED = { kind: 'wake', recovered: true } as const;

/** Rejects with 404 or 409 when the migration cannot be rolled back. */
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
    // Ids of children, and numbers of requests for a slot, are not used again.
    const { g, n, r } = snapshot.execution;
    if (g !== undefined) execution.g = Math.max(g, execution.g ?? 0);
    if (n !== undefined) execution.n = Math.max(n, execution.n ?? 0);
    if (execution.r !== undefined) delete execution.r;
    if (r !== undefined) execution.r = r;
    offerAgain(actor, turn, source, execution);
    goOver(actor, source, execution, { outputs, items: { ...progress.itemOutputs } });
    // Time limits do not run in the pause that ends here.
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
    // Before its first step the requested start counts.
    snapshot.nextFireAt = nextFireAt === null ? null : Date.parse(nextFireAt);
    // Unless a worker has a task of it, it released its slot when it was paused, and waits for a new one.
    if (state === 'waiting' && isKeyed(record) && r === undefined) execution.w = 1;
    renewEventWaits(actor, turn);
    const came = advance(actor, turn, RECOVERED);
    snapshot.nextFireAt = nextFireAt === null ? null : Date.parse(nextFireAt);
    return came;
  };
}

/** Starts the steps of unclaimed tasks again at the next wake. */
export function takeBack(actor: LiveInstance, turn: Turn): void {
  const isUnclaimed = (task: WorkerTaskRecord) => isOpen(task) && task.claim_epoch === 0;
  if (![...actor.tasks.values()].some(isUnclaimed)) return;
  const { snapshot } = actor.record;
  // Another object, since open steps are indexed by their execution.
  const execution = structuredClone(snapshot.execution);
  offerAgain(actor, turn, actor.plan, execution);
  snapshot.execution = execution;
}

/**
 * Keeps open tasks of this execution that were ever claimed, and withdraws all others. Steps of the execution without
 * such a task are started again.
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
    // It has its grant of the rate limit already.
    execution.o[node.index] = { b, p: 'ready', a, ...(x && { x }), g: 1 } satisfies StepRecord;
    execution.q = [...(execution.q ?? []), node.index];
    // A parked instance would never dispatch the step again.
    if (execution.p !== undefined) delete execution.p;
  }
  for (const task of [...actor.tasks.values()]) {
    if (isOpen(task) && !kept.has(task)) withdrawTask(actor, turn, task, 'cancelled', true);
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

/** @throws EngineError 404, or 409 when its injected blocks do not fit the version */
async function planOf(
  { record }: LiveInstance,
  plans: Sources['plans'],
  sequenceId: string,
): Promise<Plan> {
  await ownSequence(record, plans, sequenceId);
  return planWithOwnBlocks(record, plans, sequenceId);
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
