/**
 * The built-in handlers that need nothing but their parameters: the evaluator runs them in place, so
 * that a chain of them costs one commit. They promise to be total: every parameter, however wrong,
 * gives an outcome. Handlers with an outside effect are in `handlers/`.
 *
 * `sleep` and `wait_for_event` are only read here; the evaluator makes durable waits of them
 * (docs/reference/instances.md, docs/events.md).
 */

import { DURATION_MS_MAX, KEY_LENGTH_MAX, NAME_LENGTH_MAX } from '../../schema/common.js';
import type { EventWait } from '../../schema/execution.js';
import type { FailureCode } from '../../schema/failure.js';
import {
  BUILTIN_HANDLERS,
  FAIL_MESSAGE_DEFAULT,
  LOG_LEVEL_DEFAULT,
  LOG_LEVELS,
  LOG_MESSAGE_DEFAULT,
  type LogLevel,
  SLEEP_MS_DEFAULT,
} from '../../schema/handlers.js';
import { isJsonObject, type JsonObject, type JsonValue, ownValue } from '../base/json.js';
import { evaluateCondition, isTruthy, parseCondition, type Scope } from './condition.js';

/** What one attempt at a step came to. A failure that is not retryable is never tried again. */
export type StepOutcome =
  | { readonly kind: 'success'; readonly output: JsonValue }
  | {
      readonly kind: 'failure';
      readonly retryable: boolean;
      readonly message: string;
      readonly details?: JsonObject;
      /** The next try comes no sooner than this, in ms. */
      readonly retryAfterMs?: number;
      /** What the handler did wrong; absent: it failed as handlers do. */
      readonly code?: FailureCode;
      /** Of handlers that act outside: it was answered, or never sent. Absent: nobody can tell. */
      readonly isKnown?: boolean;
    };

export type StepFailure = Extract<StepOutcome, { kind: 'failure' }>;

export type { LogLevel } from '../../schema/handlers.js';

export interface PureContext {
  /** What conditions see: context sections and outputs. */
  readonly scope: Scope;
  /** The path of loop counters, '' outside of loops. */
  readonly iteration: string;
  /** Collects a line, which is written only after the commit of the step that asked for it. */
  log(level: LogLevel, message: JsonValue): void;
}

/** `params` are resolved: templates in them have been replaced. */
export type PureHandler = (params: JsonValue, context: PureContext) => StepOutcome;

/** The handlers that the evaluator calls in place (docs/reference/handlers.md), by name. */
export const PURE_HANDLERS: ReadonlyMap<string, PureHandler> = new Map<string, PureHandler>([
  ['noop', noop],
  ['log', log],
  ['fail', fail],
  ['transform', transform],
  ['assert', assertCondition],
]);

/** Names that are never given to an external worker. Every other name is. */
export const BUILTIN_NAMES: ReadonlySet<string> = new Set(BUILTIN_HANDLERS);

export type SleepDuration =
  | { readonly ok: true; readonly ms: number }
  | { readonly ok: false; readonly message: string };

/**
 * Reads `duration_ms` of a sleep step: whole milliseconds, the default when absent or null. A refusal is a
 * permanent failure of the step.
 */
export function sleepDuration(params: JsonValue): SleepDuration {
  const duration = param(params, 'duration_ms') ?? SLEEP_MS_DEFAULT;
  if (typeof duration !== 'number' || !Number.isInteger(duration) || duration < 0) {
    return { ok: false, message: 'sleep: duration_ms must be a whole number of milliseconds' };
  }
  if (duration > DURATION_MS_MAX) {
    return { ok: false, message: `sleep: duration_ms must be at most ${DURATION_MS_MAX}` };
  }
  return { ok: true, ms: duration };
}

export type WantedEvent =
  | { readonly ok: true; readonly wait: EventWait; readonly timeoutMs: number | null }
  | { readonly ok: false; readonly message: string };

/**
 * Reads what a `wait_for_event` step waits for. A key that is a number counts as its text. A refusal is a
 * permanent failure of the step.
 */
export function wantedEvent(params: JsonValue): WantedEvent {
  const wrong = (message: string) =>
    ({ ok: false, message: `wait_for_event: ${message}` }) as const;
  const name = param(params, 'name');
  if (typeof name !== 'string' || name.trim() === '') return wrong('name must be a text');
  if (name.length > NAME_LENGTH_MAX) {
    return wrong(`name must have at most ${NAME_LENGTH_MAX} characters`);
  }
  const timeoutMs = param(params, 'timeout_ms') ?? null;
  if (timeoutMs !== null && !isDuration(timeoutMs)) {
    return wrong('timeout_ms must be a whole number of milliseconds');
  }
  const given = param(params, 'key');
  if (given === undefined) return { ok: true, wait: { n: name }, timeoutMs };
  // It would take an event that is meant for nobody in particular.
  if (given === null) return wrong('key must not come to null');
  if (typeof given !== 'string' && typeof given !== 'number') {
    return wrong('key must be a text or a number');
  }
  const key = String(given);
  if (key.trim() === '') return wrong('key must not be blank');
  if (key.length > KEY_LENGTH_MAX) {
    return wrong(`key must have at most ${KEY_LENGTH_MAX} characters`);
  }
  return { ok: true, wait: { n: name, k: key }, timeoutMs };
}

function isDuration(value: JsonValue): value is number {
  return (
    typeof value === 'number' && Number.isInteger(value) && value >= 1 && value <= DURATION_MS_MAX
  );
}

/** A failure that no retry can mend. */
export function permanentFailure(
  message: string,
  details?: JsonObject,
  code?: FailureCode,
): StepFailure {
  return failure(false, message, details, code);
}

/** A failure that the retry policy of the step, if it has one, may try again. */
export function retryableFailure(
  message: string,
  details?: JsonObject,
  code?: FailureCode,
): StepFailure {
  return failure(true, message, details, code);
}

function failure(
  retryable: boolean,
  message: string,
  details?: JsonObject,
  code?: FailureCode,
): StepFailure {
  return {
    kind: 'failure',
    retryable,
    message,
    ...(details === undefined ? {} : { details }),
    ...(code === undefined ? {} : { code }),
  };
}

function noop(): StepOutcome {
  return { kind: 'success', output: {} };
}

function log(params: JsonValue, context: PureContext): StepOutcome {
  // A message that is null was said, and stays null; only an absent one has a default.
  const said = param(params, 'message');
  const message = said === undefined ? LOG_MESSAGE_DEFAULT : said;
  context.log(logLevel(param(params, 'level')), message);
  return { kind: 'success', output: { message } };
}

function logLevel(level: JsonValue | undefined): LogLevel {
  return LOG_LEVELS.find((known) => known === level) ?? LOG_LEVEL_DEFAULT;
}

function fail(params: JsonValue): StepOutcome {
  const message = param(params, 'message');
  return failure(param(params, 'retryable') === true, messageText(message, FAIL_MESSAGE_DEFAULT));
}

function transform(params: JsonValue): StepOutcome {
  return { kind: 'success', output: params };
}

function assertCondition(params: JsonValue, context: PureContext): StepOutcome {
  const condition = param(params, 'condition');
  if (condition === undefined) {
    return permanentFailure('assert: condition is required', undefined, 'invalid_params');
  }
  if (holds(condition, context.scope)) {
    return { kind: 'success', output: { condition, passed: true } };
  }
  const fallback = `assertion failed: ${messageText(condition, 'null')}`;
  return permanentFailure(messageText(param(params, 'message'), fallback), { condition });
}

/**
 * A condition that is one whole template has already become its value, so only text is parsed. Text
 * that does not parse counts as false: `assert` is a lenient use of conditions
 * (docs/reference/expressions.md).
 */
function holds(condition: JsonValue, scope: Scope): boolean {
  if (typeof condition !== 'string') return isTruthy(condition);
  const parsed = parseCondition(condition);
  return parsed.ok && isTruthy(evaluateCondition(parsed.value, scope));
}

function messageText(message: JsonValue | undefined, fallback: string): string {
  if (message === undefined || message === null) return fallback;
  return typeof message === 'string' ? message : JSON.stringify(message);
}

function param(params: JsonValue, name: string): JsonValue | undefined {
  return isJsonObject(params) ? ownValue(params, name) : undefined;
}
