/**
 * The `http_request` handler (docs/reference/handlers.md): one HTTP exchange with redirects, within one deadline and
 * bounded memory. Every result is an outcome, with text that Postgres can store.
 */

import type { Dispatcher } from 'undici';
import type { JsonObject, JsonValue } from '../base/json.js';
import { parseJson } from '../base/json-guard.js';
import type { SlotRefusal } from '../base/quota/fair-slots.js';
import {
  permanentFailure,
  retryableFailure,
  type StepFailure,
  type StepOutcome,
} from '../core/builtin.js';
import { BlockedAddressError, checkUrl, UnresolvableHostError } from './address-guard.js';
import { RESPONSE_BYTES_MAX, TooLarge, textOf, Unreadable } from './http-body.js';
import {
  Deadline,
  type FollowOptions,
  follow,
  type Hop,
  REDIRECTS_MAX,
  transportCode,
} from './http-hops.js';
import { type HttpParams, httpTimeoutMs, parseHttpParams } from './http-params.js';
import type { HttpRequestDeps } from './http-transport.js';
import type { EffectHandler, HandlerContext } from './registry.js';

/** Larger responses need a slot for their memory. All smaller ones together take 32 MB. */
const SMALL_BYTES_MAX = 256 * 1024;
/** Transport errors fail retryably, with `{code}` as details. */
export function createHttpRequest(deps: HttpRequestDeps): EffectHandler {
  const request = async (params: JsonValue, context: HandlerContext): Promise<StepOutcome> => {
    const parsed = parseHttpParams(params);
    if (!parsed.ok) return permanent(parsed.message, undefined, 'invalid_params');
    const target = checkUrl(parsed.value.url, deps.isAllowed);
    if (!target.ok) return blocked(target.message);
    const dispatcher = await deps.dispatcher();
    if (dispatcher === undefined) return known(refusedSlot('closed'));
    if (deps.rate !== undefined) {
      const refusal = await context.waitFor(deps.rate.wait(context.tenant, context.signal));
      if (refusal !== undefined) return known(refusedSlot(refusal));
    }
    const slots = context.isLong ? deps.longSlots : deps.slots;
    const path = [context.tenant, target.value.origin];
    const slot = await context.waitFor(slots.acquire(path, context.signal));
    if (!slot.ok) return known(refusedSlot(slot.reason));
    // The deadline starts with the slot: waiting for it is the engine's time, not the server's.
    const deadline = new Deadline(deps.setTimer, context.signal, parsed.value.timeoutMs);
    const large = largeSlot(deps, deadline, context);
    try {
      const hop = firstHop(parsed.value, target.value, context);
      const options = { dispatcher, isAllowed: deps.isAllowed, signal: deadline.signal };
      return await exchange(hop, options, context, large.take);
    } catch (error) {
      return transportFailure(error, deadline, context.signal);
    } finally {
      deadline.clear();
      slot.release();
      if (context.whenTaken === undefined) large.release();
      else context.whenTaken(large.release);
    }
  };
  return Object.assign(request, { limitMs: httpTimeoutMs });
}

/** The memory slot of a large response. The wait for the slot stops the deadline. */
function largeSlot(deps: HttpRequestDeps, deadline: Deadline, context: HandlerContext) {
  let isTaken = false;
  let release: (() => void) | undefined;
  const take = async (origin: string): Promise<void> => {
    if (isTaken) return;
    isTaken = true;
    deadline.clear();
    const { tenant, signal, waitFor } = context;
    const slot = await waitFor(deps.large.acquire([tenant, origin], signal));
    if (!slot.ok) throw new DOMException('withdrawn', 'AbortError');
    release = slot.release;
    deadline.restart();
  };
  return { take, release: () => release?.() };
}

/** Headers of the workflow override the engine's. */
function firstHop(params: HttpParams, url: URL, context: HandlerContext): Hop {
  const headers = new Map([['idempotency-key', context.idempotencyKey]]);
  if (context.traceparent !== undefined) headers.set('traceparent', context.traceparent);
  for (const [name, value] of params.headers) headers.set(name, value);
  return { url, method: params.method, headers, body: params.body };
}

async function exchange(
  first: Hop,
  options: FollowOptions,
  context: HandlerContext,
  takeLarge: (origin: string) => Promise<void>,
): Promise<StepOutcome> {
  const startedMs = context.now();
  const result = await follow(first, options);
  switch (result.kind) {
    case 'blocked':
      return blocked(`redirect: ${result.message}`);
    case 'too-many-redirects':
      return permanent(`more than ${REDIRECTS_MAX} redirects`, { code: 'TOO_MANY_REDIRECTS' });
    case 'answered': {
      const { response, hop, redirects } = result;
      const status = response.statusCode;
      const body = await readBody(response, () => takeLarge(hop.url.origin));
      context.log.debug(
        { status, redirects, elapsed_ms: context.now() - startedMs },
        'http_request',
      );
      if (body === undefined) {
        const message = `the answer is over ${RESPONSE_BYTES_MAX} bytes`;
        return permanent(message, { status, code: 'RESPONSE_TOO_LARGE' });
      }
      return outcomeOfAnswer(status, response.headers, body, context.now());
    }
  }
}

/** Undefined over the limit. @param takeLarge awaited before more than a small body is kept */
async function readBody(
  response: Dispatcher.ResponseData,
  takeLarge: () => Promise<void>,
): Promise<AnswerBody | undefined> {
  let text = '';
  try {
    for await (const piece of textOf(response)) {
      if (piece.bytes > SMALL_BYTES_MAX) await takeLarge();
      text += piece.text;
    }
  } catch (error) {
    if (error instanceof TooLarge) return undefined;
    if (error instanceof Unreadable) return { problem: error.message };
    throw error;
  }
  return { text };
}

function permanent(...[message, details, code]: Parameters<typeof permanentFailure>): StepFailure {
  return known(permanentFailure(`http_request: ${message}`, details, code));
}

function retryable(message: string, code: string): StepFailure {
  return retryableFailure(`http_request: ${message}`, { code });
}

function blocked(message: string): StepOutcome {
  return permanent(message, { code: 'BLOCKED_URL' });
}

const REFUSALS: Readonly<Record<SlotRefusal, readonly [message: string, code: string]>> = {
  aborted: ['aborted', 'ABORTED'],
  full: ['too many requests are waiting', 'OVERLOADED'],
  closed: ['the engine is stopping', 'STOPPING'],
};

function refusedSlot(reason: SlotRefusal): StepFailure {
  return retryable(...REFUSALS[reason]);
}

/** The errors of undici for a request that cannot be sent at all. */
const UNSENDABLE_CODES: ReadonlySet<string> = new Set([
  'UND_ERR_INVALID_ARG',
  'UND_ERR_NOT_SUPPORTED',
]);

function transportFailure(error: unknown, deadline: Deadline, outer: AbortSignal): StepOutcome {
  if (error instanceof BlockedAddressError || error instanceof UnresolvableHostError) {
    return permanent(error.message, { code: error.code });
  }
  if (outer.aborted) return refusedSlot('aborted');
  if (deadline.isOver) return retryable(`no answer within ${deadline.timeoutMs} ms`, 'TIMEOUT');
  const code = transportCode(error);
  const message = `transport error ${code}`;
  return UNSENDABLE_CODES.has(code) ? permanent(message, { code }) : retryable(message, code);
}

/** Above it `json` would only repeat a large body. */
const JSON_CHARACTERS_MAX = 1024 * 1024;
/** Caps what a server asks for. */
export const RETRY_AFTER_MS_MAX = 24 * 60 * 60 * 1_000;
/** Client errors that are temporary: timeout, too early, too many requests. */
const RETRYABLE_STATUSES: ReadonlySet<number> = new Set([408, 425, 429]);
export type ResponseHeaders = Readonly<Record<string, string | string[] | undefined>>;
type AnswerBody = { readonly text: string } | { readonly problem: string };

/** @param now Unix ms, for a `Retry-After` that is a date */
export function outcomeOfAnswer(
  status: number,
  headers: ResponseHeaders,
  body: AnswerBody,
  now: number,
): StepOutcome {
  const fields = textsOf(headers);
  const seen: JsonObject = { status, headers: fields, ...bodyOf(body, fields) };
  if (status < 400) return { kind: 'success', output: seen };
  const message = `http_request: status ${status}`;
  if (status < 500 && !RETRYABLE_STATUSES.has(status)) {
    return known(permanentFailure(message, seen));
  }
  const waitMs = retryAfterMs(String(fields['retry-after'] ?? ''), now);
  const failed = known(retryableFailure(message, seen));
  return waitMs === undefined ? failed : { ...failed, retryAfterMs: waitMs };
}

/** Marks a failure whose effect is certain: the request was answered, or never sent. */
function known(failure: StepFailure): StepFailure {
  return { ...failure, isKnown: true };
}

/** By name in lower case, as undici provides them; repeated headers are joined by commas. */
function textsOf(headers: ResponseHeaders): JsonObject {
  const texts: [string, string][] = [];
  for (const [name, value] of Object.entries(headers)) {
    if (value === undefined) continue;
    texts.push([name, Array.isArray(value) ? value.join(', ') : value]);
  }
  // fromEntries defines own properties, whatever their names are.
  return Object.fromEntries(texts);
}

function bodyOf(body: AnswerBody, fields: JsonObject): JsonObject {
  if ('problem' in body) return { body: null, body_problem: body.problem };
  const { text } = body;
  const json = jsonOf(String(fields['content-type'] ?? ''), text);
  return {
    body: text,
    ...(json === undefined ? {} : { json }),
    ...(text.includes(REPLACEMENT) ? { body_problem: REPLACED } : {}),
  };
}

const REPLACEMENT = '\ufffd';
const REPLACED = 'U+FFFD stands for bytes that are no character';

/** Undefined also for JSON that would change when stored, such as numbers beyond 2^53. */
function jsonOf(contentType: string, body: string): JsonValue | undefined {
  if (!/^application\/(?:[\w.+-]+\+)?json\b/i.test(contentType)) return undefined;
  if (body.length > JSON_CHARACTERS_MAX) return undefined;
  const parsed = parseJson(body);
  return parsed.ok ? (parsed.value as JsonValue) : undefined;
}

/** Seconds or a date, of which a past one is 0; undefined for anything else. */
export function retryAfterMs(text: string, now: number): number | undefined {
  const ms = /^\d+$/.test(text) ? Number(text) * 1_000 : Date.parse(text) - now;
  return Number.isNaN(ms) ? undefined : Math.min(Math.max(ms, 0), RETRY_AFTER_MS_MAX);
}
