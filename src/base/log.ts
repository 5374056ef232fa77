/** Structured logs on standard output (docs/logs.md), without payloads, keys, or errors that quote data of tenants. */

import { type DestinationStream, type Logger as PinoLogger, pino } from 'pino';
import { SecondLimit } from './quota/rates.js';

export type Logger = PinoLogger;

/** Redacted even if a whole request or its headers were logged by mistake. */
const REDACTED = ['authorization', 'x-api-key', 'cookie'].flatMap((name) => {
  const places = ['', 'headers.', 'req.headers.', 'request.headers.'];
  return places.map((place) => `${place.slice(0, -1)}["${name}"]`);
});

/** @param destination default: standard output */
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

/** The longest message, and the most stack frames, of a logged error. */
const MESSAGE_LENGTH_MAX = 300;
const FRAMES_MAX = 12;
/** SQLSTATE classes whose messages quote values: data exceptions, constraints, raised errors. */
const QUOTING_CLASS = /^(21|22|23|44|P0)/;
const SQLSTATE = /^[0-9A-Z]{5}$/;

/**
 * Logs only the name, code, message and stack of an error: libraries attach rows, parameters, addresses and unparsed
 * texts. A message that may quote data of a caller is left out.
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

/** Messages of JSON.parse, of EngineError and of some database errors quote data of the caller. */
function isQuoting({ name }: Error, code: unknown): boolean {
  if (name === 'SyntaxError' || name === 'EngineError') return true;
  return typeof code === 'string' && SQLSTATE.test(code) && QUOTING_CLASS.test(code);
}

/** Limits the rate of log lines of one kind that callers can cause. */
export class LineLimit {
  readonly #limit: SecondLimit;
  #omitted = 0;

  constructor(linesPerSecond: number) {
    this.#limit = new SecondLimit(linesPerSecond);
  }

  /** The fields to add: the number of omitted lines after a pause. Undefined: the line is omitted. */
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
