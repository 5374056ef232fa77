/** One HTTP exchange with its redirects. Every hop is checked before it is requested. */

import type { Dispatcher } from 'undici';
import { type AddressPolicy, checkUrl } from './address-guard.js';
import type { HttpMethod } from './http-params.js';

export const REDIRECTS_MAX = 10;
/** The body of a redirect is read up to here, so that its connection can be reused. */
const REDIRECT_BODY_BYTES_MAX = 16 * 1024;

export interface Hop {
  readonly url: URL;
  readonly method: HttpMethod;
  readonly headers: ReadonlyMap<string, string>;
  readonly body: string | undefined;
}

export interface FollowOptions {
  readonly dispatcher: Dispatcher;
  readonly isAllowed: AddressPolicy;
  readonly signal: AbortSignal;
  readonly headersAcrossOrigins?: ReadonlySet<string>;
  /** Keeps a POST at 301 and 302. Absent: it becomes a GET, as in browsers. */
  readonly keepsPost?: true;
  readonly onRedirect?: () => void;
}

export type FollowResult =
  | {
      readonly kind: 'answered';
      readonly response: Dispatcher.ResponseData;
      readonly hop: Hop;
      readonly redirects: number;
    }
  | { readonly kind: 'blocked'; readonly message: string }
  | { readonly kind: 'too-many-redirects' };

/** @throws what the dispatcher throws: transport errors, refused addresses, the signal's abort */
export async function follow(first: Hop, options: FollowOptions): Promise<FollowResult> {
  const { dispatcher, isAllowed, signal } = options;
  let hop = first;
  for (let redirects = 0; ; redirects += 1) {
    const response = await send(dispatcher, hop, signal);
    const location = redirectLocation(response);
    if (location === undefined) return { kind: 'answered', response, hop, redirects };
    await response.body.dump({ limit: REDIRECT_BODY_BYTES_MAX, signal });
    if (redirects === REDIRECTS_MAX) return { kind: 'too-many-redirects' };
    const target = checkUrl(location, isAllowed, hop.url);
    if (!target.ok) return { kind: 'blocked', message: target.message };
    options.onRedirect?.();
    hop = nextHop(hop, response.statusCode, target.value, options);
  }
}

function send(dispatcher: Dispatcher, hop: Hop, signal: AbortSignal) {
  return dispatcher.request({
    origin: hop.url.origin,
    path: hop.url.pathname + hop.url.search,
    method: hop.method,
    headers: hop.headers,
    body: hop.body ?? null,
    signal,
  });
}

const REDIRECT_STATUSES: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);

function redirectLocation(response: Dispatcher.ResponseData): string | undefined {
  if (!REDIRECT_STATUSES.has(response.statusCode)) return undefined;
  const location = response.headers.location;
  return Array.isArray(location) ? location[0] : location;
}

/** The headers that another origin may receive: those that describe the content, and the engine's own. */
export const HEADERS_ACROSS_ORIGINS: ReadonlySet<string> = new Set([
  ...['accept', 'accept-language', 'content-language', 'content-type', 'idempotency-key'],
  ...['traceparent', 'user-agent'],
]);

/**
 * The next request, by the Fetch standard: 303 turns everything but HEAD into GET, 301 and 302 turn POST into GET.
 * Headers that may hold a secret are dropped at another origin, even if a later hop leads back.
 */
function nextHop(hop: Hop, status: number, url: URL, options: FollowOptions): Hop {
  const isPostToGet = hop.method === 'POST' && options.keepsPost !== true;
  const becomesGet =
    (status === 303 && hop.method !== 'HEAD') ||
    ((status === 301 || status === 302) && isPostToGet);
  const isSameOrigin = url.origin === hop.url.origin;
  const across = options.headersAcrossOrigins ?? HEADERS_ACROSS_ORIGINS;
  const headers = new Map<string, string>();
  for (const [name, value] of hop.headers) {
    if (becomesGet && name.startsWith('content-')) continue;
    if (isSameOrigin || across.has(name)) headers.set(name, value);
  }
  const { method, body } = becomesGet ? { method: 'GET' as const, body: undefined } : hop;
  return { url, method, headers, body };
}

/** The code of a transport error; its message would reveal the address of the host. */
export function transportCode(error: unknown): string {
  if (error instanceof Error && 'code' in error && typeof error.code === 'string') {
    return error.code;
  }
  return error instanceof Error ? error.name : 'UNKNOWN';
}

/** Runs `callback` once after the delay, unless the returned function is called first. */
export type SetTimer = (callback: () => void, delayMs: number) => () => void;

export const systemTimer: SetTimer = (callback, delayMs) => {
  const timer = setTimeout(callback, delayMs);
  return () => clearTimeout(timer);
};

/** The time limit of a call, from its construction until it is cleared. */
export class Deadline {
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
  readonly #over = new AbortController();
  readonly #setTimer: SetTimer;
  #clearTimer: () => void = () => undefined;

  constructor(setTimer: SetTimer, outer: AbortSignal, timeoutMs: number) {
    this.timeoutMs = timeoutMs;
    this.signal = AbortSignal.any([outer, this.#over.signal]);
    this.#setTimer = setTimer;
    this.restart();
  }

  /** Whether the time limit, and not the caller, ended the request. */
  get isOver(): boolean {
    return this.#over.signal.aborted;
  }

  restart(): void {
    this.#clearTimer = this.#setTimer(() => this.#over.abort(), this.timeoutMs);
  }

  /** Stops the clock: later time does not count. */
  clear(): void {
    this.#clearTimer();
  }
}
