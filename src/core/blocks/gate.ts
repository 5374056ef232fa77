/**
 * Human gates of steps (docs/reference/approvals.md): compiles gates, validates answers, and applies an answer or a
 * time-out to the step. The caller checks who may answer.
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
import { clip, displayText } from '../../base/bounds.js';
import { type EngineError, forbidden } from '../../base/errors.js';
import { isJsonObject, type JsonObject, type JsonValue, ownValue } from '../../base/json.js';
import { isoTime } from '../../base/time.js';
import type { BlockCompiler } from '../block-compiler.js';
import type { Evaluation } from '../evaluation.js';
import type { AuditEvent } from '../progress.js';
import { renderTemplate } from '../template.js';
import type { MaybeOpen } from './step-outcome.js';
import type { StepNode } from './step-plan.js';

export type GatePlan = Readonly<NonNullable<ReturnType<typeof compileGate>>>;

export interface GateAnswer {
  readonly value: string;
  readonly comment: string | null;
  /** The name of the API key or the recipient; null: unknown. */
  readonly by: string | null;
  /** Distinguishes a repeated request from a second answer. */
  readonly answerId: string | null;
  /** Further members of the payload, which become part of the output. */
  readonly more: JsonObject;
}

export function compileGate(block: StepBlock, compiler: BlockCompiler) {
  // Definitions of older versions may have stored false for an absent gate.
  const gate = block.wait_for_input || undefined;
  if (gate === undefined) return undefined;
  if (gate.escalation_handler != null && gate.timeout == null) {
    const message = 'escalation_handler has no effect without a timeout';
    compiler.warn('wait_for_input.escalation_handler', message);
  }
  const choices: readonly GateChoice[] = gate.choices ?? GATE_CHOICES_DEFAULT;
  return {
    prompt: compiler.template(gate.prompt ?? '', 'wait_for_input.prompt'),
    choices,
    storeAs: gate.store_as ?? block.id,
    /** Null: the gate never times out. */
    timeoutMs: gate.timeout ?? null,
    escalationHandler: gate.escalation_handler ?? null,
    allowComment: gate.allow_comment ?? false,
    /** Empty: every key that may answer. */
    approvers: gate.approvers ?? [],
  };
}

export function notApprover(approvers: readonly string[]): EngineError {
  return forbidden(`this approval takes a key of the groups ${approvers.join(', ')}, or operator`);
}

/** @param groups of the caller; undefined: the caller may answer all approvals */
export function mayAnswer(
  { approvers }: { readonly approvers: readonly string[] },
  groups: readonly string[] | undefined,
): boolean {
  return (
    groups === undefined || approvers.length === 0 || approvers.some((one) => groups.includes(one))
  );
}

export function promptOf(run: Evaluation, node: StepNode) {
  const rendered = renderTemplate(node.gate!.prompt, run.scopeOf(node));
  if (!rendered.ok) return rendered;
  return { ok: true, text: clip(displayText(rendered.value), GATE_PROMPT_LENGTH_MAX) } as const;
}

/** The answer in a signal payload; undefined unless its value is a choice. @param by the name of the API key */
export function parseAnswer(gate: GatePlan, payload: JsonValue, by: string | null) {
  if (!isJsonObject(payload)) return undefined;
  const { value, comment, path: _path, iteration: _at, auto_approved: _auto, ...more } = payload;
  if (typeof value !== 'string' || !isChoice(gate, value)) return undefined;
  const text = gate.allowComment && typeof comment === 'string' && comment !== '' ? comment : null;
  const shown = text?.slice(0, COMMENT_LENGTH_MAX) ?? null;
  return { value, comment: shown, by, answerId: null, more };
}

export function isChoice({ choices }: GatePlan, value: string): boolean {
  return choices.some((choice) => choice.value === value);
}

export const choicesText = ({ choices }: GatePlan) => choices.map(({ value }) => value).join(', ');

/** Whether the payload addresses the gate in this iteration and at this path. */
export function isAddressed(payload: JsonValue, iteration: string, path: string): boolean {
  if (!isJsonObject(payload)) return true;
  const [wanted, place] = [ownValue(payload, 'iteration'), ownValue(payload, 'path')];
  const isHere = wanted == null || String(wanted) === iteration;
  return isHere && (place == null || place === path);
}

/** An answer that is already available: in a dry run, or by an earlier signal. Unknown choices, and those of others than the approvers, are audited as refused. */
export function availableAnswer(run: Evaluation, node: StepNode): GateAnswer | undefined {
  const gate = node.gate!;
  const { dry_run: isDry, dry_run_auto_approve: isAuto } = run.snapshot.runtime;
  if (isDry === true && isAuto === true) {
    const { value } = gate.choices[0]!;
    return { value, comment: null, by: null, answerId: null, more: { auto_approved: true } };
  }
  const [iteration, path] = [run.iterationOf(node), run.pathOf(node)];
  for (;;) {
    const name = GATE_SIGNAL.slice('custom:'.length) + node.id;
    const signal = run.firstSignal(name, (kept) => isAddressed(kept.payload, iteration, path));
    if (signal === undefined) return undefined;
    const answer = mayAnswer(gate, signal.groups)
      ? parseAnswer(gate, signal.payload, signal.by ?? null)
      : undefined;
    run.takeSignal(signal, node, answer === undefined ? 'refused' : 'taken');
    if (answer !== undefined) return answer;
    run.progress.audit.push(refusalOf(node, signal.payload));
  }
}

export function refusalOf(node: StepNode, payload: JsonValue): AuditEvent {
  const value = isJsonObject(payload) ? (ownValue(payload, 'value') ?? null) : payload;
  const details = { value: clip(displayText(value)) };
  return { eventType: 'gate_refused', blockId: node.id, details };
}

/** Applies an answer: stores its row, merges its value into context.data and audits it. */
export function accept(
  run: Evaluation,
  node: StepNode,
  record: MaybeOpen,
  { value, comment, by, answerId, more }: GateAnswer,
): void {
  const remark = comment === null ? {} : { comment };
  const answer = { value, ...remark, answered_by: by };
  run.storeAnswer(node, record?.a ?? 0, { ...more, ...answer, answered_at: isoTime(run.env.now) });
  run.mergeAnswer(node, Object.fromEntries([[node.gate!.storeAs, value]]));
  run.noteReply(node);
  const approval = record?.k ? { approval_id: record.k } : {};
  const isAuto = more.auto_approved === true ? { auto_approved: true } : {};
  const details = { ...approval, path: run.pathOf(node), ...answer, ...isAuto };
  run.audit('gate_answered', node, details);
  const id = record?.k ?? '';
  if (more.auto_approved !== true)
    run.endGate({ id, at: run.env.now, end: 'answered', value, comment, by, answerId });
}

/** The gate has timed out. Returns the output of the escalation; undefined: the step fails. */
export function expire(run: Evaluation, node: StepNode, record: StepRecord) {
  const { escalationHandler: handler, timeoutMs } = node.gate!;
  const end = handler === null ? 'timed_out' : 'escalated';
  const id = record.k ?? '';
  const details = { approval_id: id, path: run.pathOf(node) };
  run.audit(`gate_${end}`, node, details);
  run.endGate({ id, at: run.env.now, end });
  if (handler === null) return undefined;
  const _timeout_seconds = (timeoutMs ?? 0) / 1_000;
  return { _escalated: true, _escalation_handler: handler, _timeout_seconds };
}
