/**
 * Sends requests until one is answered: time limits, waits between tries, and which tries may follow which.
 *
 * 1. What was refused before anything was done (429, and 503 with a known outcome) is sent again whatever it is, and
 *    so is what never reached the server.
 * 2. What may have been done is sent again only where that is harmless (docs/client.md).
 * 3. The server's `retry-after` is the shortest wait; without one it grows from try to try, with chance in it.
 */

import {
  GATEWAY_STATUSES,
  LASTING_CODES,
  UNDONE_STATUSES,
  UNKNOWN_CODES,
  UNKNOWN_WORDS,
} from '../generated/repeats.js';
import { EngineError } from './errors.js';
import { noEngine, refusalOf } from './refusals.js';
import { after } from './time.js';

export type Fetch = (url: string, init: RequestInit) => Promise<Response>;

/** One request, ready to be sent as often as needed. */
export interface Sending {
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Uint8Array | undefined;
  /** Whether it may be sent again although it may have been done. */
  readonly isRepeatable: boolean;
  /** How long one try may take until its answer has been read. */
  readonly timeoutMs: number;
  /** How long all tries may take, waits included. */
  readonly totalTimeoutMs: number | undefined;
  readonly retries: number;
  readonly signal: AbortSignal | undefined;
}

/** The wait before the second try, at most; each further one is twice as long. */
const BACKOFF_MS = 200;
/** No wait of our own is longer. */
const BACKOFF_MS_MAX = 10_000;
/** A server that asks for a longer wait is not waited for. */
const RETRY_AFTER_MS_MAX = 60_000;

/**
 * @param read takes the answer within the time limit of the try
 * @throws EngineError; the reason of the signal once that is aborted
 */
export async function send<T>(
  fetchOne: Fetch,
  sending: Sending,
  read: (response: Response) => Promise<T>,
): Promise<T> {
  const { totalTimeoutMs = Number.POSITIVE_INFINITY, signal } = sending;
  const deadline = performance.now() + totalTimeoutMs;
  for (let tries = 0; ; tries++) {
    signal?.throwIfAborted();
    const leftMs = deadline - performance.now();
    try {
      const timeoutMs = Math.min(sending.timeoutMs, leftMs);
      return await attempt(fetchOne, { ...sending, timeoutMs }, read);
    } catch (error) {
      signal?.throwIfAborted();
      if (tries >= sending.retries || !mayFollow(error, sending.isRepeatable)) throw error;
      const waitMs = backoffMs(tries, error.retryAfterMs);
      if (performance.now() + waitMs >= deadline) throw error;
      await sleep(waitMs, signal);
    }
  }
}

async function attempt<T>(
  fetchOne: Fetch,
  { method, url, headers, body, timeoutMs, signal }: Sending,
  read: (response: Response) => Promise<T>,
): Promise<T> {
  const ending = new AbortController();
  const leave = () => ending.abort(signal?.reason);
  signal?.addEventListener('abort', leave, { once: true });
  const forget = after(timeoutMs, () => ending.abort(TIMED_OUT));
  try {
    const init = { method, headers, signal: ending.signal, redirect: 'manual' } as const;
    const response = await fetchOne(url, body === undefined ? init : withBody(init, body));
    if (!response.ok) throw await refusalOf(response);
    if (!response.headers.has('x-request-id')) throw await noEngine(response);
    return await read(response);
  } catch (error) {
    if (error instanceof EngineError) throw error;
    const what = `${method} ${url}`;
    if (ending.signal.reason !== TIMED_OUT) throw lostAnswer(error, what);
    const message = `${what} was not answered within ${Math.round(timeoutMs)} ms`;
    throw new EngineError({ status: 0, code: 'CLIENT_TIMEOUT', message, cause: error });
  } finally {
    forget();
    signal?.removeEventListener('abort', leave);
  }
}

const TIMED_OUT = new Error('timed out');

/** Declarations of the platforms differ in which arrays of bytes a body may be. */
const withBody = (init: RequestInit, body: string | Uint8Array): RequestInit => ({
  ...init,
  body: body as NonNullable<RequestInit['body']>,
});

/** `fetch` rejects with a text that says nothing; its cause says more. */
function lostAnswer(error: unknown, what: string): EngineError {
  const { message, cause, code } = error as { message: string; cause?: Reason; code?: string };
  const why = cause?.message || cause?.code || message;
  const isUnsent = NEVER_SENT.has(cause?.code ?? code ?? '') || why.includes(NEVER_SENT_BY_DENO);
  return new EngineError({
    status: 0,
    code: isUnsent ? 'CLIENT_UNREACHABLE' : 'CLIENT_NETWORK',
    message: isUnsent ? `${what} reached nobody: ${why}` : `${what} got no answer: ${why}`,
    cause: error,
  });
}

interface Reason {
  readonly message?: string;
  readonly code?: string;
}

/** No connection came about. */
const NEVER_SENT: ReadonlySet<string> = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'UND_ERR_CONNECT_TIMEOUT',
]);
/** Its errors have no codes. */
const NEVER_SENT_BY_DENO = 'client error (Connect)';

/** Whether another try makes sense, and harms nobody. */
function mayFollow(error: unknown, isRepeatable: boolean): error is EngineError {
  if (!(error instanceof EngineError) || (error.retryAfterMs ?? 0) > RETRY_AFTER_MS_MAX)
    return false;
  const { status, code, message } = error;
  if (LASTING_CODES.has(code)) return false;
  if (UNDONE_STATUSES.has(status) || code === 'CLIENT_UNREACHABLE') return true;
  const isUnknown = UNKNOWN_CODES.has(code) || message.includes(UNKNOWN_WORDS);
  if (status === 503 && code.startsWith('ENG_') && !isUnknown) return true;
  const isLost = code === 'CLIENT_NETWORK' || code === 'CLIENT_TIMEOUT';
  return isRepeatable && (isLost || GATEWAY_STATUSES.has(status));
}

/**
 * With chance in it: callers that were refused together do not come back together.
 *
 * @param tries that have failed before this one
 */
export function backoffMs(tries: number, atLeastMs = 0, longestMs = BACKOFF_MS_MAX): number {
  const growing = Math.min(BACKOFF_MS * 2 ** tries, longestMs);
  return atLeastMs + growing * (0.5 + Math.random() / 2);
}

/** Rejects with the reason of the signal once that is aborted. */
export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted();
    const leave = () => {
      forget();
      reject(signal?.reason);
    };
    const forget = after(ms, () => {
      signal?.removeEventListener('abort', leave);
      resolve();
    });
    signal?.addEventListener('abort', leave, { once: true });
  });
}
