/** Rows of open approval gates, derived from the execution in the unit that changes it. */

import type { Execution, StepRecord } from '../../schema/execution.js';
import { groupsText } from '../../src/base/groups.js';
import { isoTime, isoTimeOrNull } from '../../src/base/time.js';
import { type GatePlan, promptOf } from '../../src/core/blocks/gate.js';
import { Evaluation } from '../../src/core/evaluation.js';
import { iterationOf, pathOf } from '../../src/core/paths.js';
import type { Plan, StepNode } from '../../src/core/plan-nodes.js';
import type { EndedGate } from '../../src/core/progress.js';
import type { Turn } from '../runtime/turn.js';
import { type KnownGate, type LiveInstance, nextId } from './live-instance.js';
import { APPROVAL } from './output-tables.js';

export interface OpenGate {
  readonly node: StepNode;
  readonly record: StepRecord;
  readonly gate: GatePlan;
}

export function openGates(plan: Plan, { o }: Execution): OpenGate[] {
  const open: OpenGate[] = [];
  if (!plan.hasGates) return open;
  for (const key in o) {
    const node = plan.nodes[Number(key)];
    const record = o[key] as StepRecord;
    if (node?.type !== 'step' || node.gate === undefined || record.p !== 'gate') continue;
    open.push({ node, record, gate: node.gate });
  }
  return open.sort((a, b) => (a.record.m ?? 0) - (b.record.m ?? 0) || a.node.index - b.node.index);
}

export function knownGates(plan: Plan, execution: Execution): Map<string, KnownGate> {
  const known = new Map<string, KnownGate>();
  for (const { record, gate } of openGates(plan, execution)) {
    if (record.k) known.set(record.k, { gate, deadline: record.d });
  }
  return known;
}

/** Updates the rows to match the open gates. Call it before the execution is written. */
export function writeGates(actor: LiveInstance, turn: Turn): void {
  const { plan, record: instance } = actor;
  if (!plan.hasGates && actor.gates === undefined) return;
  actor.gates ??= new Map();
  const { gates } = actor;
  const withdrawn = new Set(gates.keys());
  for (const open of openGates(plan, instance.snapshot.execution)) {
    const { record, gate } = open;
    const known = gates.get(record.k ?? '');
    // The gate is new, or a rollback restored it; its former row may be closed.
    const id = known === undefined ? nextId(actor) : record.k!;
    record.k = id;
    withdrawn.delete(id);
    if (known?.gate === gate && known.deadline === record.d) continue;
    gates.set(id, { gate, deadline: record.d });
    const row = rowOf(actor, open);
    if (known === undefined) turn.put(APPROVAL.insert, id, row);
    else turn.put(APPROVAL.update, id, row);
  }
  for (const id of withdrawn) {
    gates.delete(id);
    const closed_at = isoTime(actor.env.now());
    turn.put(APPROVAL.close, id, { id, outcome: 'withdrawn', closed_at });
  }
}

function rowOf(actor: LiveInstance, { node, record, gate }: OpenGate) {
  const { plan, env, record: instance } = actor;
  const { snapshot, id, tenant_id, namespace, sequence_id } = instance;
  const { execution } = snapshot;
  const turn = { now: env.now(), random: env.random, unpoliciedRetry: env.unpoliciedRetry };
  const budget = { stepBudget: 0, outputBytesBudget: 0 };
  const prompt = promptOf(new Evaluation(plan, snapshot, { ...turn, ...budget }), node);
  const { choices, storeAs, timeoutMs, escalationHandler, allowComment, approvers } = gate;
  return {
    id: record.k ?? '',
    instance_id: id,
    tenant_id,
    namespace,
    sequence_id,
    block_id: node.id,
    path: pathOf(plan, execution, node),
    iteration: iterationOf(execution, node),
    prompt: prompt.ok ? prompt.text : '',
    gate: {
      choices,
      store_as: storeAs,
      timeout_seconds: timeoutMs === null ? null : timeoutMs / 1_000,
      escalation_handler: escalationHandler,
      allow_comment: allowComment,
    },
    waiting_since: isoTime((execution.t ?? 0) + (record.m ?? 0)),
    deadline: isoTimeOrNull(record.d ?? null),
    approvers: groupsText([...approvers].sort()),
  };
}

/** Closes gates that were answered or timed out. `writeGates` withdraws all others. */
export function endGates(actor: LiveInstance, turn: Turn, ended: readonly EndedGate[]): void {
  for (const gate of ended) {
    const isAnswer = gate.end === 'answered';
    turn.count(isAnswer ? 'engine_approvals_answered_total' : 'engine_approvals_timed_out_total');
    if (gate.id === '') continue;
    actor.gates?.delete(gate.id);
    const answer =
      gate.end === 'answered'
        ? { value: gate.value, comment: gate.comment, by: gate.by, answer_id: gate.answerId }
        : null;
    const row = { id: gate.id, outcome: gate.end, closed_at: isoTime(gate.at), answer };
    turn.put(APPROVAL.close, gate.id, row);
  }
}
