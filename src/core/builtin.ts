/**
 * Built-in handlers that depend only on their parameters. The evaluator calls them in place, so a chain of them costs
 * one commit. They never throw: invalid parameters give a failure. `sleep` and `wait_for_event` are only parsed here;
 * handlers with effects are in `handlers/`.
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
import { displayText } from '../base/bounds.js';
import { isJsonObject, type JsonObject, type JsonValue, ownValue } from '../base/json.js';
import { holds, parseCondition } from './condition.js';
import { isTruthy } from './expression/operators.js';
import type { Scope } from './expression/scope.js';
import { type Parsed, type Refused, refused } from './parsed.js';

export type StepOutcome =
  | { readonly kind: 'success'; readonly output: JsonValue }
  | {
      readonly kind: 'failure';
      readonly retryable: boolean;
      readonly message: string;
      readonly details?: JsonObject;
      /** The minimum wait before the next try, in ms. */
      readonly retryAfterMs?: number;
      /** Absent: the handler failed for a reason of its own. */
      readonly code?: FailureCode;
      /** For handlers with effects: the request was answered or never sent. Absent: the effect is uncertain. */
      readonly isKnown?: boolean;
    };

export type StepFailure = Extract<StepOutcome, { kind: 'failure' }>;
export type { LogLevel } from '../../schema/handlers.js';

export interface PureContext {
  readonly scope: Scope;
  /** Collects a log line, which is written after the commit. */
  log(level: LogLevel, message: JsonValue): void;
}

/** @param params with all templates rendered */
export type PureHandler = (params: JsonValue, context: PureContext) => StepOutcome;

/** The handlers that the evaluator calls in place, by name (docs/reference/handlers.md). */
export const PURE_HANDLERS: ReadonlyMap<string, PureHandler> = new Map<string, PureHandler>([
  ['noop', () => ({ kind: 'success', output: {} })],
  ['log', log],
  ['fail', fail],
  ['transform', (params) => ({ kind: 'success', output: params })],
  ['assert', assertCondition],
]);

/** Every other handler name runs on external workers. */
export const BUILTIN_NAMES: ReadonlySet<string> = new Set(BUILTIN_HANDLERS);

/** Parses `duration_ms` of a sleep step; absent or null is the default. `ok: false` fails the step permanently. */
export function sleepDuration(params: JsonValue): Parsed<number> {
  const duration = param(params, 'duration_ms') ?? SLEEP_MS_DEFAULT;
  if (typeof duration !== 'number' || !Number.isInteger(duration) || duration < 0) {
    return refused('sleep: duration_ms must be a whole number of milliseconds');
  }
  if (duration > DURATION_MS_MAX) {
    return refused(`sleep: duration_ms must be at most ${DURATION_MS_MAX}`);
  }
  return { ok: true, value: duration };
}

/** Parses the parameters of a `wait_for_event` step. `ok: false` fails the step permanently. */
export function parseEventWait(
  params: JsonValue,
): { readonly ok: true; readonly wait: EventWait; readonly timeoutMs: number | null } | Refused {
  const wrong = (message: string) => refused(`wait_for_event: ${message}`);
  const name = param(params, 'name');
  if (typeof name !== 'string' || name.trim() === '') return wrong('name must be a text');
  if (name.length > NAME_LENGTH_MAX) {
    return wrong(`name must have at most ${NAME_LENGTH_MAX} characters`);
  }
  const timeoutMs = param(params, 'timeout_ms') ?? null;
  if (timeoutMs !== null && !isDuration(timeoutMs)) {
    return wrong('timeout_ms must be a whole number of milliseconds');
  }
  const raw = param(params, 'key');
  if (raw === undefined) return { ok: true, wait: { n: name }, timeoutMs };
  // Treated as absent, a null key would match events that are meant for other instances.
  if (raw === null) return wrong('key must not come to null');
  if (typeof raw !== 'string' && typeof raw !== 'number') {
    return wrong('key must be a text or a number');
  }
  const key = String(raw);
  if (key.trim() === '') return wrong('key must not be blank');
  if (key.length > KEY_LENGTH_MAX) {
    return wrong(`key must have at most ${KEY_LENGTH_MAX} characters`);
  }
  return { ok: true, wait: { n: name, k: key }, timeoutMs };
}

function isDuration(value: JsonValue): value is number {
  return Number.isInteger(value) && Number(value) >= 1 && Number(value) <= DURATION_MS_MAX;
}

type Reason = [message: string, details?: JsonObject | undefined, code?: FailureCode];
export const permanentFailure = (...reason: Reason): StepFailure => failure(false, ...reason);
export const retryableFailure = (...reason: Reason): StepFailure => failure(true, ...reason);

function failure(retryable: boolean, ...[message, details, code]: Reason): StepFailure {
  return {
    kind: 'failure',
    retryable,
    message,
    ...(details === undefined ? {} : { details }),
    ...(code === undefined ? {} : { code }),
  };
}

function log(params: JsonValue, context: PureContext): StepOutcome {
  // Only an absent message has a default: null is a message.
  const raw = param(params, 'message');
  const message = raw === undefined ? LOG_MESSAGE_DEFAULT : raw;
  const level = param(params, 'level');
  context.log(LOG_LEVELS.find((known) => known === level) ?? LOG_LEVEL_DEFAULT, message);
  return { kind: 'success', output: { message } };
}

function fail(params: JsonValue): StepOutcome {
  const message = param(params, 'message');
  return failure(param(params, 'retryable') === true, messageText(message, FAIL_MESSAGE_DEFAULT));
}

function assertCondition(params: JsonValue, context: PureContext): StepOutcome {
  const condition = param(params, 'condition');
  if (condition === undefined) {
    return permanentFailure('assert: condition is required', undefined, 'invalid_params');
  }
  if (isMet(condition, context.scope)) {
    return { kind: 'success', output: { condition, passed: true } };
  }
  const fallback = `assertion failed: ${messageText(condition, 'null')}`;
  return permanentFailure(messageText(param(params, 'message'), fallback), { condition });
}

/** Text that does not parse counts as false (docs/reference/expressions.md). Templates are already rendered. */
function isMet(condition: JsonValue, scope: Scope): boolean {
  if (typeof condition !== 'string') return isTruthy(condition);
  const parsed = parseCondition(condition);
  return parsed.ok && holds(parsed.value, scope);
}

function messageText(message: JsonValue | undefined, fallback: string): string {
  return message === undefined || message === null ? fallback : displayText(message);
}

function param(params: JsonValue, name: string): JsonValue | undefined {
  return isJsonObject(params) ? ownValue(params, name) : undefined;
}
