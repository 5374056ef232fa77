/**
 * The `http_request` handler (02 §12, 06 row 65): one HTTP exchange, redirects included, within one
 * deadline and bounded memory, and to public addresses only unless the deployment says otherwise.
 *
 * It promises an outcome for everything that can happen, and text that the database can store.
 */

import type { Dispatcher } from 'undici';
import { permanentFailure, retryableFailure, type StepOutcome } from '../core/builtin.js';
import { BlockedAddressError, checkUrl, UnresolvableHostError } from './address-guard.js';
import { Deadline } from './deadline.js';
import { type HttpMethod, type HttpParams, parseHttpParams } from './http-params.js';
import type { HttpRequestDeps } from './http-transport.js';
import type { SlotRefusal } from './origin-slots.js';
import type { EffectHandler, HandlerContext } from './registry.js';

/** 02 §12: a larger answer is a permanent failure. */
const RESPONSE_BYTES_MAX = 10 * 1024 * 1024;
/** A larger answer needs a place of its own in memory. So much of all others together is 32 MB. */
const SMALL_BYTES_MAX = 256 * 1024;
/** 02 §12. */
const REDIRECTS_MAX = 10;
/** The body of a redirect is read this far, so that its connection can be used again. */
const REDIRECT_BODY_BYTES_MAX = 16 * 1024;
/**
 * The handler. Output `{status, body}` for 2xx and 3xx that were not followed; 4xx fail permanently,
 * 5xx and transport errors retryably, with `{status, body}` or `{code}` as details.
 */
export function createHttpRequest(deps: HttpRequestDeps): EffectHandler {
  return async (params, context) => {
    const parsed = parseHttpParams(params);
    if (!parsed.ok) return permanentFailure(`http_request: ${parsed.message}`);
    const target = checkUrl(parsed.value.url, deps.isAllowed);
    if (!target.ok) return blocked(target.message);
    const slot = await deps.slots.acquire(target.url.origin, context.signal);
    if (!slot.ok) return refusedSlot(slot.reason);
    // The clock starts with the slot: time spent waiting for it is the engine's, not the server's.
    const deadline = new Deadline(deps.setTimer, context.signal, parsed.value.timeoutMs);
    const place = new Place(deps, deadline, context.signal);
    try {
      return await exchange(
        deps,
        firstHop(parsed.value, target.url, context),
        deadline.signal,
        context,
        place,
      );
    } catch (error) {
      return transportFailure(error, deadline, context.signal);
    } finally {
      deadline.clear();
      slot.release();
      if (context.whenTaken === undefined) place.release();
      else context.whenTaken(() => place.release());
    }
  };
}

/**
 * Where a large answer is kept, until whoever asked for it has taken it. The wait for it is the
 * engine's time, as that for a slot is.
 */
class Place {
  readonly #deps: HttpRequestDeps;
  readonly #deadline: Deadline;
  readonly #signal: AbortSignal;
  #isTaken = false;
  #release: (() => void) | undefined;

  constructor(deps: HttpRequestDeps, deadline: Deadline, signal: AbortSignal) {
    this.#deps = deps;
    this.#deadline = deadline;
    this.#signal = signal;
  }

  /** Resolves at once when it has been taken. @throws DOMException when the request is withdrawn */
  async take(origin: string): Promise<void> {
    if (this.#isTaken) return;
    this.#isTaken = true;
    this.#deadline.pause();
    const slot = await this.#deps.large.acquire(origin, this.#signal);
    if (!slot.ok) throw new DOMException('withdrawn', 'AbortError');
    this.#release = slot.release;
    this.#deadline.restart();
  }

  release(): void {
    this.#release?.();
  }
}

/** One request of the chain. */
interface Hop {
  readonly url: URL;
  readonly method: HttpMethod;
  readonly headers: ReadonlyMap<string, string>;
  readonly body: string | undefined;
}

/** Headers that a workflow sets itself win over the engine's. */
function firstHop(params: HttpParams, url: URL, context: HandlerContext): Hop {
  const headers = new Map([['idempotency-key', context.idempotencyToken]]);
  if (context.traceparent !== undefined) headers.set('traceparent', context.traceparent);
  for (const [name, value] of params.headers) headers.set(name, value);
  return { url, method: params.method, headers, body: params.body };
}

async function exchange(
  deps: HttpRequestDeps,
  first: Hop,
  signal: AbortSignal,
  context: HandlerContext,
  place: Place,
): Promise<StepOutcome> {
  const startedMs = context.now();
  let hop = first;
  for (let redirects = 0; ; redirects += 1) {
    const response = await send(deps.dispatcher, hop, signal);
    const status = response.statusCode;
    const location = redirectLocation(response);
    if (location === undefined) {
      const text = await readText(response, () => place.take(hop.url.origin));
      context.log.debug(
        { status, redirects, elapsed_ms: context.now() - startedMs },
        'http_request',
      );
      return answered(status, text);
    }
    await response.body.dump({ limit: REDIRECT_BODY_BYTES_MAX, signal });
    if (redirects === REDIRECTS_MAX) {
      return permanentFailure(`http_request: more than ${REDIRECTS_MAX} redirects`, {
        code: 'TOO_MANY_REDIRECTS',
      });
    }
    const target = checkUrl(location, deps.isAllowed, hop.url);
    if (!target.ok) return blocked(`redirect: ${target.message}`);
    hop = nextHop(hop, status, target.url);
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
const HEADERS_ACROSS_ORIGINS: ReadonlySet<string> = new Set([
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
function nextHop(hop: Hop, status: number, url: URL): Hop {
  const becomesGet =
    (status === 303 && hop.method !== 'HEAD') ||
    ((status === 301 || status === 302) && hop.method === 'POST');
  const isSameOrigin = url.origin === hop.url.origin;
  const headers = new Map<string, string>();
  for (const [name, value] of hop.headers) {
    if (becomesGet && name.startsWith('content-')) continue;
    if (isSameOrigin || HEADERS_ACROSS_ORIGINS.has(name)) headers.set(name, value);
  }
  return becomesGet
    ? { url, method: 'GET', headers, body: undefined }
    : { url, method: hop.method, headers, body: hop.body };
}

/**
 * The body as text, or undefined when it is over the cap. Bytes that are not UTF-8 become U+FFFD, and
 * so does NUL, which Postgres cannot store; a decoder never yields a lone surrogate.
 *
 * @param takePlace awaited before more than a small answer is kept
 */
async function readText(
  response: Dispatcher.ResponseData,
  takePlace: () => Promise<void>,
): Promise<string | undefined> {
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
  let bytes = 0;
  let text = '';
  for await (const chunk of response.body) {
    bytes += chunk.byteLength;
    // Leaving the loop destroys the body, and with it the connection.
    if (bytes > RESPONSE_BYTES_MAX) return undefined;
    if (bytes > SMALL_BYTES_MAX) await takePlace();
    invalidateNul(chunk);
    text += decoder.decode(chunk, { stream: true });
  }
  return text + decoder.decode();
}

/**
 * Turns NUL into a byte that UTF-8 never has, which the decoder then replaces. Done on the text, ten
 * megabytes of NUL would hold the thread for two seconds; done on bytes, for 25 ms.
 */
function invalidateNul(chunk: Uint8Array): void {
  for (let at = chunk.indexOf(0); at !== -1 && at < chunk.length; at += 1) {
    if (chunk[at] === 0) chunk[at] = 0xff;
  }
}

function answered(status: number, body: string | undefined): StepOutcome {
  if (body === undefined) {
    return permanentFailure(`http_request: the answer is over ${RESPONSE_BYTES_MAX} bytes`, {
      status,
      code: 'RESPONSE_TOO_LARGE',
    });
  }
  if (status >= 500) return retryableFailure(`http_request: status ${status}`, { status, body });
  if (status >= 400) return permanentFailure(`http_request: status ${status}`, { status, body });
  return { kind: 'success', output: { status, body } };
}

function blocked(message: string): StepOutcome {
  return permanentFailure(`http_request: ${message}`, { code: 'BLOCKED_URL' });
}

function refusedSlot(reason: SlotRefusal): StepOutcome {
  switch (reason) {
    case 'aborted':
      return retryableFailure('http_request: aborted', { code: 'ABORTED' });
    case 'full':
      return retryableFailure('http_request: too many requests are waiting', {
        code: 'OVERLOADED',
      });
    case 'closed':
      return retryableFailure('http_request: the engine is stopping', { code: 'STOPPING' });
  }
}

/** What undici says of a request that cannot be made at all; everything else is trouble on the way. */
const UNSENDABLE_CODES: ReadonlySet<string> = new Set([
  'UND_ERR_INVALID_ARG',
  'UND_ERR_NOT_SUPPORTED',
]);

function transportFailure(error: unknown, deadline: Deadline, outer: AbortSignal): StepOutcome {
  if (error instanceof BlockedAddressError || error instanceof UnresolvableHostError) {
    return permanentFailure(`http_request: ${error.message}`, { code: error.code });
  }
  if (outer.aborted) return refusedSlot('aborted');
  if (deadline.isOver) {
    return retryableFailure(`http_request: no answer within ${deadline.timeoutMs} ms`, {
      code: 'TIMEOUT',
    });
  }
  const code = errorCode(error);
  const outcome = UNSENDABLE_CODES.has(code) ? permanentFailure : retryableFailure;
  return outcome(`http_request: transport error ${code}`, { code });
}

/** The code alone: messages of the network stack name the addresses behind a host. */
function errorCode(error: unknown): string {
  if (error instanceof Error && 'code' in error && typeof error.code === 'string')
    return error.code;
  return error instanceof Error ? error.name : 'UNKNOWN';
}
