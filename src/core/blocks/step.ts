/**
 * Steps: the gates before a try in the order of 02 §2.2 (when, delay, rate limit, try, templates,
 * dispatch), and what follows from the outcome of a try (02 §2.3, §5). Pure handlers are called in
 * place; everything else is left to the caller as a dispatch, and comes back as an event.
 */

import {
  type LogLevel,
  type PureContext,
  permanentFailure,
  type StepOutcome,
  sleepDuration,
} from '../builtin.js';
import { evaluateCondition, isTruthy, type Scope } from '../condition.js';
import { withdraw } from '../cutting.js';
import type { Evaluation } from '../evaluation.js';
import { COMPLETED, FAILED, SKIPPED, type StepPhase, type StepRecord } from '../execution.js';
import { isJsonObject, type JsonObject, type JsonValue, ownValue } from '../json.js';
import { configHolidays } from '../plan.js';
import type { RetryPolicy, StepNode } from '../plan-nodes.js';
import { renderTemplate } from '../template.js';
import { backoffMs, type DelayTimes, delayTarget } from '../timing.js';
import type { BlockKind } from './kind.js';

type Failure = Extract<StepOutcome, { kind: 'failure' }>;

export const step: BlockKind<StepNode, StepRecord> = {
  isKept: false,
  enter(run, node) {
    if (node.when !== undefined) {
      if (!node.when.ok) {
        giveUp(run, node, 0, failureOf(`when does not parse: ${node.when.message}`));
        return;
      }
      if (!isTruthy(evaluateCondition(node.when.value, run.scopeOf(node)))) {
        run.finish(node, SKIPPED);
        return;
      }
    }
    if (node.delay !== undefined) {
      const target = targetOf(run, node.delay);
      if (target > run.env.now) {
        run.putLeaf(node, { b: run.offset, p: 'delay', a: 0, w: target });
        return;
      }
    }
    attempt(run, node, undefined);
  },
  again(run, node, record) {
    if (record.p === 'ready') attempt(run, node, record);
  },
  childDone(_run, node) {
    throw new Error(`step ${node.id} has no children`);
  },
  runsList: () => false,
};

function targetOf(run: Evaluation, delay: DelayTimes): number {
  const { snapshot, env } = run;
  return delayTarget(delay, {
    now: env.now,
    timezone: snapshot.timezone,
    random: env.random,
    configHolidays: configHolidays(snapshot.config),
  });
}

/** @param record absent while the step has not been opened: a pure step never is */
function attempt(run: Evaluation, node: StepNode, record: StepRecord | undefined): void {
  const number = record?.a ?? 0;
  const key = node.rateLimitKey;
  if (key !== null && record?.g !== 1 && run.env.isRateLimited?.(key) === true) {
    moveTo(run, node, record, 'asking', number);
    run.rateRequests.push({ ...run.tryOf(node, number), blockId: node.id, key });
    return;
  }
  const params =
    node.params === undefined ? NO_PARAMS : renderTemplate(node.params, run.scopeOf(node));
  if (!params.ok) {
    giveUp(run, node, number, failureOf(params.message));
    return;
  }
  run.markCurrent(node, number);
  switch (node.kind) {
    case 'pure':
      settleTry(run, node, number, node.pure!(params.value, new StepContext(run, node)));
      return;
    case 'sleep':
      startSleep(run, node, record, params.value);
      return;
    case 'in_process':
    case 'external':
      dispatch(run, node, record, params.value);
  }
}

/** What a handler that is called in place can reach; the scope is made only if it looks there. */
class StepContext implements PureContext {
  readonly #run: Evaluation;
  readonly #node: StepNode;

  constructor(run: Evaluation, node: StepNode) {
    this.#run = run;
    this.#node = node;
  }

  get scope(): Scope {
    return this.#run.scopeOf(this.#node);
  }

  log(level: LogLevel, message: JsonValue): void {
    this.#run.logs.push({ blockId: this.#node.id, level, message });
  }
}

const NO_PARAMS = { ok: true, value: {} } as const;

/** A durable timer: it holds no thread, and its deadline survives a restart (06 row 19). */
function startSleep(
  run: Evaluation,
  node: StepNode,
  record: StepRecord | undefined,
  params: JsonValue,
): void {
  const duration = sleepDuration(params);
  const number = record?.a ?? 0;
  if (!duration.ok) {
    settleTry(run, node, number, permanentFailure(duration.message));
    return;
  }
  const sleeping: StepRecord = { b: record?.b ?? run.offset, p: 'sleep', a: number };
  sleeping.w = run.env.now + duration.ms;
  sleeping.m = duration.ms;
  setTimeLimit(run, node, sleeping);
  run.putLeaf(node, sleeping);
}

// Spelled out field by field, here and below: this is the hot path, and spreads are slow.
function dispatch(
  run: Evaluation,
  node: StepNode,
  record: StepRecord | undefined,
  params: JsonValue,
): void {
  const attempt = record?.a ?? 0;
  const external = node.kind === 'external';
  const open: StepRecord = {
    b: record?.b ?? run.offset,
    p: external ? 'task' : 'run',
    a: attempt,
  };
  setTimeLimit(run, node, open);
  run.putLeaf(node, open);
  run.charge(params);
  run.dispatches.push({
    node: node.index,
    iteration: run.iterationOf(node),
    attempt,
    blockId: node.id,
    handler: node.handler,
    external,
    queueName: node.queueName,
    params,
    timeoutMs: node.timeoutMs,
    overlay: run.overlayOf(node),
  });
}

function setTimeLimit(run: Evaluation, node: StepNode, record: StepRecord): void {
  if (node.timeoutMs !== null) record.d = run.env.now + node.timeoutMs;
}

function moveTo(
  run: Evaluation,
  node: StepNode,
  record: StepRecord | undefined,
  phase: StepPhase,
  number: number,
  until?: number,
): void {
  const next: StepRecord = { b: record?.b ?? run.offset, p: phase, a: number };
  if (until !== undefined) next.w = until;
  run.putLeaf(node, next);
}

/** Puts an open step into the queue, to be attempted as soon as something may run. */
export function makeReady(run: Evaluation, node: StepNode, record: StepRecord): void {
  moveTo(run, node, record, 'ready', record.a);
  run.push(node.index);
}

/** The rate limit let this try pass. */
export function grant(run: Evaluation, node: StepNode, record: StepRecord): void {
  run.putLeaf(node, { b: record.b, p: 'ready', a: record.a, g: 1 });
  run.push(node.index);
}

/** The rate limit is reached: the try is not consumed, and asks again at `until` (02 §4.3). */
export function defer(run: Evaluation, node: StepNode, record: StepRecord, until: number): void {
  moveTo(run, node, record, 'limited', record.a, until);
}

/** The deadline of an open step has come. */
export function onDue(run: Evaluation, node: StepNode, record: StepRecord): void {
  const { p, w, d } = record;
  if (p === 'sleep' && w! <= run.env.now && (d === undefined || w! <= d)) {
    settleTry(run, node, record.a, { kind: 'success', output: { slept_ms: record.m! } });
  } else if (d !== undefined && d <= run.env.now) timeOut(run, node, record);
  else makeReady(run, node, record);
}

/** A time-out ends the try as a retryable failure, whoever was at it (06 row 18). */
function timeOut(run: Evaluation, node: StepNode, record: StepRecord): void {
  withdraw(run, node, record, 'timed_out');
  const message = `timed out after ${node.timeoutMs} ms`;
  const failure: Failure = { kind: 'failure', retryable: true, message };
  settleTry(run, node, record.a, failure, true);
}

/** What an outcome of the try `number` leads to. */
export function settleTry(
  run: Evaluation,
  node: StepNode,
  number: number,
  outcome: StepOutcome,
  timedOut = false,
): void {
  run.counts.stepsExecuted += 1;
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
      failureOf(`the output does not conform to output_schema: ${problem}`),
    );
    return;
  }
  run.storeOutput(node, number, outcome.output, null);
  // Only what workers give is merged (06 rows 6 and 7).
  if (node.kind === 'external' && isJsonObject(outcome.output)) run.mergeData(outcome.output);
  run.finish(node, COMPLETED);
}

/** Starts the next try if the rules of 02 §5 and 06 rows 3, 4 and 18 give one. */
function retry(
  run: Evaluation,
  node: StepNode,
  number: number,
  failure: Failure,
  timedOut: boolean,
): boolean {
  const policy = node.retry;
  let waitMs = 0;
  if (policy === undefined) {
    const redispatches = node.kind === 'external' && run.env.unpoliciedRetry === 'redispatch';
    if (!redispatches || timedOut) return false;
  } else {
    if (number + 1 >= policy.maxAttempts || !allowsRetry(run, node, policy, failure)) return false;
    waitMs = backoffMs(policy, number);
  }
  run.counts.stepsRetried += 1;
  run.noteRetry(node, number, failure.message);
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
  { message, details }: Failure,
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
 * that of every other step in an `__error__` row too (06 row 54).
 */
export function giveUp(run: Evaluation, node: StepNode, number: number, failure: Failure): void {
  run.counts.stepsFailed += 1;
  if (node.kind !== 'external') {
    const { retryable, message, details } = failure;
    const row: JsonObject = { __error__: true, retryable, message };
    if (details !== undefined) row.details = details;
    run.storeOutput(node, number, row, '__error__');
  }
  run.noteFailure(node, 'step_failed', failure.message);
  run.finish(node, FAILED);
}

export function failureOf(message: string): Failure {
  return { kind: 'failure', retryable: false, message };
}
