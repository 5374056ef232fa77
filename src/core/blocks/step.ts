/**
 * Steps: the gates before a try in their order (delay, send_window, rate limit, a person's answer,
 * try, templates, dispatch), and what ends a wait (docs/reference/steps.md). Pure handlers are called
 * in place; everything else is left to the caller as a dispatch, and comes back as an event. The first
 * gate and the answer are passed once, the others before every try.
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
  retryableFailure,
  type StepFailure,
  sleepDuration,
  wantedEvent,
} from '../builtin.js';
import type { Scope } from '../condition.js';
import { cutOff, withdraw } from '../cutting.js';
import {
  effectOf,
  noteDeadlineHandlerFailure,
  startDeadlineHandler,
} from '../deadline-handlers.js';
import type { Evaluation } from '../evaluation.js';
import { BREACHED } from '../failures.js';
import { nullInKey } from '../key-params.js';
import { earlier } from '../open-leaves.js';
import type { TryEvent } from '../progress.js';
import { runsOf } from '../runs-again.js';
import { renderTemplate, secretTextsOf } from '../template.js';
import { limitClock } from '../time-limits.js';
import { type DelayTimes, delayTarget, nextOpening } from '../timing.js';
import { accept, answerAtHand, expire, type GateAnswer, type GatePlan, promptOf } from './gate.js';
import { leaf } from './kind.js';
import { failureOf, giveUp, settleTry } from './step-outcome.js';
import { type BreachHandler, compileStep, type StepNode } from './step-plan.js';
import { makeReady, moveTo, recordOf } from './step-record.js';

/**
 * A question to a rate limit is a message, and may be lost; a step whose question was hangs no longer
 * than this, in ms. An answer takes one commit, so one that comes later than this is rare.
 */
const ASK_AGAIN_MS = 2_000;

export const step = leaf<StepBlock, StepNode>({
  compile: compileStep,
  leavesRow: 'last',
  enter(run, node) {
    if (node.delay !== undefined) {
      const target = targetOf(run, node.delay);
      if (target > run.env.now) {
        moveTo(run, node, undefined, 'delay', 0, target);
        return;
      }
    }
    attempt(run, node, undefined);
  },
  /** Leaves the row that every failure of a step in the process leaves. */
  misguided(run, node, message) {
    giveUp(run, node, 0, failureOf('expression_error', message));
  },
  again(run, node, record) {
    if (record.p === 'ready') attempt(run, node, record);
  },
  due: onDue,
  takeIn(run, node, record, event) {
    if (record.a !== event.attempt || !isAwaited(record, event)) return false;
    takeIn(run, node, record, event);
    return true;
  },
  recover(run, node, record) {
    if (record.p === 'run' || record.p === 'asking') makeReady(run, node, record);
  },
  cut(run, node, record, by) {
    return (by === 'signal' && !node.isCancellable) || cutOff(run, node, record, by);
  },
  withdraw(run, node, record) {
    withdraw(run, node, record, 'cancelled');
  },
  openState: ({ p }) =>
    p === 'run' || p === 'sleep' || p === 'asking' || p === 'ready' ? 'running' : 'waiting',
});

function targetOf(run: Evaluation, delay: DelayTimes): number {
  const { snapshot, env } = run;
  return delayTarget(delay, {
    now: env.now,
    timezone: snapshot.timezone,
    random: env.random,
    configHolidays: configHolidays(snapshot.config),
  });
}

/** The days of `context.config.holidays`; anything that is no text is left out. */
export function configHolidays(config: JsonObject): readonly string[] {
  const days = ownValue(config, 'holidays');
  return Array.isArray(days) ? days.filter((day) => typeof day === 'string') : [];
}

/** @param record absent while the step has not been opened: a pure step never is */
function attempt(run: Evaluation, node: StepNode, record: StepRecord | undefined): void {
  const number = record?.a ?? 0;
  if (node.window !== undefined) {
    const opening = nextOpening(node.window, run.env.now, run.snapshot.timezone);
    if (opening > run.env.now) {
      moveTo(run, node, record, 'delay', number, opening);
      return;
    }
  }
  if (node.rateLimitKey !== null && record?.g !== 1 && asksFor(run, node.rateLimitKey)) {
    moveTo(run, node, record, 'asking', number, run.env.now + ASK_AGAIN_MS);
    const key = node.rateLimitKey;
    run.rateRequests.push({ ...run.tryOf(node, number), blockId: node.id, key });
    return;
  }
  let passed = record;
  if (node.gate !== undefined && number === 0 && record?.k === undefined) {
    passed = passGate(run, node, node.gate, record);
    if (passed === undefined) return;
  }
  run.counts.stepsExecuted += 1;
  const params =
    node.params === undefined ? NO_PARAMS : renderTemplate(node.params, run.scopeOf(node));
  if (!params.ok) {
    giveUp(run, node, number, failureOf('expression_error', params.message));
    return;
  }
  run.markCurrent(node, number);
  const wrong = nullInKey(node.handler, node.keys, () => run.scopeOf(node));
  if (wrong !== undefined) {
    settleTry(run, node, number, failureOf('invalid_params', wrong));
    return;
  }
  switch (node.mode) {
    case 'pure':
      run.counts.stepsInPlace += 1;
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
      if (isDryRun(run)) rehearse(run, node, number, params.value);
      else dispatch(run, node, passed, params.value);
  }
}

/**
 * The record with which the step goes on behind its gate; undefined: it waits there, or has failed.
 */
function passGate(
  run: Evaluation,
  node: StepNode,
  gate: GatePlan,
  record: StepRecord | undefined,
): StepRecord | undefined {
  const prompt = promptOf(run, node, gate);
  if (!prompt.ok) {
    giveUp(run, node, 0, failureOf('expression_error', prompt.message));
    return undefined;
  }
  const answer = answerAtHand(run, node, gate);
  const next = recordOf(run, node, record, answer === undefined ? 'gate' : 'ready', 0);
  next.k = '';
  if (answer !== undefined) {
    accept(run, node, gate, 0, undefined, answer);
    return next;
  }
  next.m = run.offset;
  if (record?.g === 1) next.g = 1;
  if (gate.timeoutMs !== null) next.d = run.env.now + gate.timeoutMs;
  run.putLeaf(node, next);
  return undefined;
}

/** The step goes on as soon as something may run. */
function answered(run: Evaluation, node: StepNode, record: StepRecord, answer: GateAnswer): void {
  accept(run, node, node.gate!, record.a, record, answer);
  const next = recordOf(run, node, record, 'ready', record.a);
  if (record.g === 1) next.g = 1;
  run.putLeaf(node, next);
  run.push(node.index);
}

function gateExpired(run: Evaluation, node: StepNode, record: StepRecord): void {
  const gate = node.gate!;
  const escalated = expire(run, node, gate, record);
  if (escalated === undefined) {
    const message = `nobody answered within ${gate.timeoutMs} ms`;
    giveUp(run, node, record.a, failureOf('timeout', message));
    return;
  }
  run.storeOutput(node, record.a, escalated, null);
  run.finish(node, COMPLETED);
}

/** Nothing leaves the engine in a dry run, so that no limit has to let it pass. */
function asksFor(run: Evaluation, key: string): boolean {
  return run.env.isRateLimited?.(key) === true && !isDryRun(run);
}

function isDryRun({ snapshot }: Evaluation): boolean {
  return snapshot.runtime.dry_run === true;
}

/**
 * In a dry run (docs/reference/steps.md): the output says what would have been done. It is not
 * what the handler gives, so it is neither held against the output_schema nor merged into the data.
 */
function rehearse(run: Evaluation, node: StepNode, number: number, params: JsonValue): void {
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

  get iteration(): string {
    return this.#run.iterationOf(this.#node);
  }

  log(level: LogLevel, message: JsonValue): void {
    this.#run.logs.push({ blockId: this.#node.id, level, message });
  }
}

const NO_PARAMS = { ok: true, value: {} } as const;

/**
 * A durable timer: it holds no thread, and its deadline survives a restart
 * (docs/reference/instances.md).
 */
function startSleep(
  run: Evaluation,
  node: StepNode,
  record: StepRecord | undefined,
  params: JsonValue,
): void {
  const duration = sleepDuration(params);
  const number = record?.a ?? 0;
  if (!duration.ok) {
    settleTry(run, node, number, failureOf('invalid_params', duration.message));
    return;
  }
  const sleeping = recordOf(run, node, record, 'sleep', number);
  sleeping.w = run.env.now + duration.ms;
  sleeping.m = duration.ms;
  setTimeLimit(run, node, sleeping);
  run.putLeaf(node, sleeping);
}

/**
 * A durable wait: what has come before is taken at once, oldest first (docs/events.md). A dry run waits
 * for nothing that is not there.
 */
function awaitEvent(
  run: Evaluation,
  node: StepNode,
  record: StepRecord | undefined,
  params: JsonValue,
): void {
  const wanted = wantedEvent(params);
  const number = record?.a ?? 0;
  if (!wanted.ok) {
    settleTry(run, node, number, failureOf('invalid_params', wanted.message));
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
  if (takeKept(run, node, waiting)) return;
  if (isDryRun(run)) rehearse(run, node, number, params);
  else run.opensEventWait = true;
}

/** Whether one of the signals that are kept has ended the wait. */
function takeKept(run: Evaluation, node: StepNode, record: StepRecord): boolean {
  for (;;) {
    const signal = run.firstSignal(record.v!.n);
    if (signal === undefined) return false;
    const { id, payload } = signal;
    const problem = node.checkPayload?.(payload);
    run.takeSignal(signal, node, problem === undefined ? 'taken' : 'refused');
    if (answer(run, node, record, { signal_id: id }, payload, problem)) return true;
  }
}

/**
 * Whether the payload ends the wait: one that is none for it is used up, and the wait goes on.
 *
 * @param problem of the payload with the schema of the wait
 */
function answer(
  run: Evaluation,
  node: StepNode,
  record: StepRecord,
  source: JsonObject,
  payload: JsonValue,
  problem: string | undefined,
): boolean {
  const details = { name: record.v!.n, ...source };
  if (problem !== undefined) {
    const reason = clip(`the payload does not conform to schema: ${problem}`, FAILURE_MESSAGE_MAX);
    run.audit.push({
      eventType: 'event_refused',
      blockId: node.id,
      details: { ...details, message: reason },
    });
    return false;
  }
  run.audit.push({ eventType: 'event_taken', blockId: node.id, details });
  settleTry(run, node, record.a, { kind: 'success', output: payload });
  return true;
}

// Spelled out field by field, here and below: this is the hot path, and spreads are slow.
function dispatch(
  run: Evaluation,
  node: StepNode,
  record: StepRecord | undefined,
  params: JsonValue,
): void {
  const attempt = record?.a ?? 0;
  const external = node.mode === 'external';
  if (external) {
    awaitClaim(run, node, record, attempt);
  } else {
    const open = recordOf(run, node, record, 'run', attempt);
    setTimeLimit(run, node, open);
    run.putLeaf(node, open);
  }
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
    runs: runsOf(run, node),
    secrets: node.params?.hasSecrets ? secretTextsOf(node.params, run.scopeOf(node)) : undefined,
  });
}

function setTimeLimit(run: Evaluation, node: StepNode, record: StepRecord): void {
  if (node.timeoutMs !== null) record.d = limitClock(run) + node.timeoutMs;
}

/** The task waits for a worker, which is given a time for that. */
function awaitClaim(
  run: Evaluation,
  node: StepNode,
  before: StepRecord | undefined,
  attempt: number,
): void {
  const waiting = recordOf(run, node, before, 'task', attempt);
  if (node.queueTimeoutMs !== null) {
    waiting.d = limitClock(run) + node.queueTimeoutMs;
    waiting.q = 1;
  }
  run.putLeaf(node, waiting);
}

/** A worker has the task: the time of the try counts from here. */
function beginClaim(run: Evaluation, node: StepNode, before: StepRecord): void {
  const claimed = recordOf(run, node, before, 'task', before.a);
  setTimeLimit(run, node, claimed);
  run.putLeaf(node, claimed);
}

function isAwaited(record: StepRecord, event: TryEvent): boolean {
  if (event.kind === 'step.claimed' || event.kind === 'step.returned') return record.p === 'task';
  if (event.kind === 'step.outcome') return record.p === (event.external ? 'task' : 'run');
  if (event.kind === 'rate.changed') return record.p === 'limited';
  if (event.kind === 'event.arrived') return record.p === 'event';
  if (event.kind === 'gate.answered') return record.p === 'gate';
  return event.kind === 'step.refused' || record.p === 'asking';
}

function takeIn(run: Evaluation, node: StepNode, record: StepRecord, event: TryEvent): void {
  switch (event.kind) {
    case 'step.outcome':
      run.endEffect(node, record, effectOf(event.outcome));
      settleTry(run, node, record.a, event.outcome);
      break;
    case 'step.refused':
      withdraw(run, node, record, 'cancelled');
      giveUp(run, node, record.a, failureOf('data_refused', event.message));
      break;
    case 'gate.answered':
      answered(run, node, record, event.answer);
      break;
    case 'step.claimed':
      beginClaim(run, node, record);
      break;
    case 'step.returned':
      awaitClaim(run, node, record, record.a);
      break;
    case 'rate.granted':
      grant(run, node, record);
      break;
    case 'rate.deferred':
      // The try is not consumed, and asks again at that time.
      moveTo(run, node, record, 'limited', record.a, event.until);
      break;
    case 'rate.changed':
      makeReady(run, node, record);
      break;
    case 'event.arrived':
      if (event.event === undefined) takeKept(run, node, record);
      else {
        const { id, payload } = event.event;
        const problem = node.checkPayload?.(payload);
        answer(run, node, record, { event_id: id }, payload, problem);
      }
  }
}

/** The rate limit let this try pass. */
function grant(run: Evaluation, node: StepNode, record: StepRecord): void {
  const granted = recordOf(run, node, record, 'ready', record.a);
  granted.g = 1;
  run.putLeaf(node, granted);
  // At once and not by way of the queue: a grant is for this moment.
  attempt(run, node, granted);
}

/** A time of an open step has come. */
function onDue(run: Evaluation, node: StepNode, record: StepRecord): void {
  const { p, w, d, h } = record;
  if (p === 'sleep' && w! <= run.env.now && w! <= (earlier(d, h) ?? w!)) {
    settleTry(run, node, record.a, { kind: 'success', output: { slept_ms: record.m! } });
  } else if (h !== undefined && h <= run.env.now) passDeadline(run, node, record, h);
  else if (p === 'gate') gateExpired(run, node, record);
  else if (d !== undefined && d <= run.env.now) endTime(run, node, record);
  else makeReady(run, node, record);
}

/** The time of a task may be put off, for reasons that only the caller knows. */
function endTime(run: Evaluation, node: StepNode, record: StepRecord): void {
  const step = { blockId: node.id, iteration: run.iterationOf(node) };
  const waitMs = record.q === 1 ? node.queueTimeoutMs : null;
  const until = record.p === 'task' ? run.env.sparedUntil?.(step, waitMs) : undefined;
  if (until === undefined) timeOut(run, node, record);
  else run.putLeaf(node, { ...record, d: until });
}

/** A time-out ends the try as a retryable failure, whoever was at it. */
function timeOut(run: Evaluation, node: StepNode, record: StepRecord): void {
  const isUnclaimed = record.q === 1;
  withdraw(run, node, record, isUnclaimed ? 'unclaimed' : 'timed_out');
  run.counts.timeouts += 1;
  const timeoutMs = record.p === 'event' ? record.m : node.timeoutMs;
  const failure: StepFailure = isUnclaimed
    ? retryableFailure(
        `no worker claimed the task within ${node.queueTimeoutMs} ms`,
        undefined,
        'queue_timeout',
      )
    : retryableFailure(`timed out after ${timeoutMs} ms`, undefined, 'timeout');
  settleTry(run, node, record.a, failure, true);
}

/** The step has failed for good, whatever it is at; somebody may want to be told. */
function passDeadline(run: Evaluation, node: StepNode, record: StepRecord, h: UnixMs): void {
  if (node.deadlineMs === null) {
    // It has gone over to a version without one.
    const { h: _h, ...rest } = record;
    run.putLeaf(node, rest);
    return;
  }
  const limit = node.deadlineMs;
  const elapsed = limit + run.env.now - h;
  withdraw(run, node, record, 'deadline');
  run.counts.timeouts += 1;
  run.counts.breaches += 1;
  run.counts.stepsFailed += 1;
  const details = { deadline_ms: limit, elapsed_ms: elapsed };
  run.audit.push({ eventType: 'deadline_breached', blockId: node.id, details });
  if (node.onBreach !== undefined) callOnBreach(run, node, node.onBreach, limit, elapsed);
  const row = { _error: BREACHED, _deadline_ms: limit, _elapsed_ms: elapsed };
  run.storeOutput(node, record.a, row, '__error__');
  run.noteFailure(node, 'deadline', `missed its deadline of ${limit} ms`, record.a);
  run.finish(node, FAILED);
}

/** Nothing follows from what it comes to. In a dry run nobody outside is told. */
function callOnBreach(
  run: Evaluation,
  node: StepNode,
  { handler, pure, params, keys }: BreachHandler,
  limit: number,
  elapsed: number,
): void {
  const given = params === undefined ? NO_PARAMS : renderTemplate(params, run.scopeOf(node));
  const wrong = given.ok ? nullInKey(handler, keys, () => run.scopeOf(node)) : given.message;
  if (!given.ok || wrong !== undefined) {
    noteDeadlineHandlerFailure(run, node.id, handler, `${wrong}`);
    return;
  }
  const full = {
    ...(isJsonObject(given.value) ? given.value : {}),
    _breach_block_id: node.id,
    _breach_instance_id: run.snapshot.id,
    _breach_elapsed_ms: elapsed,
    _breach_deadline_ms: limit,
  };
  if (pure === undefined) {
    if (!isDryRun(run)) startDeadlineHandler(run, node, handler, full);
    return;
  }
  const outcome = pure(full, new StepContext(run, node));
  if (outcome.kind === 'failure')
    noteDeadlineHandlerFailure(run, node.id, handler, outcome.message);
}
