/** Compiles steps (docs/reference/steps.md). */

import type { StepBlock } from '../../../schema/blocks.js';
import { RETRY_DEFAULTS, SEND_WINDOW_DEFAULTS } from '../../../schema/step-options.js';
import { isJsonObject, type JsonObject, type JsonValue, ownValue } from '../../base/json.js';
import { timeLimit } from '../../base/time.js';
import type { BlockCompiler } from '../block-compiler.js';
import { BUILTIN_NAMES, PURE_HANDLERS } from '../builtin.js';
import { compileKey, keyExpressions } from '../key-params.js';
import type { NodePlace } from '../plan-nodes.js';
import { type DelayTimes, isLocalTime, type WindowTimes } from '../timing.js';
import { compileGate } from './gate.js';

export interface StepNode extends NodePlace, Readonly<ReturnType<typeof compileStep>> {
  readonly type: 'step';
}

/** `pure` is called in place, `in_process` has an effect, `external` runs on a worker. */
type StepMode = 'pure' | 'sleep' | 'event' | 'in_process' | 'external';
export type BreachHandler = NonNullable<ReturnType<typeof breachHandler>>;

export function compileStep(block: StepBlock, compiler: BlockCompiler) {
  const { handler } = block;
  const mode = modeOf(handler);
  const { schema, params } = readParams(block, mode, compiler);
  const use = mode === 'in_process' || mode === 'external' ? 'call' : undefined;
  const template = params === undefined ? undefined : compiler.template(params, 'params', use);
  if (handler === 'assert') readAssertion(params, compiler);
  for (const name of ['queue_name', 'queue_timeout'] as const) {
    if (mode === 'external' || block[name] == null) continue;
    compiler.warn(name, `${name} has no effect: ${handler} is built in, not a worker's`);
  }
  return {
    handler,
    mode,
    pure: PURE_HANDLERS.get(handler),
    params: template,
    /** The expressions in `params` that must not evaluate to null. */
    keys: keyExpressions(handler, params, use === 'call'),
    delay: delayTimes(block, compiler),
    window: windowTimes(block, compiler),
    retry: retryPolicy(block, compiler),
    queueTimeoutMs: mode === 'external' ? timeLimit(block.queue_timeout) : null,
    deadlineMs: timeLimit(block.deadline),
    onBreach: breachHandler(block, compiler),
    rateLimitKey: rateLimitKey(block, compiler),
    gate: compileGate(block, compiler),
    reply: replyOf(block, mode, compiler),
    queueName: block.queue_name ?? null,
    /** False: the signal `cancel` does not stop the step once it has begun. */
    isCancellable: block.cancellable ?? true,
    /** Whether the output is merged into context.data: only outputs of workers are. */
    isMerged: mode === 'external' && block.merge_output !== false,
    checkOutput:
      block.output_schema == null
        ? undefined
        : compiler.outputSchema(block.output_schema as JsonObject),
    /** The check of the payload that a wait_for_event accepts. */
    checkPayload: schema === undefined ? undefined : compiler.outputSchema(schema),
  };
}

/** The schema of a wait is compiled once and is not rendered with the other params. */
function readParams(
  block: StepBlock,
  mode: StepMode,
  compiler: BlockCompiler,
): { readonly params: JsonObject | undefined; readonly schema?: JsonObject } {
  const raw = (block.params ?? undefined) as JsonObject | undefined;
  if (mode !== 'event' || raw === undefined) return { params: raw };
  // An optional member that is null is absent, but a key that evaluates to null is an error.
  const { key, ...unkeyed } = raw;
  const params = key === null ? unkeyed : raw;
  const { schema, ...others } = params;
  if (schema == null) return { params };
  if (!isJsonObject(schema) || JSON.stringify(schema).includes('{{')) {
    compiler.refuse(
      'params.schema',
      'params.schema must be a JSON Schema as it stands: templates are not filled in there',
    );
    return { params: others };
  }
  return { params: others, schema };
}

/** Whether the server runs the handler itself, without waiting for anything. */
const isActing = (mode: StepMode) => mode === 'pure' || mode === 'in_process';

function breachHandler(block: StepBlock, compiler: BlockCompiler) {
  const { on_deadline_breach: breach } = block;
  // Versions that did not support the member may have stored false.
  if (!breach) return undefined;
  const { handler, params } = breach;
  const mode = modeOf(handler);
  if (timeLimit(block.deadline) === null) {
    const message = 'on_deadline_breach has no effect without a deadline';
    compiler.warn('on_deadline_breach', message);
  }
  if (!isActing(mode)) {
    const able = [...BUILTIN_NAMES].filter((name) => isActing(modeOf(name))).join(', ');
    compiler.refuse(
      'on_deadline_breach.handler',
      `on_deadline_breach.handler must be a built-in handler that does something (${able}), not ${handler}`,
    );
  }
  if (handler === 'assert') compiler.reads('all');
  return {
    handler,
    /** Undefined: the handler has an effect and is dispatched. */
    pure: PURE_HANDLERS.get(handler),
    params: params == null ? undefined : compiler.template(params, 'on_deadline_breach.params'),
    keys: keyExpressions(handler, params ?? undefined, mode === 'in_process'),
  };
}

function modeOf(handler: string): StepMode {
  if (PURE_HANDLERS.has(handler)) return 'pure';
  if (handler === 'sleep') return 'sleep';
  if (handler === 'wait_for_event') return 'event';
  return BUILTIN_NAMES.has(handler) ? 'in_process' : 'external';
}

function replyOf({ reply, wait_for_input }: StepBlock, mode: StepMode, compiler: BlockCompiler) {
  // Versions that did not know the member may have stored anything.
  if (reply == null) return undefined;
  if (mode !== 'event' && !wait_for_input) {
    compiler.warn('reply', 'reply has no effect without wait_for_input or wait_for_event');
  }
  return compiler.template(reply as JsonValue, 'reply');
}

/** `assert` parses its condition when it runs, so the reads do not follow from the template. */
function readAssertion(params: JsonObject | undefined, compiler: BlockCompiler): void {
  const text = params === undefined ? undefined : ownValue(params, 'condition');
  if (typeof text !== 'string') return;
  const use = { member: 'params.condition', unparsed: 'is false, so that the step fails' };
  if (text.includes('{{') || !compiler.expression(text, use).ok) compiler.reads('all');
}

function rateLimitKey({ rate_limit_key: text }: StepBlock, compiler: BlockCompiler) {
  if (text == null) return null;
  compiler.template(text, 'rate_limit_key');
  return compileKey('rate_limit_key', text);
}

/** A delay has a duration or a wall-clock time, not both; a duration of 0 may accompany either. */
function delayTimes({ delay }: StepBlock, compiler: BlockCompiler): DelayTimes | undefined {
  if (delay == null) return undefined;
  const times: DelayTimes = {
    duration: delay.duration ?? 0,
    business_days_only: delay.business_days_only ?? false,
    jitter: delay.jitter ?? 0,
    holidays: delay.holidays ?? [],
  };
  if (delay.holidays != null && !times.business_days_only) {
    compiler.warn('delay.holidays', 'delay.holidays has no effect without business_days_only');
  }
  const { fire_at_local: local, timezone } = delay;
  // Versions that did not support the member may have stored false.
  if (typeof local !== 'string') {
    if (timezone != null) {
      compiler.warn('delay.timezone', 'delay.timezone has no effect without fire_at_local');
    }
    return times;
  }
  if (!isLocalTime(local)) {
    compiler.refuse(
      'delay.fire_at_local',
      'delay.fire_at_local must be a day and time as YYYY-MM-DDTHH:MM:SS',
    );
  }
  if (times.duration > 0) {
    compiler.refuse('delay', 'delay must not have both a duration and fire_at_local');
  }
  return { ...times, fire_at_local: local, ...(typeof timezone === 'string' && { timezone }) };
}

function windowTimes(block: StepBlock, compiler: BlockCompiler): WindowTimes | undefined {
  // Versions that did not support the member may have stored false.
  if (!block.send_window) return undefined;
  const { start_hour, end_hour, days } = block.send_window;
  const start = start_hour ?? SEND_WINDOW_DEFAULTS.start_hour;
  const end = end_hour ?? SEND_WINDOW_DEFAULTS.end_hour;
  if (start === end) {
    compiler.refuse('send_window', `send_window must not start and end at the same hour, ${start}`);
  }
  return { start_hour: start, end_hour: end, days: days ?? [] };
}

function retryPolicy({ retry }: StepBlock, compiler: BlockCompiler) {
  if (retry == null) return undefined;
  const use = { member: 'retry.retry_if', unparsed: 'ends the retries' };
  const retryIf = retry.retry_if == null ? undefined : compiler.expression(retry.retry_if, use);
  return {
    /** Tries in total. */
    maxAttempts: retry.max_attempts,
    initial_backoff: retry.initial_backoff ?? RETRY_DEFAULTS.initial_backoff,
    max_backoff: retry.max_backoff ?? RETRY_DEFAULTS.max_backoff,
    backoff_multiplier: retry.backoff_multiplier ?? RETRY_DEFAULTS.backoff_multiplier,
    retryIf,
    nonRetryableCodes: new Set(retry.non_retryable_codes ?? []),
  };
}
