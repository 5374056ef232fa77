/**
 * The built-in handlers and their parameters: the only place with their names, types, bounds and defaults. Definitions
 * are checked against them when stored; a string with a template stands for any value. Two annotations: `x-otherwise`
 * maps a keyword to the handler's action for a value that breaks it (other violations fail every such step, so that the
 * definition is refused); `x-any-case` ignores case.
 */

import { type TSchema, Type } from '@sinclair/typebox';
import * as t from './common.js';

export const LOG_LEVELS = ['debug', 'info', 'warn'] as const;
export const LOG_LEVEL_DEFAULT = 'info';
export const LOG_MESSAGE_DEFAULT = 'no message';
export const FAIL_MESSAGE_DEFAULT = 'forced failure';
export const SLEEP_MS_DEFAULT = 100;

export const HTTP_METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD'] as const;
export const HTTP_METHOD_DEFAULT = 'GET';
export const HTTP_TIMEOUT_MS_DEFAULT = 10_000;
/** A day. A request holds a socket and memory for as long, and timers end at 2^31 ms. */
export const HTTP_TIMEOUT_MS_MAX = 24 * 60 * 60 * 1_000;
export const HTTP_URL_PATTERN = '^[hH][tT][tT][pP][sS]?://';

/** @param meant what the handler does with other values, after "anything else" */
function lenient<T extends TSchema>(schema: T, meant: string): T {
  return { ...schema, 'x-otherwise': { type: meant, enum: meant } };
}

const anything = (note: string) => t.optional(t.AnyJson, note);

/** An object whose other members are ignored. */
export const HANDLER_PARAMS = {
  noop: t.object({}),
  log: t.object({
    message: t.withDefault(anything('The logged text.'), LOG_MESSAGE_DEFAULT),
    level: lenient(
      t.nullish(t.withDefault(t.oneOf(LOG_LEVELS, 'Log level.'), LOG_LEVEL_DEFAULT)),
      `counts as ${LOG_LEVEL_DEFAULT}`,
    ),
  }),
  sleep: t.object({
    duration_ms: t.nullish(t.withDefault(t.DurationMs, SLEEP_MS_DEFAULT), 'Duration in ms.'),
  }),
  wait_for_event: t.object({
    name: t.noted(
      t.text({ pattern: '\\S', maxLength: t.NAME_LENGTH_MAX }),
      'Name of the events, and after `custom:` of the signals, that end the wait.',
    ),
    key: t.optional(
      t.typed<string | number | null>({
        anyOf: [
          { type: 'string', pattern: '\\S', maxLength: t.KEY_LENGTH_MAX },
          { type: 'number' },
          { type: 'null' },
        ],
        description:
          '`correlation_key` of the events, a string or a number; default: events without one.',
      }),
    ),
    timeout_ms: t.nullish(
      t.integer({ minimum: 1, maximum: t.DURATION_MS_MAX }),
      'Milliseconds after which the attempt fails, like the `timeout` of the step.',
    ),
    schema: t.nullish(
      t.UserSchema,
      'Schema of the payload. Events that violate it are consumed and ignored.',
    ),
  }),
  http_request: t.object({
    url: t.text({
      minLength: 1,
      pattern: HTTP_URL_PATTERN,
      description: 'Starts with http:// or https://, without user and password.',
      'x-otherwise': { pattern: 'fails the step' },
    }),
    method: {
      ...t.nullish(t.withDefault(t.oneOf(HTTP_METHODS, 'Case-insensitive.'), HTTP_METHOD_DEFAULT)),
      'x-any-case': true,
    },
    headers: t.nullish(
      Type.Record(t.text(), lenient(t.text(), 'is not sent')),
      'Headers by name. Host and values that are not strings are not sent.',
    ),
    body: anything(
      'Strings are sent unchanged, other values as JSON. ' +
        'Default content-type with a body: application/json.',
    ),
    timeout_ms: t.nullish(
      t.withDefault(
        t.integer({
          minimum: 1,
          maximum: HTTP_TIMEOUT_MS_MAX,
          description: 'Timeout in milliseconds, at most `ENGINE_STEP_TIMEOUT_MAX_SECS`.',
        }),
        HTTP_TIMEOUT_MS_DEFAULT,
      ),
    ),
  }),
  fail: t.object({
    message: t.withDefault(anything('Error message.'), FAIL_MESSAGE_DEFAULT),
    retryable: lenient(t.flag(false, 'Whether the retry policy may retry.'), 'counts as false'),
  }),
  transform: t.object({}, { additionalProperties: true }),
  assert: t.object({
    condition: t.noted(t.AnyJson, 'A condition, or a value that must be true.'),
    message: anything('Error message; default: one with the condition.'),
  }),
};

export type BuiltinName = keyof typeof HANDLER_PARAMS;
export type LogLevel = (typeof LOG_LEVELS)[number];
export type HttpMethod = (typeof HTTP_METHODS)[number];

export const BUILTIN_HANDLERS = Object.keys(HANDLER_PARAMS) as BuiltinName[];

export function isBuiltin(handler: string): handler is BuiltinName {
  return Object.hasOwn(HANDLER_PARAMS, handler);
}

/** Description of the parameters for the document: `log: message, level (debug, info, warn). …`. */
export const PARAMS_NOTE = BUILTIN_HANDLERS.map((name) => `${name}: ${paramsText(name)}.`).join(
  ' ',
);

function paramsText(name: BuiltinName): string {
  const schema: TSchema = HANDLER_PARAMS[name];
  if (schema.additionalProperties === true) return 'anything';
  const members = Object.entries<TSchema>(schema.properties);
  const required: readonly string[] = schema.required ?? [];
  const texts = members.map(([member, shape]) => {
    const remark = required.includes(member) ? 'required' : valuesText(shape);
    return remark === '' ? member : `${member} (${remark})`;
  });
  return texts.length === 0 ? 'none' : texts.join(', ');
}

function valuesText({ enum: words, default: byDefault }: TSchema): string {
  if (Array.isArray(words)) return words.filter((word) => word !== null).join(', ');
  return typeof byDefault === 'number' ? `default ${byDefault}` : '';
}
