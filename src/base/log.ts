/**
 * Structured logs on standard output (docs/logs.md), without payloads or keys. Errors are shown without what they
 * quote of other people's data.
 */

import { type DestinationStream, type Logger as PinoLogger, pino } from 'pino';
import { SecondLimit } from './quota/rates.js';

export type Logger = PinoLogger;

/** What must not be seen, should anybody ever hand a whole request or its headers to the log. */
const REDACTED = ['authorization', 'x-api-key', 'cookie'].flatMap((name) => {
  const places = ['', 'headers.', 'req.headers.', 'request.headers.'];
  return places.map((place) => `${place.slice(0, -1)}["${name}"]`);
});

/**
 * @param thread in every line: front, writer, shard-0 …
 * @param destination default: standard output
 * @param cell in every line, if it was configured
 */
export function createLogger(
  level: string,
  thread: string,
  destination?: DestinationStream,
  cell?: string,
): Logger {
  return pino(
    {
      level,
      base: cell === undefined ? { thread } : { thread, cell },
      timestamp: pino.stdTimeFunctions.isoTime,
      redact: [...REDACTED, 'apiKey', 'secret', '*.apiKey', '*.secret'],
      serializers: { err: describeError },
    },
    destination,
  );
}

/** Of a message, which may be about anything; and of the frames of a stack. */
const MESSAGE_LENGTH_MAX = 300;
const FRAMES_MAX = 12;

/** SQLSTATE classes whose messages quote values: data exceptions, constraints, raised errors. */
const QUOTING_CLASS = /^(21|22|23|44|P0)/;
const SQLSTATE = /^[0-9A-Z]{5}$/;

/**
 * Libraries attach rows, parameters, addresses and unparsed texts to their errors, which are left out, as is a message
 * that may quote what a caller sent.
 */
export function describeError(error: unknown) {
  if (!(error instanceof Error)) return { type: typeof error };
  const { name, message, stack } = error;
  const { code } = error as { code?: unknown };
  const frames = stack?.split('\n').filter((line) => /^\s+at /.test(line));
  return {
    type: name,
    code: typeof code === 'string' ? code : undefined,
    message: isQuoting(error, code) ? undefined : message.slice(0, MESSAGE_LENGTH_MAX),
    stack: frames?.slice(0, FRAMES_MAX).join('\n'),
  };
}

/** JSON.parse quotes its text, an answer to a caller the request; so does the database. */
function isQuoting({ name }: Error, code: unknown): boolean {
  if (name === 'SyntaxError' || name === 'EngineError') return true;
  return typeof code === 'string' && SQLSTATE.test(code) && QUOTING_CLASS.test(code);
}

/** Limits lines of one kind, for events that come as often as callers like. */
export class LineLimit {
  readonly #limit: SecondLimit;
  #omitted = 0;

  constructor(linesPerSecond: number) {
    this.#limit = new SecondLimit(linesPerSecond);
  }

  /** @returns fields to add, with the number of omitted lines after a pause; undefined: the line is omitted */
  admit(nowMs: number): { readonly omitted?: number } | undefined {
    if (!this.#limit.admits(nowMs)) {
      this.#omitted += 1;
      return undefined;
    }
    const omitted = this.#omitted;
    this.#omitted = 0;
    return omitted === 0 ? {} : { omitted };
  }
}
