/**
 * What follows from the outcome of a try: the output is stored and merged, or the next try begins, or
 * the step has failed for good (docs/reference/steps.md).
 */

import { COMPLETED, FAILED, type StepRecord } from '../../../schema/execution.js';
import { FAILURE_MESSAGE_MAX, type FailureCode } from '../../../schema/failure.js';
import { clip } from '../../base/bounds.js';
import { isJsonObject, type JsonObject, ownValue } from '../../base/json.js';
import type { StepFailure, StepOutcome } from '../builtin.js';
import { evaluateCondition, isTruthy } from '../condition.js';
import type { Evaluation } from '../evaluation.js';
import { backoffMs, redispatchMs } from '../timing.js';
import type { RetryPolicy, StepNode } from './step-plan.js';
import { moveTo } from './step-record.js';

const CONTEXT_LIMIT =
  'context limit: with this output merged into it the context is larger than ' +
  'ENGINE_MAX_CONTEXT_BYTES; merge_output: false keeps the output out of it';

/** What an outcome of the try `number` leads to. */
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
  const problem = node.checkOutput?.(outcome.output);
  if (problem !== undefined) {
    giveUp(
      run,
      node,
      number,
      failureOf('output_schema', `the output does not conform to output_schema: ${problem}`),
    );
    return;
  }
  run.storeOutput(node, number, outcome.output, null);
  if (node.isMerged && isJsonObject(outcome.output) && !run.mergeOutput(node, outcome.output)) {
    giveUp(run, node, number, failureOf('context_limit', CONTEXT_LIMIT));
    return;
  }
  run.finish(node, COMPLETED);
}

/** Starts the next try if the rules of retries give one. */
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
  } else if (number + 1 >= policy.maxAttempts || !allowsRetry(run, node, policy, failure)) {
    return false;
  }
  const backoff = policy === undefined ? redispatchMs(number) : backoffMs(policy, number);
  const waitMs = Math.max(backoff, failure.retryAfterMs ?? 0);
  run.counts.stepsFailed += 1;
  run.counts.stepsRetried += 1;
  const iteration = run.iterationOf(node);
  const place = iteration === '' ? {} : { iteration };
  const details = {
    attempt: number,
    ...place,
    message: clip(failure.message, FAILURE_MESSAGE_MAX),
  };
  run.audit.push({ eventType: 'step_retried', blockId: node.id, details });
  const record = run.execution.o[node.index] as StepRecord | undefined;
  if (waitMs > 0) {
    moveTo(run, node, record, 'backoff', number + 1, run.env.now + waitMs);
  } else {
    moveTo(run, node, record, 'ready', number + 1);
    run.push(node.index);
  }
  return true;
}

function allowsRetry(
  run: Evaluation,
  node: StepNode,
  policy: RetryPolicy,
  { message, details }: StepFailure,
): boolean {
  const { nonRetryableCodes: codes, retryIf } = policy;
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
  return isTruthy(evaluateCondition(retryIf.value, { ...scope, data }));
}

/**
 * The step has failed for good. The error of an external step stands on its task and in the audit,
 * that of every other step in an `__error__` row too.
 */
export function giveUp(
  run: Evaluation,
  node: StepNode,
  number: number,
  failure: StepFailure,
): void {
  run.counts.stepsFailed += 1;
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

/** What the failure of a handler or worker, behind which no try follows, is called. */
function codeOf(
  { mode, retry: policy }: StepNode,
  number: number,
  failure: StepFailure,
): FailureCode {
  if (!failure.retryable) return mode === 'external' ? 'worker_failed' : 'handler_failed';
  const isLast = policy !== undefined && number + 1 >= policy.maxAttempts;
  return isLast ? 'retries_exhausted' : 'not_retried';
}

/** A failure behind which no try follows. */
export function failureOf(code: FailureCode, message: string): StepFailure {
  return { kind: 'failure', retryable: false, message, code };
}
