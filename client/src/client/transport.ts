/**
 * Sends requests until one is answered: time limits, waits between tries, and which tries may follow which.
 *
 * 1. What the server refused before it did anything (429, and 503 with a known outcome) is sent again whatever it is.
 * 2. What may have been done is sent again only where that is harmless (docs/client.md).
 * 3. The server's `retry-after` is the shortest wait; without one it grows from try to try, with chance in it.
 */

import { EngineError } from './errors.js';
import { noEngine, refusalOf } from './refusals.js';

export type Fetch = (url: string, init: RequestInit) => Promise<Response>;

/** One request, ready to be sent as often as needed. */
export interface Sending {
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Uint8Array | undefined;
  /** Whether it may be sent again although it may have been done. */
  readonly isRepeatable: boolean;
  /** How long one try may take until its answer has been read; 0: as long as it takes. */
  readonly timeoutMs: number;
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
  for (let tries = 0; ; tries++) {
    sending.signal?.throwIfAborted();
    try {
      return await attempt(fetchOne, sending, read);
    } catch (error) {
      sending.signal?.throwIfAborted();
      if (!(error instanceof EngineError) || tries >= sending.retries) throw error;
      if (!mayFollow(error, sending.isRepeatable)) throw error;
      if ((error.retryAfterMs ?? 0) > RETRY_AFTER_MS_MAX) throw error;
      await sleep(backoffMs(tries, error.retryAfterMs), sending.signal);
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
  const timer = timeoutMs > 0 ? setTimeout(() => ending.abort(TIMED_OUT), timeoutMs) : undefined;
  try {
    const init = { method, headers, signal: ending.signal, redirect: 'manual' } as const;
    const response = await fetchOne(
      url,
      body === undefined ? init : { ...init, body: body as NonNullable<RequestInit['body']> },
    );
    if (!response.ok) throw await refusalOf(response);
    if (!response.headers.has('x-request-id')) throw await noEngine(response);
    return await read(response);
  } catch (error) {
    if (error instanceof EngineError) throw error;
    throw lostAnswer(error, ending.signal.reason === TIMED_OUT, `${method} ${url}`, timeoutMs);
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener('abort', leave);
  }
}

const TIMED_OUT = new Error('timed out');

function lostAnswer(cause: unknown, isLate: boolean, what: string, timeoutMs: number): EngineError {
  const { message = '', cause: inner } = cause as {
    message?: string;
    cause?: { message?: string };
  };
  const why = inner?.message || message;
  return isLate
    ? new EngineError({
        status: 0,
        code: 'CLIENT_TIMEOUT',
        message: `${what} was not answered within ${timeoutMs} ms`,
        cause,
      })
    : new EngineError({
        status: 0,
        code: 'CLIENT_NETWORK',
        message: `${what} got no answer: ${why}`,
        cause,
      });
}

/** Whether another try makes sense, and harms nobody. */
export function mayFollow(error: EngineError, isRepeatable: boolean): boolean {
  if (error.status === 429) return true;
  if (error.status === 503) {
    if (FINAL.has(error.code)) return false;
    return isRepeatable || !/outcome (?:is|may be) unknown/.test(error.message);
  }
  const isLost = error.code === 'CLIENT_NETWORK' || error.code === 'CLIENT_TIMEOUT';
  // A gateway may have passed the request on.
  return (
    (isLost || error.status === 502 || error.status === 504) &&
    isRepeatable &&
    !FINAL.has(error.code)
  );
}

/** No wait helps. */
const FINAL: ReadonlySet<string> = new Set(['ENG_SLOW_READ', 'ENG_NO_KEYS', 'ENG_DELIVERY_FAILED']);

/** Full jitter: callers that were refused together do not come back together. */
export function backoffMs(tries: number, atLeastMs = 0): number {
  const longest = Math.min(BACKOFF_MS * 2 ** tries, BACKOFF_MS_MAX);
  return atLeastMs + Math.random() * longest;
}

/** Rejects with the reason of the signal once that is aborted. */
export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted();
    const leave = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', leave);
      resolve();
    }, ms);
    signal?.addEventListener('abort', leave, { once: true });
  });
}
