/**
 * Steps (docs/reference/steps.md): the checks before a try, in order (delay, send_window, rate limit, human gate,
 * templates), the call or dispatch, and what ends a wait. The delay and the gate are passed once, the other checks
 * before every try. Pure handlers are called in place; everything else is returned as a dispatch, and its outcome comes
 * back as an event.
 */

import type { StepBlock } from '../../../schema/blocks.js';
import { COMPLETED, FAILED, type StepRecord } from '../../../schema/execution.js';
import { FAILURE_MESSAGE_MAX } from '../../../schema/failure.js';
import { clip } from '../../base/bounds.js';
import { isJsonObject, type JsonObject, type JsonValue, ownValue } from '../../base/json.js';
import type { UnixMs } from '../../base/time.js';
import {
  type LogLevel,
  type PureContext,
  parseEventWait,
  retryableFailure,
  sleepDuration,
} from '../builtin.js';
import { cutOff, withdraw } from '../cutting.js';
import {
  effectOf,
  noteDeadlineHandlerFailure,
  startDeadlineHandler,
} from '../deadline-handlers.js';
import { earlier, limitClock } from '../deadlines.js';
import type { Evaluation } from '../evaluation.js';
import type { Scope } from '../expression/scope.js';
import { BREACHED } from '../failures.js';
import { type KeyTemplate, nullInKey, renderKey } from '../key-params.js';
import type { KeptSignal, TryEvent } from '../progress.js';
import { runsOf } from '../runs-again.js';
import { renderTemplate, secretTextsOf } from '../template.js';
import { type DelayTimes, delayTarget, nextOpening } from '../timing.js';
import { accept, availableAnswer, expire, type GateAnswer, promptOf } from './gate.js';
import { leaf } from './kind.js';
import {
  enterPhase,
  failStep,
  type MaybeOpen,
  makeReady,
  recordOf,
  settleTry,
} from './step-outcome.js';
import { type BreachHandler, compileStep, type StepNode } from './step-plan.js';

/** In ms. The request to a rate limit is a message and may be lost, so a step without a reply repeats it. */
const ASK_AGAIN_MS = 2_000;

export const step = leaf<StepBlock, StepNode>({
  compile: compileStep,
  outputRow: 'last',
  enter(run, node) {
    const target = node.delay === undefined ? 0 : targetOf(run, node.delay, run.env.now);
    if (target > run.env.now) enterPhase(run, node, undefined, 'delay', 0, target);
    else attempt(run, node, undefined);
  },
  /** Leaves the same `__error__` row as any other failure of the step. */
  invalidWhen(run, node, message) {
    failStep(run, node, 0, 'expression_error', message);
  },
  revisit(run, node, record) {
    if (record.p === 'ready') attempt(run, node, record);
  },
  due: onDue,
  handleEvent(run, node, record, event) {
    if (record.a !== event.attempt || !isAwaited(record, event)) return false;
    handleEvent(run, node, record, event);
    return true;
  },
  recover(run, node, record) {
    if (record.p === 'run' || record.p === 'asking') makeReady(run, node, record);
  },
  cut(run, node, record, by) {
    return (by === 'signal' && !node.isCancellable) || cutOff(run, node, record, by);
  },
  withdraw: (run, node, record) => withdraw(run, node, record),
  openState: ({ p }) =>
    p === 'run' || p === 'sleep' || p === 'asking' || p === 'ready' ? 'running' : 'waiting',
});

/** When a delay that began at `now` is over. */
export function targetOf({ snapshot, env }: Evaluation, delay: DelayTimes, now: UnixMs): UnixMs {
  const { timezone, config } = snapshot;
  const days = ownValue(config, 'holidays');
  const configHolidays = Array.isArray(days) ? days.filter((day) => typeof day === 'string') : [];
  return delayTarget(delay, { now, timezone, random: env.random, configHolidays });
}

/** @param record undefined while the step is not open; a pure step never is */
function attempt(run: Evaluation, node: StepNode, record: MaybeOpen): void {
  const number = record?.a ?? 0;
  if (node.window !== undefined) {
    const opening = nextOpening(node.window, run.env.now, run.snapshot.timezone);
    if (opening > run.env.now) {
      enterPhase(run, node, record, 'delay', number, opening);
      return;
    }
  }
  if (node.rateLimitKey !== null && record?.g !== 1) {
    if (awaitsGrant(run, node, node.rateLimitKey, record)) return;
  }
  let passed = record;
  if (node.gate !== undefined && number === 0 && record?.k === undefined) {
    passed = passGate(run, node, record);
    if (passed === undefined) return;
  }
  run.progress.counts.stepsExecuted += 1;
  const params =
    node.params === undefined ? NO_PARAMS : renderTemplate(node.params, run.scopeOf(node));
  if (!params.ok) {
    failStep(run, node, number, 'expression_error', params.message);
    return;
  }
  run.markCurrent(node, number);
  const wrong = nullInKey(node, () => run.scopeOf(node));
  if (wrong !== undefined) {
    failStep(run, node, number, 'invalid_params', wrong);
    return;
  }
  switch (node.mode) {
    case 'pure':
      run.progress.counts.stepsInPlace += 1;
      settleTry(run, node, number, node.pure!(params.value, new StepContext(run, node)));
      return;
    case 'sleep':
      startSleep(run, node, passed, params.value);
      return;
    case 'event':
      awaitEvent(run, node, passed, params.value);
      return;
    case 'in_process':
    case 'external':
      if (isDryRun(run)) recordDryRun(run, node, number, params.value);
      else dispatch(run, node, passed, params.value);
  }
}

/** Whether the try stops here: it requests a grant of its rate limit, or the key is invalid and the step has failed. */
function awaitsGrant(run: Evaluation, node: StepNode, limit: KeyTemplate, record: MaybeOpen) {
  const number = record?.a ?? 0;
  const key = renderKey(limit, run.scopeOf(node));
  if (!key.ok) {
    run.progress.counts.stepsExecuted += 1;
    run.markCurrent(node, number);
    failStep(run, node, number, 'invalid_params', key.message);
    return true;
  }
  if (run.env.isRateLimited?.(key.value) !== true || isDryRun(run)) return false;
  const asking = recordOf(run, node, record, 'asking', number);
  asking.w = run.env.now + ASK_AGAIN_MS;
  if (limit.expressions.length > 0) asking.l = key.value;
  run.putLeaf(node, asking);
  run.progress.rateRequests.push({
    ...run.tryOf(node, number),
    blockId: node.id,
    key: key.value,
  });
  return true;
}

/** The record with which the step continues after its gate; undefined: the step waits at the gate, or has failed. */
function passGate(run: Evaluation, node: StepNode, record: MaybeOpen): StepRecord | undefined {
  const { timeoutMs } = node.gate!;
  const prompt = promptOf(run, node);
  if (!prompt.ok) {
    failStep(run, node, 0, 'expression_error', prompt.message);
    return undefined;
  }
  const answer = availableAnswer(run, node);
  const next = recordOf(run, node, record, answer === undefined ? 'gate' : 'ready', 0);
  next.k = '';
  if (answer !== undefined) {
    accept(run, node, undefined, answer);
    return next;
  }
  next.m = run.offset;
  if (record?.g === 1) next.g = 1;
  if (timeoutMs !== null) next.d = run.env.now + timeoutMs;
  run.putLeaf(node, next);
  return undefined;
}

function answered(run: Evaluation, node: StepNode, record: StepRecord, answer: GateAnswer): void {
  accept(run, node, record, answer);
  const next = recordOf(run, node, record, 'ready', record.a);
  if (record.g === 1) next.g = 1;
  run.putLeaf(node, next);
  run.push(node.index);
}

function gateExpired(run: Evaluation, node: StepNode, record: StepRecord): void {
  const gate = node.gate!;
  const escalated = expire(run, node, record);
  if (escalated === undefined) {
    failStep(run, node, record.a, 'timeout', `nobody answered within ${gate.timeoutMs} ms`);
  } else {
    run.storeOutput(node, record.a, escalated, null);
    run.finish(node, COMPLETED);
  }
}

const isDryRun = ({ snapshot }: Evaluation): boolean => snapshot.runtime.dry_run === true;

/** In a dry run the output describes the call (docs/reference/steps.md). It is neither checked nor merged. */
function recordDryRun(run: Evaluation, node: StepNode, number: number, params: JsonValue): void {
  const would: JsonObject = { params };
  if (node.handler === 'http_request' && isJsonObject(params)) {
    for (const name of ['method', 'url']) {
      const value = ownValue(params, name);
      if (value !== undefined) would[name] = value;
    }
  }
  run.storeOutput(node, number, { dry_run: true, handler: node.handler, would }, null);
  run.finish(node, COMPLETED);
}

/** The context of a pure handler; the scope is built only when the handler reads it. */
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
    this.#run.progress.logs.push({ blockId: this.#node.id, level, message });
  }
}

const NO_PARAMS = { ok: true, value: {} } as const;

/** A durable timer: its deadline survives a restart (docs/reference/instances.md). */
function startSleep(run: Evaluation, node: StepNode, record: MaybeOpen, params: JsonValue): void {
  const duration = sleepDuration(params);
  const number = record?.a ?? 0;
  if (!duration.ok) {
    failStep(run, node, number, 'invalid_params', duration.message);
    return;
  }
  const sleeping = recordOf(run, node, record, 'sleep', number);
  sleeping.w = run.env.now + duration.value;
  sleeping.m = duration.value;
  setTimeLimit(run, node, sleeping);
  run.putLeaf(node, sleeping);
}

/** A durable wait that takes kept signals at once, oldest first (docs/events.md). A dry run never waits. */
function awaitEvent(run: Evaluation, node: StepNode, record: MaybeOpen, params: JsonValue): void {
  const wanted = parseEventWait(params);
  const number = record?.a ?? 0;
  if (!wanted.ok) {
    failStep(run, node, number, 'invalid_params', wanted.message);
    return;
  }
  const waiting = recordOf(run, node, record, 'event', number);
  waiting.v = wanted.wait;
  const timeoutMs = Math.min(wanted.timeoutMs ?? Infinity, node.timeoutMs ?? Infinity);
  if (timeoutMs !== Infinity) {
    waiting.m = timeoutMs;
    waiting.d = run.env.now + timeoutMs;
  }
  run.putLeaf(node, waiting);
  if (takeKeptSignals(run, node, waiting)) return;
  if (isDryRun(run)) recordDryRun(run, node, number, params);
  else run.progress.opensEventWait = true;
}

/** Takes kept signals until one of them ends the wait; returns whether one did. */
function takeKeptSignals(run: Evaluation, node: StepNode, record: StepRecord): boolean {
  for (;;) {
    const signal = run.firstSignal(record.v!.n);
    if (signal === undefined) return false;
    if (answer(run, node, record, { signal_id: signal.id }, signal.payload, signal)) return true;
  }
}

/** Whether the payload ends the wait; one that violates the schema is consumed, and the wait goes on. */
function answer(
  run: Evaluation,
  node: StepNode,
  record: StepRecord,
  source: JsonObject,
  payload: JsonValue,
  signal?: KeptSignal,
): boolean {
  const details: JsonObject = { name: record.v!.n, ...source };
  const problem = node.checkPayload?.(payload);
  if (signal !== undefined)
    run.takeSignal(signal, node, problem === undefined ? 'taken' : 'refused');
  if (problem !== undefined) {
    const message = `the payload does not conform to schema: ${problem}`;
    details.message = clip(message, FAILURE_MESSAGE_MAX);
    run.audit('event_refused', node, details);
    return false;
  }
  run.audit('event_taken', node, details);
  settleTry(run, node, record.a, { kind: 'success', output: payload });
  return true;
}

// Built field by field, here and below: this is the hot path, and spreads are slow.
function dispatch(run: Evaluation, node: StepNode, record: MaybeOpen, params: JsonValue): void {
  const attempt = record?.a ?? 0;
  const external = node.mode === 'external';
  if (external) awaitClaim(run, node, record, attempt);
  else begin(run, node, record, 'run');
  run.charge(params);
  run.progress.dispatches.push({
    node: node.index,
    iteration: run.iterationOf(node),
    attempt,
    blockId: node.id,
    handler: node.handler,
    external,
    queueName: node.queueName,
    params,
    timeoutMs: node.timeoutMs,
    overlay: run.scopes.overlayOf(node),
    runs: runsOf(run, node),
    secrets: node.params?.hasSecrets ? secretTextsOf(node.params, run.scopeOf(node)) : undefined,
  });
}

function setTimeLimit(run: Evaluation, node: StepNode, record: StepRecord): void {
  if (node.timeoutMs !== null) record.d = limitClock(run) + node.timeoutMs;
}

/** The task waits for a worker, up to `queue_timeout`. */
function awaitClaim(run: Evaluation, node: StepNode, before: MaybeOpen, attempt: number): void {
  const waiting = recordOf(run, node, before, 'task', attempt);
  if (node.queueTimeoutMs !== null) {
    waiting.d = limitClock(run) + node.queueTimeoutMs;
    waiting.q = 1;
  }
  run.putLeaf(node, waiting);
}

/** The timeout of the try counts from here: a handler is called, or a worker has claimed the task. */
function begin(run: Evaluation, node: StepNode, before: MaybeOpen, phase: 'run' | 'task'): void {
  const begun = recordOf(run, node, before, phase, before?.a ?? 0);
  setTimeLimit(run, node, begun);
  run.putLeaf(node, begun);
}

function isAwaited(record: StepRecord, event: TryEvent): boolean {
  if (event.kind === 'step.claimed' || event.kind === 'step.returned') return record.p === 'task';
  if (event.kind === 'step.outcome') return record.p === (event.external ? 'task' : 'run');
  if (event.kind === 'rate.changed') return record.p === 'limited';
  if (event.kind === 'event.arrived') return record.p === 'event';
  if (event.kind === 'gate.answered') return record.p === 'gate';
  return event.kind === 'step.refused' || record.p === 'asking';
}

function handleEvent(run: Evaluation, node: StepNode, record: StepRecord, event: TryEvent): void {
  switch (event.kind) {
    case 'step.outcome':
      run.endEffect(node, record, effectOf(event.outcome));
      settleTry(run, node, record.a, event.outcome);
      break;
    case 'step.refused':
      withdraw(run, node, record);
      failStep(run, node, record.a, 'data_refused', event.message);
      break;
    case 'gate.answered':
      answered(run, node, record, event.answer);
      break;
    case 'step.claimed':
      begin(run, node, record, 'task');
      break;
    case 'step.returned':
      awaitClaim(run, node, record, record.a);
      break;
    case 'rate.granted': {
      const granted = recordOf(run, node, record, 'ready', record.a);
      granted.g = 1;
      run.putLeaf(node, granted);
      // Not through the queue: the grant is valid only now.
      attempt(run, node, granted);
      break;
    }
    case 'rate.deferred': {
      // The deferral does not count as a try.
      const limited = recordOf(run, node, record, 'limited', record.a);
      limited.w = event.until;
      if (record.l !== undefined) limited.l = record.l;
      run.putLeaf(node, limited);
      break;
    }
    case 'rate.changed':
      makeReady(run, node, record);
      break;
    case 'event.arrived':
      if (event.event === undefined) takeKeptSignals(run, node, record);
      else {
        const { id, payload } = event.event;
        answer(run, node, record, { event_id: id }, payload);
      }
  }
}

function onDue(run: Evaluation, node: StepNode, record: StepRecord): void {
  const { p, w, d, h } = record;
  if (p === 'sleep' && w! <= run.env.now && w! <= (earlier(d, h) ?? w!)) {
    settleTry(run, node, record.a, { kind: 'success', output: { slept_ms: record.m! } });
  } else if (h !== undefined && h <= run.env.now) passDeadline(run, node, record, h);
  else if (p === 'gate') gateExpired(run, node, record);
  else if (d !== undefined && d <= run.env.now) endTime(run, node, record);
  else makeReady(run, node, record);
}

/** The caller may extend the time limit of a task. */
function endTime(run: Evaluation, node: StepNode, record: StepRecord): void {
  const step = { blockId: node.id, iteration: run.iterationOf(node) };
  const waitMs = record.q === 1 ? node.queueTimeoutMs : null;
  const until = record.p === 'task' ? run.env.extendedUntil?.(step, waitMs) : undefined;
  if (until === undefined) timeOut(run, node, record);
  else run.putLeaf(node, { ...record, d: until });
}

function timeOut(run: Evaluation, node: StepNode, record: StepRecord): void {
  const isUnclaimed = record.q === 1;
  withdraw(run, node, record, isUnclaimed ? 'unclaimed' : 'timed_out');
  run.progress.counts.timeouts += 1;
  const timeoutMs = record.p === 'event' ? record.m : node.timeoutMs;
  const message = isUnclaimed
    ? `no worker claimed the task within ${node.queueTimeoutMs} ms`
    : `timed out after ${timeoutMs} ms`;
  const code = isUnclaimed ? 'queue_timeout' : 'timeout';
  settleTry(run, node, record.a, retryableFailure(message, undefined, code), true);
}

/** The deadline has passed: the step fails for good, and the breach handler is called. */
function passDeadline(run: Evaluation, node: StepNode, record: StepRecord, h: UnixMs): void {
  if (node.deadlineMs === null) {
    // The instance was migrated to a version without a deadline.
    const { h: _h, ...rest } = record;
    run.putLeaf(node, rest);
    return;
  }
  const limit = node.deadlineMs;
  const elapsed = limit + run.env.now - h;
  withdraw(run, node, record, 'deadline');
  run.progress.counts.timeouts += 1;
  run.progress.counts.breaches += 1;
  run.progress.counts.stepsFailed += 1;
  const details = { deadline_ms: limit, elapsed_ms: elapsed };
  run.audit('deadline_breached', node, details);
  if (node.onBreach !== undefined) callBreach(run, node, node.onBreach, elapsed);
  const row = { _error: BREACHED, _deadline_ms: limit, _elapsed_ms: elapsed };
  run.storeOutput(node, record.a, row, '__error__');
  run.noteFailure(node, 'deadline', `missed its deadline of ${limit} ms`, record.a);
  run.finish(node, FAILED);
}

/** The result of the breach handler has no effect on the step. A dry run calls only pure handlers. */
function callBreach(run: Evaluation, node: StepNode, breach: BreachHandler, elapsed: number): void {
  const { handler, pure, params } = breach;
  const rendered = params === undefined ? NO_PARAMS : renderTemplate(params, run.scopeOf(node));
  const wrong = rendered.ok ? nullInKey(breach, () => run.scopeOf(node)) : rendered.message;
  if (!rendered.ok || wrong !== undefined) {
    noteDeadlineHandlerFailure(run, node.id, handler, `${wrong}`);
    return;
  }
  const full = {
    ...(isJsonObject(rendered.value) ? rendered.value : {}),
    _breach_block_id: node.id,
    _breach_instance_id: run.snapshot.id,
    _breach_elapsed_ms: elapsed,
    _breach_deadline_ms: node.deadlineMs,
  };
  if (pure === undefined) {
    if (!isDryRun(run)) startDeadlineHandler(run, node, handler, full);
    return;
  }
  const outcome = pure(full, new StepContext(run, node));
  if (outcome.kind === 'success') return;
  noteDeadlineHandlerFailure(run, node.id, handler, outcome.message);
}
