/**
 * One HTTP exchange as a chain of hops: the request, and the redirects that its answers ask for. Every
 * hop is judged before it is taken, so that no redirect leads where the first address may not.
 */

import type { Dispatcher } from 'undici';
import { type AddressPolicy, checkUrl } from './address-guard.js';
import type { HttpMethod } from './http-params.js';

/** Of `http_request` and of webhooks (docs/reference/handlers.md). */
export const REDIRECTS_MAX = 10;
/** The body of a redirect is read this far, so that its connection can be used again. */
const REDIRECT_BODY_BYTES_MAX = 16 * 1024;

/** One request of the chain. */
export interface Hop {
  readonly url: URL;
  readonly method: HttpMethod;
  readonly headers: ReadonlyMap<string, string>;
  readonly body: string | undefined;
}

export interface Course {
  readonly dispatcher: Dispatcher;
  readonly isAllowed: AddressPolicy;
  readonly signal: AbortSignal;
  /** Absent: `HEADERS_ACROSS_ORIGINS`. */
  readonly headersAcrossOrigins?: ReadonlySet<string>;
  /** A POST stays a POST at 301 and 302. Absent: it becomes a GET, as in browsers. */
  readonly keepsPost?: true;
  /** Told before a redirect is followed. */
  readonly onRedirect?: () => void;
}

/** An answer that leads no further, or why a redirect was not followed. */
export type Arrival =
  | {
      readonly kind: 'answered';
      readonly response: Dispatcher.ResponseData;
      readonly hop: Hop;
      readonly redirects: number;
    }
  | { readonly kind: 'blocked'; readonly message: string }
  | { readonly kind: 'too-many-redirects' };

/** @throws what the dispatcher throws: transport errors, refused addresses, the signal's abort */
export async function follow(first: Hop, course: Course): Promise<Arrival> {
  const { dispatcher, isAllowed, signal } = course;
  let hop = first;
  for (let redirects = 0; ; redirects += 1) {
    const response = await send(dispatcher, hop, signal);
    const location = redirectLocation(response);
    if (location === undefined) return { kind: 'answered', response, hop, redirects };
    await response.body.dump({ limit: REDIRECT_BODY_BYTES_MAX, signal });
    if (redirects === REDIRECTS_MAX) return { kind: 'too-many-redirects' };
    const target = checkUrl(location, isAllowed, hop.url);
    if (!target.ok) return { kind: 'blocked', message: target.message };
    course.onRedirect?.();
    hop = nextHop(hop, response.statusCode, target.url, course);
  }
}

function send(
  dispatcher: Dispatcher,
  hop: Hop,
  signal: AbortSignal,
): Promise<Dispatcher.ResponseData> {
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

/** What another origin may see of a request: what describes the content, and the engine's own. */
export const HEADERS_ACROSS_ORIGINS: ReadonlySet<string> = new Set([
  'accept',
  'accept-language',
  'content-language',
  'content-type',
  'idempotency-key',
  'traceparent',
  'user-agent',
]);

/**
 * The request that a redirect asks for, by the Fetch standard: 303 turns everything but HEAD into GET,
 * 301 and 302 turn POST into GET, 307 and 308 repeat the request. Towards another origin every header
 * that may hold a secret is left out, and stays out if a later hop leads back.
 */
function nextHop(hop: Hop, status: number, url: URL, course: Course): Hop {
  const isPostToGet = hop.method === 'POST' && course.keepsPost !== true;
  const becomesGet =
    (status === 303 && hop.method !== 'HEAD') ||
    ((status === 301 || status === 302) && isPostToGet);
  const isSameOrigin = url.origin === hop.url.origin;
  const across = course.headersAcrossOrigins ?? HEADERS_ACROSS_ORIGINS;
  const headers = new Map<string, string>();
  for (const [name, value] of hop.headers) {
    if (becomesGet && name.startsWith('content-')) continue;
    if (isSameOrigin || across.has(name)) headers.set(name, value);
  }
  return becomesGet
    ? { url, method: 'GET', headers, body: undefined }
    : { url, method: hop.method, headers, body: hop.body };
}

/** What a transport error is called: its messages name the addresses behind a host. */
export function transportCode(error: unknown): string {
  if (error instanceof Error && 'code' in error && typeof error.code === 'string') {
    return error.code;
  }
  return error instanceof Error ? error.name : 'UNKNOWN';
}
