/**
 * The built-in handlers and their parameters, one row each: names, types, bounds and defaults are
 * spelled here and nowhere else. A definition is checked against the row when it is stored, and the
 * handlers take their words and bounds from it. A string with a template stands for any value.
 *
 * Two annotations: `x-otherwise` says by keyword what the handler makes of a value that breaks the
 * rule; other breaches fail every such step, so that the definition is refused. `x-any-case` takes a
 * word in any case.
 */

import { type TSchema, Type } from '@sinclair/typebox';
import {
  AnyJson,
  DURATION_MS_MAX,
  DurationMs,
  KEY_LENGTH_MAX,
  NAME_LENGTH_MAX,
  noted,
  oneOfWords,
  optional,
  UserSchema,
  withDefault,
} from './common.js';

export const LOG_LEVELS = ['debug', 'info', 'warn'] as const;
export const LOG_LEVEL_DEFAULT = 'info';
export const LOG_MESSAGE_DEFAULT = 'no message';
export const FAIL_MESSAGE_DEFAULT = 'forced failure';
export const SLEEP_MS_DEFAULT = 100;

export const HTTP_METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD'] as const;
export const HTTP_METHOD_DEFAULT = 'GET';
export const HTTP_TIMEOUT_MS_DEFAULT = 10_000;
/** A day. A request holds a socket and memory all the while, and timers end at 2^31 ms. */
export const HTTP_TIMEOUT_MS_MAX = 24 * 60 * 60 * 1_000;
export const HTTP_URL_PATTERN = '^[hH][tT][tT][pP][sS]?://';

/** @param meant what the handler does with any other value, in words that follow "anything else" */
function lenient<T extends TSchema>(schema: T, meant: string): T {
  return { ...schema, 'x-otherwise': { type: meant, enum: meant } };
}

const anything = (note: string) => Type.Optional(noted(AnyJson, note));

/** An object whose other members mean nothing. */
export const HANDLER_PARAMS = {
  noop: Type.Object({}),
  log: Type.Object({
    message: withDefault(anything('What is written.'), LOG_MESSAGE_DEFAULT),
    level: lenient(
      optional(withDefault(oneOfWords(LOG_LEVELS, 'The level of the line.'), LOG_LEVEL_DEFAULT)),
      `counts as ${LOG_LEVEL_DEFAULT}`,
    ),
  }),
  sleep: Type.Object({
    duration_ms: optional(noted(withDefault(DurationMs, SLEEP_MS_DEFAULT), 'How long it waits.')),
  }),
  wait_for_event: Type.Object({
    name: Type.String({
      pattern: '\\S',
      maxLength: NAME_LENGTH_MAX,
      description: 'Of the events, and behind `custom:` of the signals, that end the wait.',
    }),
    key: Type.Optional(
      Type.Unsafe<string | number | null>({
        anyOf: [
          { type: 'string', pattern: '\\S', maxLength: KEY_LENGTH_MAX },
          { type: 'number' },
          { type: 'null' },
        ],
        description:
          'The `correlation_key` of the events, a text or a number; without it those that have none.',
      }),
    ),
    timeout_ms: optional(
      Type.Integer({
        minimum: 1,
        maximum: DURATION_MS_MAX,
        description: 'Milliseconds after which the try fails, as by the `timeout` of the step.',
      }),
    ),
    schema: optional(
      noted(
        UserSchema,
        'What the payload has to be; another one is used up, and the wait goes on.',
      ),
    ),
  }),
  http_request: Type.Object({
    url: Type.String({
      minLength: 1,
      pattern: HTTP_URL_PATTERN,
      description: 'Begins with http:// or https://, without user and password.',
      'x-otherwise': { pattern: 'fails the step' },
    }),
    method: {
      ...optional(withDefault(oneOfWords(HTTP_METHODS, 'In any case.'), HTTP_METHOD_DEFAULT)),
      'x-any-case': true,
    },
    headers: optional(
      noted(
        Type.Record(Type.String(), lenient(Type.String(), 'is not sent')),
        'Texts by name. Host, and what is no text, is not sent.',
      ),
    ),
    body: anything(
      'A text is sent as it is, anything else as JSON. With a body, content-type is application/json unless said.',
    ),
    timeout_ms: optional(
      withDefault(
        Type.Integer({
          minimum: 1,
          maximum: HTTP_TIMEOUT_MS_MAX,
          description:
            'Milliseconds until the request is given up, at the latest after `ENGINE_STEP_TIMEOUT_MAX_SECS`.',
        }),
        HTTP_TIMEOUT_MS_DEFAULT,
      ),
    ),
  }),
  fail: Type.Object({
    message: withDefault(anything('The message of the error.'), FAIL_MESSAGE_DEFAULT),
    retryable: lenient(
      optional(
        Type.Boolean({ default: false, description: 'Whether the retry policy may try again.' }),
      ),
      'counts as false',
    ),
  }),
  transform: Type.Object({}, { additionalProperties: true }),
  assert: Type.Object({
    condition: noted(AnyJson, 'A condition, or a value that must be true.'),
    message: anything('The message of the error; by default it names the condition.'),
  }),
};

export type BuiltinName = keyof typeof HANDLER_PARAMS;
export type LogLevel = (typeof LOG_LEVELS)[number];
export type HttpMethod = (typeof HTTP_METHODS)[number];

/** The names that are never given to an external worker. */
export const BUILTIN_HANDLERS = Object.keys(HANDLER_PARAMS) as BuiltinName[];

export function isBuiltin(handler: string): handler is BuiltinName {
  return Object.hasOwn(HANDLER_PARAMS, handler);
}

/** What the document says of the parameters: `log: message, level (debug, info, warn). …`. */
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
