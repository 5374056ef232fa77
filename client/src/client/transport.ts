/**
 * Sends requests with time limits and retries.
 *
 * 1. Requests that were rejected before they took effect (429, and 503 with a known outcome) are always retried, and so
 *    are those that never reached the server.
 * 2. Requests that may have taken effect are retried only if that is harmless (docs/client.md).
 * 3. `retry-after` is the minimum wait; without it the wait grows exponentially, with jitter.
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

/** One request, which can be sent repeatedly. */
export interface Sending {
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Uint8Array | undefined;
  /** Whether it may be retried even if it may have taken effect. */
  readonly isRepeatable: boolean;
  /** Time limit of one attempt, including reading the response. */
  readonly timeoutMs: number;
  /** Time limit of all attempts, including waits. */
  readonly totalTimeoutMs: number | undefined;
  readonly retries: number;
  readonly signal: AbortSignal | undefined;
}

/** The maximum wait before the second attempt; it doubles with each further one. */
const BACKOFF_MS = 200;
/** Limit of this backoff. */
const BACKOFF_MS_MAX = 10_000;
/** A server that asks for a longer wait is not waited for. */
const RETRY_AFTER_MS_MAX = 60_000;

/**
 * @param read reads the response within the time limit of the attempt
 * @throws EngineError; the reason of the signal if it is aborted
 */
export async function send<T>(
  fetchOne: Fetch,
  sending: Sending,
  read: (response: Response) => Promise<T>,
): Promise<T> {
  const { totalTimeoutMs = Number.POSITIVE_INFINITY, signal } = sending;
  const deadline = performance.now() + totalTimeoutMs;
  let last: EngineError | undefined;
  for (let tries = 0; ; tries++) {
    signal?.throwIfAborted();
    const leftMs = deadline - performance.now();
    // Timers are late: the wait may have used up the time, and what failed says more than a request without any.
    if (leftMs < 1 && last !== undefined) throw last;
    try {
      const timeoutMs = Math.min(sending.timeoutMs, leftMs);
      return await attempt(fetchOne, { ...sending, timeoutMs }, read);
    } catch (error) {
      signal?.throwIfAborted();
      if (tries >= sending.retries || !mayFollow(error, sending.isRepeatable)) throw error;
      const waitMs = backoffMs(tries, error.retryAfterMs);
      if (performance.now() + waitMs >= deadline) throw error;
      last = error;
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

/** Platforms differ in the types of byte arrays that a body may have. */
const withBody = (init: RequestInit, body: string | Uint8Array): RequestInit => ({
  ...init,
  body: body as NonNullable<RequestInit['body']>,
});

/** The message of a `fetch` error is generic; its cause has the details. */
function lostAnswer(error: unknown, what: string): EngineError {
  const { message, cause, code } = error as { message: string; cause?: Reason; code?: string };
  const why = cause?.message || cause?.code || message;
  const isUnsent = NEVER_SENT.has(cause?.code ?? code ?? '') || why.includes(NEVER_SENT_BY_DENO);
  return new EngineError({
    status: 0,
    code: isUnsent ? 'CLIENT_UNREACHABLE' : 'CLIENT_NETWORK',
    message: isUnsent ? `${what} could not connect: ${why}` : `${what} got no answer: ${why}`,
    cause: error,
  });
}

interface Reason {
  readonly message?: string;
  readonly code?: string;
}

/** Error codes of connections that were never made. */
const NEVER_SENT: ReadonlySet<string> = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'UND_ERR_CONNECT_TIMEOUT',
]);
/** Deno's errors have no codes. */
const NEVER_SENT_BY_DENO = 'client error (Connect)';

/** Whether a retry is useful and harmless. */
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
 * With jitter, so that callers that were rejected together do not retry together.
 *
 * @param tries failed attempts so far
 */
export function backoffMs(tries: number, atLeastMs = 0, longestMs = BACKOFF_MS_MAX): number {
  const growing = Math.min(BACKOFF_MS * 2 ** tries, longestMs);
  return atLeastMs + growing * (0.5 + Math.random() / 2);
}

/** Rejects with the reason of the signal if it is aborted. */
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
