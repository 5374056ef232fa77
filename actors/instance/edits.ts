/**
 * Injected blocks, resuming from a block, and migration of one instance. A preparation checks the
 * request and reads rows; its action makes all changes at once.
 */

import {
  type ResumeFrom as Amendments,
  type BlocksInjected,
  RESUMABLE_STATES,
} from '../../schema/edits.js';
import type { Execution, StepRecord } from '../../schema/execution.js';
import { isEnded } from '../../schema/states.js';
import { conflict, EngineError, invalid, notFound } from '../../src/base/errors.js';
import { isJsonObject, type JsonObject, type JsonValue } from '../../src/base/json.js';
import { LIMITS } from '../../src/base/limits.js';
import { putData } from '../../src/core/loop-items.js';
import { conflictFor } from '../../src/core/migration-findings.js';
import { nodeAt } from '../../src/core/paths.js';
import type { Plan, PlanNode } from '../../src/core/plan.js';
import type { Progress } from '../../src/core/progress.js';
import { clashOf, continueAfterEnd, passedRoots, remapExecution } from '../../src/core/remap.js';
import { blocksFrom } from '../../src/core/runs-again.js';
import { rowOf } from '../../src/db/lines.js';
import { judgeDefinition } from '../../src/http/definition.js';
import type { Plans, StoredSequence } from '../catalog/plans.js';
import type { Call } from '../runtime/operation.js';
import type { Turn } from '../runtime/turn.js';
import { advance, checkContextSize } from './advance.js';
import type { Signal } from './change-many.js';
import { lostCleanUps } from './core/owed-clean-ups.js';
import { type KeptOutputs, keptOutputs, type Place } from './kept-outputs.js';
import type { LiveInstance, Preparation } from './live-instance.js';
import { checkBytes } from './memory.js';
import { OUTPUT } from './output-tables.js';
import { putAudit, putHistory, putTask, unpackOutputs } from './progress.js';
import type { InstanceRecord } from './record.js';
import { checkRoom, deliverSignal, followTrace, storeSignal } from './signals.js';
import { DEAD_LETTER, INJECTION, INSTANCE } from './tables.js';
import { TASK } from './task-tables.js';
import { isOpen, type WorkerTaskRecord } from './worker-task.js';

/** The error for a request that the current state does not allow. */
export function invalidTransition(what: string): EngineError {
  return new EngineError('ENG_INVALID_TRANSITION', `invalid argument: ${what}`);
}

/** They run after the blocks of the sequence and after the current block. */
export const injectBlocks: Preparation<'injectBlocks'> = async (
  actor,
  { rows, plans },
  { request, body },
) => {
  const { blocks, position } = body;
  const { record, plan } = actor;
  const { injected } = record;
  const stored = plan.roots.length - injected.length;
  const first = Math.max(0, passedRoots(record.snapshot.execution, plan) - stored);
  const at = Math.min(Math.max(position ?? injected.length, first), injected.length);
  const all = injected.toSpliced(at, 0, ...blocks);
  const bytes = Buffer.byteLength(JSON.stringify(all));
  checkBytes('injected blocks are', bytes, LIMITS.injectedBytesMax);
  const judged = judgeDefinition('instances.injectBlocks', body, {
    known: new Set(plan.nodes.slice(0, plan.roots[stored + at]).map(({ id }) => id)),
    callMsMax: actor.env.stepTimeoutMaxMs,
  });
  if (judged.errors.length > 0) throw judged.refusal();
  const compiled = await plans.compile(record.sequence_id, all);
  if (compiled === undefined) throw notFound(`instance ${record.id}`);
  if (!compiled.ok) throw invalid(compiled.message);
  const place = placeIn(compiled.plan, actor);
  const kept = await keptOutputs(rows, compiled.plan, place);
  return (turn) => {
    switchPlan(actor, compiled.plan, place.execution, kept);
    record.injected = all;
    turn.put(INJECTION.set, record.id, { instance_id: record.id, blocks: all });
    const ids = blocks.map((block) => block.id);
    const details = { block_ids: ids, position: at };
    putAudit(actor, turn, [{ eventType: 'blocks_injected', details }]);
    const { warnings } = judged;
    const reply: BlocksInjected = {
      injected_block_ids: ids,
      position: at,
      total_injected: all.length,
      ...(warnings.length === 0 ? {} : { warnings: [...warnings] }),
    };
    turn.reply(request, 200, JSON.stringify(reply));
    return 'touched';
  };
};

/** Switches to another plan, in which steps that run in this process have the same indexes. */
export function switchPlan(
  actor: LiveInstance,
  plan: Plan,
  execution: Execution,
  kept: KeptOutputs,
): void {
  Object.assign(actor.record.snapshot, kept, { execution });
  actor.plan = plan;
  for (const task of actor.tasks.values()) task.node = nodeOfTask(actor, task);
}

export function placeIn(plan: Plan, actor: LiveInstance): Place {
  const { snapshot } = actor.record;
  const remapped = remapExecution(snapshot.execution, actor.plan, plan);
  const execution = isEnded(snapshot.state) ? remapped : continueAfterEnd(remapped, plan);
  return { ...snapshot, execution, snapshots: [...snapshot.snapshots.keys()] };
}

export function rebind(actor: LiveInstance, turn: Turn, sequenceId: string) {
  const { record } = actor;
  const change = { from_sequence_id: record.sequence_id, to_sequence_id: sequenceId };
  record.sequence_id = sequenceId;
  turn.put(INSTANCE.rebind, record.id, { id: record.id, sequence_id: sequenceId });
  putAudit(actor, turn, [{ eventType: 'migrated', details: change }]);
  if (record.snapshot.state === 'failed') {
    const row = { instance_id: record.id, sequence_id: sequenceId };
    turn.put(DEAD_LETTER.rebind, record.id, row);
  }
  return change;
}

/** The node of the task, or -1 when no such iteration is open, as for ended tasks. */
export function nodeOfTask(
  { plan, record }: Pick<LiveInstance, 'plan' | 'record'>,
  { block_id, iteration }: Pick<WorkerTaskRecord, 'block_id' | 'iteration'>,
): number {
  return nodeAt(plan, record.snapshot.execution, block_id, iteration)?.index ?? -1;
}

/** The only way out of `completed` and `cancelled`. */
export const resumeFrom: Preparation<'resumeFrom'> = async (actor, { rows, plans }, message) => {
  const { record, plan } = actor;
  const { snapshot } = record;
  if (!RESUMABLE_STATES.includes(snapshot.state)) {
    const which = `only a ${RESUMABLE_STATES.join(', ')} instance`;
    throw invalidTransition(`${which} can be resumed from a block, this one is ${snapshot.state}`);
  }
  const root = topLevelBlock(plan, message.target.slice(record.id.length + 1));
  const data = amendedData(snapshot.data, message.body);
  checkContextSize(actor, data, snapshot.config, record.context_audit);
  checkRoom(actor, signalsOf(message));
  const blocks = blocksFrom(plan, root.index);
  const { rows: count } = await rows.outputTotals(record.id, blocks);
  return (turn) => {
    plans.checkUsable(record.sequence_id);
    followTrace(actor, turn, message.traceparent);
    if (count > 0) {
      turn.put(OUTPUT.dropBlocks, record.id, { instance_id: record.id, block_ids: blocks });
    }
    unpackOutputs(actor, turn, blocks);
    putData(plan, snapshot, data);
    const rewound = advance(actor, turn, { kind: 'rewind', node: root.index });
    forgetCheckpoints(actor, turn, new Set(blocks));
    const progress = takeSignals(actor, turn, message) ?? rewound;
    const body = {
      id: record.id,
      state: 'scheduled',
      resumed_from: root.id,
      outputs_deleted: count,
      signals_enqueued: message.body.signals?.length ?? 0,
    };
    turn.reply(message.request, 200, JSON.stringify(body));
    return progress;
  };
};

/** @throws EngineError 400 unless the block is a top-level block, of the sequence or injected */
export function topLevelBlock(plan: Plan, blockId: string): PlanNode {
  const node = plan.nodes[plan.indexOf.get(blockId) ?? -1];
  if (node === undefined || node.parent >= 0) {
    throw invalid(`block ${blockId} is not a top-level block of the instance`);
  }
  return node;
}

/** Merges the request's context and `update_context` signals. @throws EngineError 400 */
export function amendedData(data: JsonObject, amendments: Amendments): JsonObject {
  const context = amendments.context as JsonObject | null | undefined;
  const signals = amendments.signals ?? [];
  const end = signals.findIndex(({ signal_type }) => signal_type === 'cancel');
  if (end >= 0 && end < signals.length - 1) {
    throw invalid(
      `signals[${end + 1}] must not follow signals[${end}], which cancels the instance`,
    );
  }
  const merges = signals
    .filter(({ signal_type }) => signal_type === 'update_context')
    .map(({ payload }) => payload);
  const isGiven = (value: unknown): value is JsonObject =>
    value !== undefined && isJsonObject(value as JsonValue);
  const given = [context, ...merges].filter(isGiven);
  const isReplaced = amendments.context_mode === 'replace' && context != null;
  if (given.length === 0) return data;
  const values = isReplaced ? given : [data, ...given];
  // `fromEntries`, because the caller chose the names: `__proto__` must be a plain member.
  return Object.fromEntries(values.flatMap((members) => Object.entries(members)));
}

/** Stores and delivers the signals in order, without the updates that `amendedData` has merged. */
export function takeSignals(
  actor: LiveInstance,
  turn: Turn,
  call: Call<Amendments>,
): Progress | undefined {
  let last: Progress | undefined;
  for (const signal of signalsOf(call)) {
    storeSignal(actor, turn, signal);
    const isMerged = signal.signalType === 'update_context';
    const outcome = isMerged ? 'touched' : deliverSignal(actor, turn, signal);
    if (outcome !== 'touched') last = outcome;
  }
  return last;
}

export function signalsOf({ body, traceparent, by }: Call<Amendments>): Signal[] {
  return (body.signals ?? []).map(({ signal_type: signalType, payload }) => {
    return { signalType, payload: (payload ?? null) as JsonValue, traceparent, by };
  });
}

/** Worker checkpoints of earlier runs must not reach the next run. */
function forgetCheckpoints(actor: LiveInstance, turn: Turn, blocks: ReadonlySet<string>): void {
  for (const task of actor.tasks.values()) {
    if (task.checkpoint_seq === 0 || !blocks.has(task.block_id)) continue;
    task.checkpoint_seq = 0;
    task.resume_checkpoint = null;
    if (isOpen(task)) putTask(turn, TASK.claim, task, rowOf(TASK.claim, task));
    else putHistory(turn, task);
    putTask(turn, TASK.checkpoint, task, { id: task.id, resume_checkpoint: null });
  }
}

/** Open steps continue in the target version, under the same ids and at the same position. */
export const migrate: Preparation<'migrate'> = async (
  actor,
  { rows, plans },
  { request, body: { target_sequence_id: sequenceId } },
) => {
  const { record, plan } = actor;
  const { snapshot } = record;
  if (record.continuity_id !== null) {
    throw conflict(
      `instance ${record.id} belongs to an execution: plan a migration of the execution`,
    );
  }
  checkAtRest(actor);
  const { deletions } = plans;
  const [present, target] = await Promise.all([
    plans.load(record.sequence_id),
    ownSequence(record, plans, sequenceId),
  ]);
  if (target.namespace !== present?.namespace || target.name !== present.name) {
    throw invalid(`sequence ${sequenceId} has another namespace or name than that of the instance`);
  }
  const to = await planWithOwnBlocks(record, plans, target.id);
  const clash = clashOf(snapshot.execution, plan, to);
  if (clash !== undefined) throw conflict(clash);
  const place = placeIn(to, actor);
  const lost = lostCleanUps(plan, snapshot.execution, to, place.execution);
  if (lost.length > 0) throw conflictFor(lost);
  if (await rows.hasDoubtfulEffect(record.id)) {
    throw conflict(`the outcome of an effect of instance ${record.id} is unresolved`);
  }
  const kept = await keptOutputs(rows, to, place);
  return (turn) => {
    plans.checkUsable(target.id, deletions);
    switchPlan(actor, to, place.execution, kept);
    const change = rebind(actor, turn, target.id);
    const body = { migrated: true, instance_id: record.id, ...change };
    turn.reply(request, 200, JSON.stringify(body));
    return 'touched';
  };
};

/** @throws EngineError 404 when the sequence is unknown, or belongs to another tenant */
export async function ownSequence(
  { tenant_id }: InstanceRecord,
  plans: Plans,
  sequenceId: string,
): Promise<StoredSequence> {
  const stored = await plans.seek(sequenceId, tenant_id);
  if (stored?.tenantId !== tenant_id) throw notFound(`sequence ${sequenceId}`);
  return stored;
}

/** @throws EngineError 404, or 409 when the injected blocks do not fit the version */
export async function planWithOwnBlocks(
  { injected }: InstanceRecord,
  plans: Plans,
  sequenceId: string,
): Promise<Plan> {
  const compiled = await plans.compile(sequenceId, injected);
  if (compiled === undefined) throw notFound(`sequence ${sequenceId}`);
  if (!compiled.ok) throw conflict(compiled.message);
  return compiled.plan;
}

/** Outcomes refer to steps by index, so none may be in flight. @throws EngineError 400 or 409 */
function checkAtRest({ record, plan }: LiveInstance): void {
  const { state, execution } = record.snapshot;
  if (isEnded(state)) throw invalidTransition(`instance ${record.id} is ${state}`);
  if (state === 'running') throw conflict(`instance ${record.id} is running`);
  for (const [index, { p }] of Object.entries(execution.o) as [string, StepRecord][]) {
    const node = plan.nodes[Number(index)];
    if (node?.type === 'step' && (p === 'run' || p === 'asking')) {
      throw conflict(`block ${node.id} of instance ${record.id} is running`);
    }
  }
}
