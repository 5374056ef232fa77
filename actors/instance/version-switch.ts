/**
 * Migration to another version by an order of the execution, and its rollback. The execution has
 * replayed, checked and sealed everything before.
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
import { ownSequence, planWithOwnBlocks, rebind, switchPlan } from './edits.js';
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
  const { target, carried } = await carriedTo(actor, sources, { sequenceId, data });
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
    switchPlan(actor, target, execution, kept);
    record.continuity_id = continuityId;
    switchTo(actor, turn, sequenceId, epoch);
    putData(target, record.snapshot, data);
    if (pauses && record.snapshot.state !== 'failed') {
      // The pause replaces parking: both wait for a caller.
      if (execution.p !== undefined) delete execution.p;
      advance(actor, turn, { kind: 'pause' });
    }
    return advance(actor, turn, RECOVERED);
  };
}

export interface Foreseen {
  readonly obstacles: readonly MigrationFinding[];
  /** Pending clean-ups that the version does not have. */
  readonly lost: readonly MigrationFinding[];
}

export const NOTHING_FORESEEN: Foreseen = { obstacles: [], lost: [] };

export async function foresee(
  actor: LiveInstance,
  sources: Sources,
  to: ToVersion,
): Promise<Foreseen> {
  const { target, carried } = await carriedTo(actor, sources, to);
  if (!isCarried(carried)) return { obstacles: carried, lost: [] };
  const { execution } = actor.record.snapshot;
  return { obstacles: [], lost: lostCleanUps(actor.plan, execution, target, carried.execution) };
}

async function carriedTo(
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

function openTaskOf(
  { tasks }: LiveInstance,
  plan: Plan,
  { node, iteration, attempt }: StepTry,
): WorkerTaskRecord | undefined {
  const blockId = plan.nodes[node]?.id ?? '';
  const task = tasks.lastOf({ blockId, iteration });
  return task?.attempt === attempt && isOpen(task) ? task : undefined;
}

/** Starts steps again whose outcomes would refer to indexes of the old plan. */
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
    const node = source.nodes[source.indexOf.get(block) ?? -1];
    if (node?.isRead === true) outputs.set(block, output);
  }
  return (turn) => {
    plans.checkUsable(sequenceId, deletions);
    const { snapshot } = record;
    const pausedAt = snapshot.execution.z;
    // Ids of children and numbers of slot requests must not be reused.
    const { g, n, r, i } = snapshot.execution;
    if (g !== undefined) execution.g = Math.max(g, execution.g ?? 0);
    if (n !== undefined) execution.n = Math.max(n, execution.n ?? 0);
    if (execution.r !== undefined) delete execution.r;
    if (r !== undefined) execution.r = r;
    if (i !== undefined && execution.t === null) execution.i = i;
    offerAgain(actor, turn, source, execution);
    switchPlan(actor, source, execution, { outputs, items: { ...progress.itemOutputs } });
    // Time limits did not run during the pause.
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
    // Before the first step, the requested start time counts.
    snapshot.nextFireAt = nextFireAt === null ? null : Date.parse(nextFireAt);
    // The pause released the slot, unless a worker held a task: request a new one.
    if (state === 'waiting' && isKeyed(record) && r === undefined) execution.w = 1;
    renewEventWaits(actor, turn);
    const last = advance(actor, turn, RECOVERED);
    snapshot.nextFireAt = nextFireAt === null ? null : Date.parse(nextFireAt);
    return last;
  };
}

/** Withdraws unclaimed tasks; the next wake starts their steps again. */
export function takeBack(actor: LiveInstance, turn: Turn): void {
  const isUnclaimed = (task: WorkerTaskRecord) => isOpen(task) && task.claim_epoch === 0;
  if (![...actor.tasks.values()].some(isUnclaimed)) return;
  const { snapshot } = actor.record;
  // A new object, because open steps are indexed by execution object.
  const execution = structuredClone(snapshot.execution);
  offerAgain(actor, turn, actor.plan, execution);
  snapshot.execution = execution;
}

/** Keeps open tasks that were ever claimed; withdraws the others and starts their steps again. */
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
    // `g`: the step already has its rate-limit grant.
    execution.o[node.index] = { b, p: 'ready', a, ...(x && { x }), g: 1 } satisfies StepRecord;
    execution.q = [...(execution.q ?? []), node.index];
    // A parked instance would not dispatch the step.
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

/** @throws EngineError 404, or 409 when the injected blocks do not fit the version */
async function planOf(
  { record }: LiveInstance,
  plans: Sources['plans'],
  sequenceId: string,
): Promise<Plan> {
  await ownSequence(record, plans, sequenceId);
  return planWithOwnBlocks(record, plans, sequenceId);
}

/** @throws EngineError 409 while a handler of this process executes a step */
export function checkAtRest({ record, running, plan }: LiveInstance): void {
  const [step] = running.values();
  if (step === undefined) return;
  const block_id = plan.nodes[step.node]?.id ?? null;
  const summary = `step ${block_id} of instance ${record.id} is running inside the server`;
  throw conflictFor([migrationFinding('STEP_AT_WORK', summary, { block_id })]);
}

export function putOwnership(record: InstanceRecord, turn: Turn): void {
  const { id, continuity_id, ownership_epoch, fence } = record;
  turn.put(INSTANCE.ownership, id, { id, continuity_id, ownership_epoch, fence });
}
