/** What people answer at the gates of one instance: by the id of the gate, or by a signal that names its block. */

import type { ApprovalAnswered } from '../../schema/approval.js';
import { GATE_SIGNAL } from '../../schema/instance.js';
import {
  answerIn,
  choicesText,
  type GateAnswer,
  isChoice,
  isMeant,
  noteRefusal,
} from '../../src/core/blocks/gate.js';
import type { Execution, StepRecord } from '../../src/core/execution.js';
import type { JsonValue } from '../../src/core/json.js';
import { iterationOf, pathOf } from '../../src/core/paths.js';
import type { StepNode } from '../../src/core/plan-nodes.js';
import type { AuditEvent, Progress } from '../../src/core/progress.js';
import { isoTime } from '../../src/core/time.js';
import { conflict, invalid } from '../../src/errors.js';
import type { Turn } from '../runtime/turn.js';
import { advance, checkContextSize } from './advance.js';
import { type OpenGate, openGates } from './gate-rows.js';
import type { LiveInstance } from './live-instance.js';
import { checkSize } from './memory.js';
import type { MessageOf } from './messages.js';
import { putAudit } from './progress.js';

/** By the id of the gate. @throws EngineError 400, 409 or 413, before anything is changed */
export function answer(
  actor: LiveInstance,
  turn: Turn,
  { request, approval, given }: MessageOf<'answer'>,
): Progress {
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
}

/** As many as anybody sends ahead of the gates of one instance. */
const KEPT_MAX = 100;
/** They are written with every commit until they are taken. */
const KEPT_BYTES_MAX = 16 * 1024;

/**
 * By a signal that names the block. One that comes before its gate is kept for it; one whose value is
 * none of the choices is used up.
 *
 * @returns undefined when no gate goes on by it
 * @throws EngineError 400 or 413, before anything is changed
 */
export function answerBySignal(
  actor: LiveInstance,
  turn: Turn,
  signalType: string,
  payload: JsonValue,
): Progress | undefined {
  const { plan, record, env } = actor;
  if (!plan.hasGates || !signalType.startsWith(GATE_SIGNAL)) return undefined;
  const node = plan.nodes[plan.indexOf.get(signalType.slice(GATE_SIGNAL.length)) ?? -1];
  if (node?.type !== 'step' || node.gate === undefined) return undefined;
  const { execution } = record.snapshot;
  const open = openGates(plan, execution).find(
    (one) =>
      one.node.id === node.id &&
      isMeant(payload, iterationOf(execution, one.node), pathOf(plan, execution, one.node)),
  );
  if (open === undefined) {
    keep(execution, node, payload);
    return undefined;
  }
  if (env.maxOutputBytes > 0) checkSize('the answer is', payload, env.maxOutputBytes);
  const given = answerIn(open.gate, payload);
  if (given !== undefined) return take(actor, turn, open, given);
  const audit: AuditEvent[] = [];
  noteRefusal({ audit }, node, payload);
  putAudit(actor, turn, audit);
  return undefined;
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

/** A gate that has its answer, or is behind, takes no other: that is a repetition. */
function keep(execution: Execution, node: StepNode, payload: JsonValue): void {
  const record = execution.o[node.index] as StepRecord | undefined;
  const hasAnswer = record?.k !== undefined && record.p !== 'gate';
  if (hasAnswer || (node.loops.length === 0 && execution.d[node.index] !== undefined)) return;
  checkSize('an answer that is sent ahead is', payload, KEPT_BYTES_MAX);
  const kept = execution.g ?? {};
  const count = Object.values(kept).reduce((sum, { length }) => sum + length, 0);
  if (count >= KEPT_MAX) {
    throw invalid(`at most ${KEPT_MAX} answers are kept for gates that are still to come`);
  }
  const own = Object.hasOwn(kept, node.id) ? kept[node.id]! : [];
  execution.g = { ...kept, [node.id]: [...own, payload] };
}
