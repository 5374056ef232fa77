/**
 * Ownership of one instance (spec/05 §1 and §9): the orders of its execution's desk, and the fence
 * that keeps it from being run while it is not this engine's to run. An order is checked, carried out
 * and committed together with the desk's own mutations, as one unit.
 */

import { canonicalSha256 } from '../src/core/continuity/canonical-json.js';
import { COMPLETED, type Execution, emptyExecution } from '../src/core/execution.js';
import { routeOf, shardOf } from '../src/core/ids.js';
import { isJsonObject, type JsonObject, type JsonValue } from '../src/core/json.js';
import type { Plan } from '../src/core/plan.js';
import type { Progress } from '../src/core/progress.js';
import { clashOf, goOnBehindEnd, remapExecution } from '../src/core/remap.js';
import { rankOf } from '../src/core/states.js';
import { isoTime, isoTimeOrNull } from '../src/core/time.js';
import { conflict, type EngineError, notFound } from '../src/errors.js';
import type {
  Expectations,
  Fence,
  OrderedChange,
  OrderedMigration,
  OrderedRestore,
  OrderView,
} from './continuity/orders.js';
import type { InstanceActor } from './instance.js';
import type { InstanceMessage, InstanceRequest } from './instance-messages.js';
import { putAudit } from './instance-progress.js';
import { nodeOf } from './instance-surgery.js';
import { readyHints } from './instance-tasks.js';
import type { Operation, Sources } from './preparation.js';
import type { Turn } from './turn.js';

type Ordered = Extract<InstanceRequest, { kind: 'order' }>;

// ---------------------------------------------------------------- the fence

/** What is answered although the instance is fenced: reads, and the desk, which alone lifts it. */
const PASSES: ReadonlySet<InstanceMessage['kind']> = new Set<InstanceMessage['kind']>([
  'get',
  'tree',
  'look',
  'order',
]);

const REASONS: Readonly<Record<Fence['reason'], string>> = {
  transferring: 'is being handed over',
  moved: 'was handed over',
  imported: 'was imported and is not owned yet',
};

/** Why the message must not reach the instance; undefined when it may. */
export function fenced(actor: InstanceActor, message: InstanceMessage): EngineError | undefined {
  const { id, fence } = actor.record;
  if (fence === null || PASSES.has(message.kind)) return undefined;
  return conflict(`instance ${id} ${REASONS[fence.reason]}`);
}

/** A timer of a fenced instance: once the fence may be over, its desk is asked. */
export function askDesk(actor: InstanceActor, turn: Turn): void {
  const { id, tenantId, fence } = actor.record;
  if (fence?.until == null || Date.parse(fence.until) > actor.env.now()) return;
  const continuityId = actor.record.continuityId ?? id;
  turn.effects.push({
    kind: 'peer',
    shard: shardOf(routeOf(continuityId), actor.env.shards),
    message: ['continuity.ask', continuityId, id, tenantId],
  });
  // It asks again, should the word be lost.
  watchFence(actor, turn, actor.env.now() + ASK_AGAIN_MS);
}

const ASK_AGAIN_MS = 5_000;

function watchFence(actor: InstanceActor, turn: Turn, at: number): void {
  const { id, priority } = actor.record;
  const rank = rankOf(priority);
  actor.timer = { fireAt: at, recover: false };
  turn.put('timer.set', id, { instance_id: id, fire_at: isoTime(at), recover: false, rank });
  turn.effects.push({ kind: 'timer', instance: id, at, rank });
}

// ---------------------------------------------------------------- orders

/** Rejects with 404 or 409 when the instance is not what the desk decided on. */
export async function obey(
  actor: InstanceActor,
  sources: Sources,
  { request, order }: Ordered,
): Promise<Operation> {
  const { expect, changes, mutations } = order;
  await check(actor, sources, expect);
  const prepared = await Promise.all(changes.map((change) => prepare(actor, sources, change)));
  return (turn) => {
    let last: Progress | 'touched' | undefined;
    for (const change of prepared) last = change(turn) ?? last;
    for (const part of mutations) turn.mutations.push(part);
    turn.reply(request, 200, JSON.stringify(viewOf(actor)));
    return last;
  };
}

function viewOf({ record }: InstanceActor): OrderView {
  const { snapshot } = record;
  const { current_step: step } = snapshot.runtime;
  return {
    state: snapshot.state,
    sequenceId: record.sequenceId,
    currentStep: typeof step === 'string' ? step : null,
    nextFireAt: isoTimeOrNull(snapshot.nextFireAt),
  };
}

async function check(
  { record, running }: InstanceActor,
  { rows }: Sources,
  expect: Expectations,
): Promise<void> {
  const { snapshot, id } = record;
  const stale = (what: string) => conflict(`instance ${id} ${what}`);
  if (expect.states !== undefined && !expect.states.includes(snapshot.state)) {
    throw stale(`is ${snapshot.state}, not ${expect.states.join(' or ')}`);
  }
  if (expect.isAtRest === true && running.size > 0) throw stale('has a step at work');
  if (expect.sequenceId !== undefined && expect.sequenceId !== record.sequenceId) {
    throw stale('has gone over to another version');
  }
  if (expect.epoch !== undefined && expect.epoch !== record.ownershipEpoch) {
    throw stale(`is at epoch ${record.ownershipEpoch}, not ${expect.epoch}`);
  }
  if (expect.fence !== undefined && expect.fence !== (record.fence?.reason ?? 'none')) {
    throw stale(record.fence === null ? 'is owned here' : REASONS[record.fence.reason]);
  }
  const { dataSha256, checkpointId } = expect;
  if (dataSha256 !== undefined && dataSha256 !== canonicalSha256(snapshot.data)) {
    throw stale('has another context by now');
  }
  if (checkpointId !== undefined && checkpointId !== (await rows.newestCheckpoint(id))) {
    throw stale('has a newer checkpoint by now');
  }
}

/** What a change does in its turn; everything that can be refused is refused before. */
type Change = (turn: Turn) => Progress | 'touched' | undefined;

async function prepare(
  actor: InstanceActor,
  sources: Sources,
  change: OrderedChange,
): Promise<Change> {
  const { record } = actor;
  switch (change.kind) {
    case 'enrol':
      return (turn) => {
        record.continuityId = change.continuityId;
        record.ownershipEpoch = change.epoch;
        return putOwnership(actor, turn);
      };
    case 'fence':
      return (turn) => {
        record.fence = change.fence;
        const { until } = change.fence;
        if (until !== null) watchFence(actor, turn, Date.parse(until));
        else clearTimer(actor, turn);
        return putOwnership(actor, turn);
      };
    case 'own':
      return (turn) => own(actor, turn, change.epoch);
    case 'capture':
      return (turn) => capture(actor, turn, change.checkpointId);
    case 'resume':
      return (turn) => {
        const progress = actor.advance(turn, { kind: 'resume' });
        actor.continueAfter(turn);
        return progress;
      };
    case 'migrate':
      return migrated(actor, sources, change);
    case 'restore':
      return restored(actor, sources, change);
  }
}

function putOwnership({ record }: InstanceActor, turn: Turn): 'touched' {
  turn.put('instance.ownership', record.id, {
    id: record.id,
    continuity_id: record.continuityId,
    ownership_epoch: record.ownershipEpoch,
    fence: record.fence,
  });
  return 'touched';
}

function clearTimer(actor: InstanceActor, turn: Turn): void {
  if (actor.timer === undefined) return;
  actor.timer = undefined;
  turn.put('timer.clear', actor.record.id, { instance_id: actor.record.id });
}

/** What the fence kept back is due again: its timers, and its tasks for the queues. */
function own(actor: InstanceActor, turn: Turn, epoch: number): Progress {
  const { record } = actor;
  record.fence = null;
  record.ownershipEpoch = epoch;
  putOwnership(actor, turn);
  turn.effects.push(...readyHints(actor));
  return actor.advance(turn, { kind: 'wake' });
}

/** The live state in the form that migrations and capsules read (spec/05 §2). */
function capture({ record, plan, env }: InstanceActor, turn: Turn, id: string): undefined {
  const { snapshot } = record;
  const done = plan.nodes.filter(({ index }) => snapshot.execution.d[index]?.[0] === COMPLETED);
  turn.put('checkpoint.insert', id, {
    id,
    instance_id: record.id,
    checkpoint_data: {
      safe_boundary: snapshot.runtime.current_step ?? null,
      context_snapshot: snapshot.data,
      completed_blocks: done.map((node) => node.id),
    },
    created_at: isoTime(env.now()),
  });
  return undefined;
}

// ---------------------------------------------------------------- other versions

async function migrated(
  actor: InstanceActor,
  { rows, plans }: Sources,
  { sequenceId, data, epoch }: OrderedMigration,
): Promise<Change> {
  const { record } = actor;
  const { deletions } = plans;
  const target = await planOf(actor, plans, sequenceId);
  actor.checkContextSize(data, record.snapshot.config, record.contextAudit);
  const outputs = await rows.outputs(record.id, target.outputRefs);
  const ended = await rows.endedBlocks(record.id);
  const from = record.sequenceId;
  return (turn) => {
    plans.checkUsable(sequenceId, deletions);
    const execution = executionIn(target, actor.plan, record.snapshot.execution, ended);
    goOver(actor, turn, { plan: target, outputs, sequenceId, execution, epoch });
    record.snapshot.data = data;
    actor.touchContext(turn);
    putAudit(actor, turn, [
      { eventType: 'migrated', details: { from_sequence_id: from, to_sequence_id: sequenceId } },
    ]);
    return actor.advance(turn, { kind: 'pause' });
  };
}

async function restored(
  actor: InstanceActor,
  { rows, plans }: Sources,
  { sequenceId, context, execution, state, nextFireAt, epoch }: OrderedRestore,
): Promise<Change> {
  const { record } = actor;
  const { deletions } = plans;
  const source = await planOf(actor, plans, sequenceId);
  const outputs = await rows.outputs(record.id, source.outputRefs);
  const from = record.sequenceId;
  return (turn) => {
    plans.checkUsable(sequenceId, deletions);
    const { snapshot } = record;
    goOver(actor, turn, { plan: source, outputs, sequenceId, execution, epoch });
    snapshot.data = sectionOf(context, 'data');
    snapshot.config = sectionOf(context, 'config');
    snapshot.runtime = sectionOf(context, 'runtime');
    record.contextAudit = Array.isArray(context.audit) ? context.audit : [];
    actor.touchContext(turn);
    putAudit(actor, turn, [
      { eventType: 'migrated', details: { from_sequence_id: from, to_sequence_id: sequenceId } },
    ]);
    const progress = actor.advance(turn, { kind: state === 'waiting' ? 'park' : 'pause' });
    snapshot.state = state;
    snapshot.nextFireAt = nextFireAt === null ? null : Date.parse(nextFireAt);
    return progress;
  };
}

function sectionOf(context: JsonObject, section: string): JsonObject {
  const value = context[section];
  return isJsonObject(value) ? value : {};
}

interface Passage {
  readonly plan: Plan;
  readonly outputs: Map<string, JsonValue>;
  readonly sequenceId: string;
  readonly execution: Execution;
  readonly epoch: number;
}

function goOver(actor: InstanceActor, turn: Turn, passage: Passage): void {
  const { record } = actor;
  record.snapshot.execution = passage.execution;
  record.snapshot.outputs = passage.outputs;
  actor.plan = passage.plan;
  record.sequenceId = passage.sequenceId;
  record.ownershipEpoch = passage.epoch;
  for (const [id, task] of actor.tasks) {
    actor.tasks.set(id, { ...task, node: nodeOf(passage.plan, task.blockId) });
  }
  turn.put('instance.rebind', record.id, { id: record.id, sequence_id: record.sequenceId });
  putOwnership(actor, turn);
}

/** @throws EngineError 404, or 409 when its own blocks do not go with the version */
async function planOf(
  { record }: InstanceActor,
  plans: Sources['plans'],
  sequenceId: string,
): Promise<Plan> {
  const stored = await plans.load(sequenceId);
  if (stored?.tenantId !== record.tenantId) throw notFound(`sequence ${sequenceId}`);
  if (record.injected.length === 0) return stored.plan;
  const compiled = await plans.compile(sequenceId, record.injected);
  if (compiled === undefined) throw notFound(`sequence ${sequenceId}`);
  if (!compiled.ok) throw conflict(compiled.message);
  return compiled.plan;
}

/**
 * Goes on at the same place where the target has it. Otherwise it begins anew, stepping over what has
 * an output (spec/05 §16): the iterations of a loop cannot be told apart then.
 *
 * @throws EngineError 409 when that is within a loop
 */
function executionIn(
  target: Plan,
  plan: Plan,
  execution: Execution,
  ended: ReadonlySet<string>,
): Execution {
  const clash = clashOf(execution, plan, target);
  if (clash === undefined) return goOnBehindEnd(remapExecution(execution, plan, target), target);
  const open = Object.keys(execution.o).map((index) => plan.nodes[Number(index)]);
  if (open.some((node) => node?.kind.repeats !== 'never')) throw conflict(clash);
  const next = emptyExecution();
  for (const node of target.nodes) {
    const isDone = node.type === 'step' && node.loops.length === 0 && ended.has(node.id);
    if (isDone) next.d[node.index] = [COMPLETED, 0, 0];
  }
  return next;
}
