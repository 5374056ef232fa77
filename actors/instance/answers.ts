/** Answers of people at gates, by the id of the gate or by a signal that names its block. */

import type { ApprovalAnswered } from '../../schema/approval.js';
import type { Execution, StepRecord } from '../../schema/execution.js';
import { GATE_SIGNAL } from '../../schema/instance.js';
import { conflict, invalid } from '../../src/base/errors.js';
import { isoTime } from '../../src/base/time.js';
import {
  choicesText,
  type GateAnswer,
  isAddressed,
  isChoice,
  parseAnswer,
  refusalOf,
} from '../../src/core/blocks/gate.js';
import { iterationOf, pathOf } from '../../src/core/paths.js';
import type { StepNode } from '../../src/core/plan-nodes.js';
import type { Progress, TakenSignal } from '../../src/core/progress.js';
import type { Turn } from '../runtime/turn.js';
import { advance, checkContextSize } from './advance.js';
import type { Signal } from './change-many.js';
import { type OpenGate, openGates } from './gate-rows.js';
import type { Handler, LiveInstance } from './live-instance.js';
import { putAudit, putTaken } from './progress.js';

/** By the id of the gate. @throws EngineError 400, 409 or 413, before anything is changed */
export const answer: Handler<'answer'> = (actor, turn, { request, approval, given }) => {
  const { plan, record } = actor;
  const open = openGates(plan, record.snapshot.execution).find(
    ({ record: { k } }) => k === approval,
  );
  if (open === undefined) throw conflict(`approval ${approval} is not open any more`);
  if (!isChoice(open.gate, given.value)) {
    throw invalid(`value must be one of ${choicesText(open.gate)}`);
  }
  if (given.comment !== null && !open.gate.allowComment) {
    throw invalid('comment must not be there: this approval takes none');
  }
  const progress = take(actor, turn, open, { ...given, more: {} });
  const reply: ApprovalAnswered = {
    id: approval,
    instance_id: record.id,
    block_id: open.node.id,
    value: given.value,
    comment: given.comment,
    answered_by: given.by,
    answered_at: isoTime(progress.gates?.find(({ id }) => id === approval)?.at ?? actor.env.now()),
    repeated: false,
  };
  turn.reply(request, 200, JSON.stringify(reply));
  return progress;
};

/**
 * By a stored signal that names the block. A signal that arrives before its gate stays kept; an invalid value and a
 * repetition are used up.
 *
 * @returns undefined when no gate takes it
 * @throws EngineError 413, before anything is changed
 */
export function answerBySignal(
  actor: LiveInstance,
  turn: Turn,
  { signalType, payload, by }: Signal,
): Progress | undefined {
  const { plan, record } = actor;
  if (!plan.hasGates || !signalType.startsWith(GATE_SIGNAL)) return undefined;
  const node = plan.nodes[plan.indexOf.get(signalType.slice(GATE_SIGNAL.length)) ?? -1];
  if (node?.type !== 'step' || node.gate === undefined) return undefined;
  const { execution } = record.snapshot;
  const open = openGates(plan, execution).find(
    (one) =>
      one.node.id === node.id &&
      isAddressed(payload, iterationOf(execution, one.node), pathOf(plan, execution, one.node)),
  );
  if (open === undefined) {
    if (isAnswered(execution, node)) useUp(actor, turn, node, 'refused');
    return undefined;
  }
  const given = parseAnswer(open.gate, payload, by ?? null);
  useUp(actor, turn, node, given === undefined ? 'refused' : 'taken');
  if (given !== undefined) return take(actor, turn, open, given);
  putAudit(actor, turn, [refusalOf(node, payload)]);
  return undefined;
}

/** The signal that was stored last is no longer kept. */
function useUp(
  actor: LiveInstance,
  turn: Turn,
  node: StepNode,
  status: TakenSignal['status'],
): void {
  const { snapshot } = actor.record;
  const last = snapshot.signals?.at(-1);
  if (last === undefined) return;
  snapshot.signals = snapshot.signals!.slice(0, -1);
  putTaken(actor, turn, [{ seq: last.seq, blockId: node.id, status }]);
}

function take(
  actor: LiveInstance,
  turn: Turn,
  { node, record, gate }: OpenGate,
  given: GateAnswer,
): Progress {
  const { snapshot, context_audit } = actor.record;
  const data = { ...snapshot.data, ...Object.fromEntries([[gate.storeAs, given.value]]) };
  checkContextSize(actor, data, snapshot.config, context_audit);
  const iteration = iterationOf(snapshot.execution, node);
  const step = { node: node.index, iteration, attempt: record.a };
  return advance(actor, turn, { kind: 'gate.answered', ...step, answer: given });
}

/** A gate that has its answer, or has ended, takes no other one. */
function isAnswered(execution: Execution, node: StepNode): boolean {
  const record = execution.o[node.index] as StepRecord | undefined;
  const hasAnswer = record?.k !== undefined && record.p !== 'gate';
  return hasAnswer || (node.loops.length === 0 && execution.d[node.index] !== undefined);
}
