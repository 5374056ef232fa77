/** Moves open steps between phases, and applies the outcome of a try (docs/reference/steps.md). */

import { COMPLETED, FAILED, type StepPhase, type StepRecord } from '../../../schema/execution.js';
import { FAILURE_MESSAGE_MAX, type FailureCode } from '../../../schema/failure.js';
import { clip } from '../../base/bounds.js';
import { isJsonObject, type JsonObject, ownValue } from '../../base/json.js';
import { permanentFailure, type StepFailure, type StepOutcome } from '../builtin.js';
import { holds } from '../condition.js';
import type { Evaluation } from '../evaluation.js';
import { backoffMs, redispatchMs } from '../timing.js';
import type { StepNode } from './step-plan.js';

export type MaybeOpen = StepRecord | undefined;

/** Opens the step in the phase, or moves the open step there. @param until the end of the phase, in Unix ms */
export function enterPhase(
  run: Evaluation,
  node: StepNode,
  record: MaybeOpen,
  phase: StepPhase,
  number: number,
  until?: number,
): void {
  const next = recordOf(run, node, record, phase, number);
  if (until !== undefined) next.w = until;
  run.putLeaf(node, next);
}

/** The record in the new phase. The noted effect stays with its try, the deadline with the step. */
export function recordOf(
  run: Evaluation,
  node: StepNode,
  before: MaybeOpen,
  phase: StepPhase,
  number: number,
): StepRecord {
  const record: StepRecord = { b: before?.b ?? run.offset, p: phase, a: number };
  if (before?.u !== undefined && before.a === number) record.u = before.u;
  if (before?.k !== undefined) record.k = before.k;
  if (before === undefined) {
    if (node.deadlineMs !== null) record.h = run.env.now + node.deadlineMs;
  } else if (before.h !== undefined) record.h = before.h;
  return record;
}

/** Queues an open step, to be attempted as soon as the instance may run. */
export function makeReady(run: Evaluation, node: StepNode, record: StepRecord): void {
  enterPhase(run, node, record, 'ready', record.a);
  run.push(node.index);
}

const CONTEXT_LIMIT =
  'context limit: with this output merged into it the context is larger than ' +
  'ENGINE_MAX_CONTEXT_BYTES; merge_output: false keeps the output out of it';

export function settleTry(
  run: Evaluation,
  node: StepNode,
  number: number,
  outcome: StepOutcome,
  timedOut = false,
): void {
  if (outcome.kind === 'failure') {
    if (outcome.retryable && retry(run, node, number, outcome, timedOut)) return;
    giveUp(run, node, number, outcome);
    return;
  }
  const { output } = outcome;
  const problem = node.checkOutput?.(output);
  if (problem !== undefined) {
    const message = `the output does not conform to output_schema: ${problem}`;
    failStep(run, node, number, 'output_schema', message);
    return;
  }
  run.storeOutput(node, number, output, null);
  if (node.mode === 'event') run.noteReply(node);
  if (node.isMerged && isJsonObject(output) && !run.mergeOutput(node, output)) {
    failStep(run, node, number, 'context_limit', CONTEXT_LIMIT);
  } else run.finish(node, COMPLETED);
}

function retry(
  run: Evaluation,
  node: StepNode,
  number: number,
  failure: StepFailure,
  timedOut: boolean,
): boolean {
  const policy = node.retry;
  if (policy === undefined) {
    const redispatches = node.mode === 'external' && run.env.unpoliciedRetry === 'redispatch';
    if (!redispatches || timedOut) return false;
  } else if (number + 1 >= policy.maxAttempts || !allowsRetry(run, node, failure)) {
    return false;
  }
  const backoff = policy === undefined ? redispatchMs(number) : backoffMs(policy, number);
  const waitMs = Math.max(backoff, failure.retryAfterMs ?? 0);
  run.progress.counts.stepsFailed += 1;
  run.progress.counts.stepsRetried += 1;
  const iteration = run.iterationOf(node);
  const message = clip(failure.message, FAILURE_MESSAGE_MAX);
  const details = { attempt: number, ...(iteration !== '' && { iteration }), message };
  run.audit('step_retried', node, details);
  const record = run.execution.o[node.index] as StepRecord | undefined;
  if (waitMs > 0) {
    enterPhase(run, node, record, 'backoff', number + 1, run.env.now + waitMs);
  } else {
    enterPhase(run, node, record, 'ready', number + 1);
    run.push(node.index);
  }
  return true;
}

function allowsRetry(run: Evaluation, node: StepNode, failure: StepFailure): boolean {
  const { message, details } = failure;
  const { nonRetryableCodes: codes, retryIf } = node.retry!;
  if (details !== undefined && codes.size > 0) {
    for (const name of ['error_code', 'code', 'status']) {
      const code = ownValue(details, name);
      if (codes.has(typeof code === 'number' ? String(code) : String(code ?? ''))) return false;
    }
  }
  if (retryIf === undefined) return true;
  if (!retryIf.ok) return false;
  const scope = run.scopeOf(node);
  const data = { ...scope.data, _error: { message, details: details ?? null } };
  return holds(retryIf.value, { ...scope, data });
}

/** Fails the step. The error of an external step is in its task, that of any other step in an `__error__` row. */
function giveUp(run: Evaluation, node: StepNode, number: number, failure: StepFailure): void {
  run.progress.counts.stepsFailed += 1;
  if (node.mode !== 'external') {
    const { retryable, message, details, code } = failure;
    const row: JsonObject = { __error__: true, retryable, message };
    if (details !== undefined) row.details = details;
    if (code !== undefined) row.code = code;
    run.storeOutput(node, number, row, '__error__');
  }
  run.noteFailure(node, failure.code ?? codeOf(node, number, failure), failure.message, number);
  run.finish(node, FAILED);
}

function codeOf({ mode, retry }: StepNode, number: number, failure: StepFailure): FailureCode {
  if (!failure.retryable) return mode === 'external' ? 'worker_failed' : 'handler_failed';
  const isLast = retry !== undefined && number + 1 >= retry.maxAttempts;
  return isLast ? 'retries_exhausted' : 'not_retried';
}

export function failStep(
  run: Evaluation,
  node: StepNode,
  number: number,
  code: FailureCode,
  message: string,
): void {
  giveUp(run, node, number, permanentFailure(message, undefined, code));
}
