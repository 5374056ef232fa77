/**
 * Human gates of steps (docs/reference/approvals.md): what the plan holds of one, what an answer has to
 * be, and what becomes of the step when the answer is there or the time for it is over. Who asks, and
 * who may answer, is for others to say.
 */

import { COMMENT_LENGTH_MAX } from '../../../schema/approval.js';
import type { StepBlock } from '../../../schema/blocks.js';
import type { StepRecord } from '../../../schema/execution.js';
import { GATE_SIGNAL } from '../../../schema/instance.js';
import {
  GATE_CHOICES_DEFAULT,
  GATE_PROMPT_LENGTH_MAX,
  type GateChoice,
} from '../../../schema/step-options.js';
import { clip } from '../../base/bounds.js';
import { isJsonObject, type JsonObject, type JsonValue, ownValue } from '../../base/json.js';
import { isoTime } from '../../base/time.js';
import type { BlockCompiler } from '../block-compiler.js';
import type { Evaluation } from '../evaluation.js';
import { GATE_REF } from '../progress.js';
import { renderTemplate, type Template } from '../template.js';
import type { StepNode } from './step-plan.js';

export interface GatePlan {
  readonly prompt: Template;
  readonly choices: readonly GateChoice[];
  readonly storeAs: string;
  /** Null: it waits for ever. */
  readonly timeoutMs: number | null;
  readonly escalationHandler: string | null;
  readonly allowComment: boolean;
}

/** What a person said. */
export interface GateAnswer {
  readonly value: string;
  readonly comment: string | null;
  /** Who it was, as far as anybody knows. */
  readonly by: string | null;
  /** By which whoever answers tells a repetition from another answer. */
  readonly answerId: string | null;
  /** What else came with a signal, for the output. */
  readonly more: JsonObject;
}

export function compileGate(block: StepBlock, compiler: BlockCompiler): GatePlan | undefined {
  // False may be stored, for absent, by a version that did not know the member.
  const gate = block.wait_for_input || undefined;
  if (gate === undefined) return undefined;
  compiler.noteEffect();
  if (gate.escalation_handler != null && gate.timeout == null) {
    compiler.warn(
      'wait_for_input.escalation_handler',
      'escalation_handler has no effect without a timeout',
    );
  }
  return {
    prompt: compiler.template(gate.prompt ?? '', 'wait_for_input.prompt'),
    choices: gate.choices ?? GATE_CHOICES_DEFAULT,
    storeAs: gate.store_as ?? block.id,
    timeoutMs: gate.timeout ?? null,
    escalationHandler: gate.escalation_handler ?? null,
    allowComment: gate.allow_comment ?? false,
  };
}

/** The question as it is put; the reason where it cannot be made. */
export function promptOf(run: Evaluation, node: StepNode, gate: GatePlan) {
  const rendered = renderTemplate(gate.prompt, run.scopeOf(node));
  if (!rendered.ok) return rendered;
  const { value } = rendered;
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  return { ok: true, text: clip(text, GATE_PROMPT_LENGTH_MAX) } as const;
}

/**
 * The answer that the payload of a signal gives; undefined when it is none of the choices.
 * `path` and `iteration` say which of several open gates of the block is meant.
 *
 * @param by the name of the key that sent it; null: nobody knows
 */
export function answerIn(
  gate: GatePlan,
  payload: JsonValue,
  by: string | null,
): GateAnswer | undefined {
  if (!isJsonObject(payload)) return undefined;
  const { value, comment, path: _path, iteration: _at, auto_approved: _auto, ...more } = payload;
  if (typeof value !== 'string' || !isChoice(gate, value)) return undefined;
  const said = gate.allowComment && typeof comment === 'string' && comment !== '' ? comment : null;
  const shown = said?.slice(0, COMMENT_LENGTH_MAX) ?? null;
  return { value, comment: shown, by, answerId: null, more };
}

export function isChoice({ choices }: GatePlan, value: string): boolean {
  return choices.some((choice) => choice.value === value);
}

export function choicesText({ choices }: GatePlan): string {
  return choices.map(({ value }) => value).join(', ');
}

/** Whether the payload means a gate in this iteration, whose path is known by this name. */
export function isMeant(payload: JsonValue, iteration: string, path: string): boolean {
  if (!isJsonObject(payload)) return true;
  const [wanted, place] = [ownValue(payload, 'iteration'), ownValue(payload, 'path')];
  const isHere = wanted == null || String(wanted) === iteration;
  return isHere && (place == null || place === path);
}

// ---------------------------------------------------------------- how a gate ends

/**
 * An answer that is there when the gate is reached: that of a dry run that answers by itself, or one
 * that was sent before. Those that are none of the choices are used up on the way.
 */
export function answerAtHand(
  run: Evaluation,
  node: StepNode,
  gate: GatePlan,
): GateAnswer | undefined {
  const { dry_run: isDry, dry_run_auto_approve: isAuto } = run.snapshot.runtime;
  if (isDry === true && isAuto === true) {
    const { value } = gate.choices[0]!;
    return { value, comment: null, by: null, answerId: null, more: { auto_approved: true } };
  }
  const [iteration, path] = [run.iterationOf(node), run.pathOf(node)];
  for (;;) {
    const signal = run.firstSignal(gateSignalName(node.id), ({ payload }) =>
      isMeant(payload, iteration, path),
    );
    if (signal === undefined) return undefined;
    const answer = answerIn(gate, signal.payload, signal.by ?? null);
    run.takeSignal(signal, node, answer === undefined ? 'refused' : 'taken');
    if (answer !== undefined) return answer;
    noteRefusal(run, node, signal.payload);
  }
}

/** Under which an answer is kept that is sent as a signal. */
export function gateSignalName(blockId: string): string {
  return GATE_SIGNAL.slice('custom:'.length) + blockId;
}

export function noteRefusal(run: Pick<Evaluation, 'audit'>, node: StepNode, payload: JsonValue) {
  const value = isJsonObject(payload) ? (ownValue(payload, 'value') ?? null) : payload;
  const text = clip(typeof value === 'string' ? value : JSON.stringify(value));
  run.audit.push({ eventType: 'gate_refused', blockId: node.id, details: { value: text } });
}

/** The answer is taken: its row, its value in context.data, its entry in the audit. */
export function accept(
  run: Evaluation,
  node: StepNode,
  gate: GatePlan,
  number: number,
  record: StepRecord | undefined,
  { value, comment, by, answerId, more }: GateAnswer,
): void {
  const said = comment === null ? {} : { comment };
  const given = { value, ...said, answered_by: by };
  run.storeNote(node, number, { ...more, ...given, answered_at: isoTime(run.env.now) }, GATE_REF);
  run.mergeAnswer(node, Object.fromEntries([[gate.storeAs, value]]));
  const asked = record?.k ? { approval_id: record.k } : {};
  const isAuto = more.auto_approved === true ? { auto_approved: true } : {};
  const details = { ...asked, path: run.pathOf(node), ...given, ...isAuto };
  run.audit.push({ eventType: 'gate_answered', blockId: node.id, details });
  const id = record?.k ?? '';
  if (more.auto_approved !== true)
    run.endGate({ id, at: run.env.now, end: 'answered', value, comment, by, answerId });
}

/** Nobody has answered in time. What the step gives then; undefined: it fails. */
export function expire(
  run: Evaluation,
  node: StepNode,
  gate: GatePlan,
  record: StepRecord,
): JsonObject | undefined {
  const { escalationHandler: handler, timeoutMs } = gate;
  const end = handler === null ? 'timed_out' : 'escalated';
  const id = record.k ?? '';
  const details = { approval_id: id, path: run.pathOf(node) };
  run.audit.push({ eventType: `gate_${end}`, blockId: node.id, details });
  run.endGate({ id, at: run.env.now, end });
  if (handler === null) return undefined;
  return {
    _escalated: true,
    _escalation_handler: handler,
    _timeout_seconds: (timeoutMs ?? 0) / 1_000,
  };
}
