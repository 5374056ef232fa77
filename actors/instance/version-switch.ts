/**
 * The switch of an instance to another version of its sequence by order of its execution, and the way
 * back. All was replayed, judged and sealed before; what is left to do here is to change the instance
 * and to keep every row it has consistent with that.
 */

import { strandedBy } from '../../src/core/continuity/stranded.js';
import { COMPLETED, type Execution } from '../../src/core/execution.js';
import { isJsonObject, type JsonObject } from '../../src/core/json.js';
import type { Plan } from '../../src/core/plan.js';
import type { Progress } from '../../src/core/progress.js';
import { clashOf, goOnBehindEnd, remapExecution } from '../../src/core/remap.js';
import { conflict, notFound } from '../../src/errors.js';
import type { Turn } from '../runtime/turn.js';
import type { Action, Sources } from './action.js';
import { advance, checkContextSize, touchContext } from './advance.js';
import { goOver, nodeOf, rebind } from './edits.js';
import type { LiveInstance } from './live-instance.js';
import type { OrderedMigration, OrderedRestore } from './orders.js';
import { putTransition } from './progress.js';
import { type InstanceRecord, isKeyed } from './record.js';

/** Rejects with 404 or 409 when the instance cannot go over to that version. */
export async function migrated(
  actor: LiveInstance,
  { rows, plans }: Sources,
  { sequenceId, data, epoch }: OrderedMigration,
): Promise<Action> {
  const { record } = actor;
  const { deletions } = plans;
  checkAtRest(actor);
  const target = await planOf(actor, plans, sequenceId);
  checkContextSize(actor, data, record.snapshot.config, record.context_audit);
  const outputs = await rows.outputs(record.id, target.outputRefs);
  const ended = await rows.endedBlocks(record.id);
  const execution = executionIn(target, actor, ended);
  return (turn) => {
    plans.checkUsable(sequenceId, deletions);
    goOver(actor, target, outputs, execution);
    switchTo(actor, turn, sequenceId, epoch);
    record.snapshot.data = data;
    touchContext(actor, turn);
    advance(actor, turn, { kind: 'pause' });
    return goOn(actor, turn);
  };
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
    // The ids of children that were made since are taken.
    const { g } = snapshot.execution;
    if (g !== undefined) execution.g = Math.max(g, execution.g ?? 0);
    goOver(actor, source, outputs, execution);
    switchTo(actor, turn, sequenceId, epoch);
    snapshot.snapshots = new Map(progress.items.map(([key, items]) => [key, [...items]]));
    actor.kept.count(snapshot);
    snapshot.data = sectionOf(context, 'data');
    snapshot.config = sectionOf(context, 'config');
    snapshot.runtime = sectionOf(context, 'runtime');
    record.context_audit = Array.isArray(context.audit) ? context.audit : [];
    touchContext(actor, turn);
    if (snapshot.state !== state) putTransition(actor, turn, state);
    snapshot.state = state;
    // It gave its slot back when it was paused, and waits for one where it stands.
    if (state === 'waiting' && isKeyed(record)) execution.w = 1;
    const came = goOn(actor, turn);
    snapshot.nextFireAt = nextFireAt === null ? null : Date.parse(nextFireAt);
    return came;
  };
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
  const stored = await plans.load(sequenceId);
  if (stored?.tenantId !== record.tenant_id) throw notFound(`sequence ${sequenceId}`);
  const compiled = await plans.compile(sequenceId, record.injected);
  if (compiled === undefined) throw notFound(`sequence ${sequenceId}`);
  if (!compiled.ok) throw conflict(compiled.message);
  return compiled.plan;
}

/** @throws EngineError 409 while a handler of this process is at one of its steps */
function checkAtRest({ record, running }: LiveInstance): void {
  if (running.size > 0) throw conflict(`instance ${record.id} has a step at work`);
}

/**
 * Goes on at the same place where the target has it. Otherwise it begins anew, stepping over what is
 * done and what has an output.
 *
 * @throws EngineError 409 when a block is open whose work would be lost: within a loop the iterations
 *   cannot be told apart then, and a worker's task would come back to nothing
 */
function executionIn(target: Plan, actor: LiveInstance, ended: ReadonlySet<string>): Execution {
  const { plan } = actor;
  const { execution } = actor.record.snapshot;
  const clash = clashOf(execution, plan, target);
  if (clash === undefined) return goOnBehindEnd(remapExecution(execution, plan, target), target);
  if (strandedBy(execution, plan, target) !== undefined) throw conflict(clash);
  const { o: _open, q: _queue, k: _kept, ...rest } = execution;
  const next = remapExecution({ ...rest, t: null, o: {} }, plan, target);
  for (const node of target.nodes) {
    const isDone = node.type === 'step' && node.loops.length === 0 && ended.has(node.id);
    if (isDone) next.d[node.index] ??= [COMPLETED, 0, 0];
  }
  return next;
}

export function putOwnership(record: InstanceRecord, turn: Turn): void {
  const { id, continuity_id, ownership_epoch, fence } = record;
  turn.put('instance.ownership', id, { id, continuity_id, ownership_epoch, fence });
}
