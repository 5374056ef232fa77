/**
 * The `http_request` handler (docs/reference/handlers.md): one HTTP exchange, redirects included,
 * within one deadline and bounded memory, and to public addresses only unless the deployment says
 * otherwise.
 *
 * It promises an outcome for everything that can happen, and text that the database can store.
 */

import type { Dispatcher } from 'undici';
import type { JsonValue } from '../base/json.js';
import type { SlotRefusal } from '../base/quota/fair-slots.js';
import {
  permanentFailure,
  retryableFailure,
  type StepFailure,
  type StepOutcome,
} from '../core/builtin.js';
import { BlockedAddressError, checkUrl, UnresolvableHostError } from './address-guard.js';
import { Deadline } from './deadline.js';
import { type AnswerBody, known, outcomeOfAnswer } from './http-answer.js';
import { RESPONSE_BYTES_MAX, TooLarge, textOf, Unreadable } from './http-body.js';
import { type Course, follow, type Hop, REDIRECTS_MAX, transportCode } from './http-hops.js';
import { type HttpParams, httpTimeoutMs, parseHttpParams } from './http-params.js';
import type { HttpRequestDeps } from './http-transport.js';
import type { EffectHandler, HandlerContext } from './registry.js';

/** A larger answer needs a place of its own in memory. So much of all others together is 32 MB. */
const SMALL_BYTES_MAX = 256 * 1024;
/**
 * The handler. What an answer comes to is said in `http-answer.ts`; transport errors fail retryably,
 * with `{code}` as details.
 */
export function createHttpRequest(deps: HttpRequestDeps): EffectHandler {
  const request = async (params: JsonValue, context: HandlerContext): Promise<StepOutcome> => {
    const parsed = parseHttpParams(params);
    if (!parsed.ok) {
      const message = `http_request: ${parsed.message}`;
      return known(permanentFailure(message, undefined, 'invalid_params'));
    }
    const target = checkUrl(parsed.value.url, deps.isAllowed);
    if (!target.ok) return blocked(target.message);
    const dispatcher = await deps.dispatcher();
    if (dispatcher === undefined) return known(refusedSlot('closed'));
    if (deps.rate !== undefined) {
      const refusal = await context.waitFor(deps.rate.wait(context.tenant, context.signal));
      if (refusal !== undefined) return known(refusedSlot(refusal));
    }
    const slots = context.isLong ? deps.longSlots : deps.slots;
    const path = [context.tenant, target.url.origin];
    const slot = await context.waitFor(slots.acquire(path, context.signal));
    if (!slot.ok) return known(refusedSlot(slot.reason));
    // The clock starts with the slot: time spent waiting for it is the engine's, not the server's.
    const deadline = new Deadline(deps.setTimer, context.signal, parsed.value.timeoutMs);
    const place = new Place(deps, deadline, context);
    try {
      const hop = firstHop(parsed.value, target.url, context);
      const course = { dispatcher, isAllowed: deps.isAllowed, signal: deadline.signal };
      return await exchange(hop, course, context, place);
    } catch (error) {
      return transportFailure(error, deadline, context.signal);
    } finally {
      deadline.clear();
      slot.release();
      if (context.whenTaken === undefined) place.release();
      else context.whenTaken(() => place.release());
    }
  };
  return Object.assign(request, { limitMs: httpTimeoutMs });
}

/**
 * Where a large answer is kept, until whoever asked for it has taken it. The wait for it is the
 * engine's time, as that for a slot is.
 */
class Place {
  readonly #deps: HttpRequestDeps;
  readonly #deadline: Deadline;
  readonly #context: HandlerContext;
  #isTaken = false;
  #release: (() => void) | undefined;

  constructor(deps: HttpRequestDeps, deadline: Deadline, context: HandlerContext) {
    this.#deps = deps;
    this.#deadline = deadline;
    this.#context = context;
  }

  /** Resolves at once when it has been taken. @throws DOMException when the request is withdrawn */
  async take(origin: string): Promise<void> {
    if (this.#isTaken) return;
    this.#isTaken = true;
    this.#deadline.clear();
    const { tenant, signal, waitFor } = this.#context;
    const slot = await waitFor(this.#deps.large.acquire([tenant, origin], signal));
    if (!slot.ok) throw new DOMException('withdrawn', 'AbortError');
    this.#release = slot.release;
    this.#deadline.restart();
  }

  release(): void {
    this.#release?.();
  }
}

/** Headers that a workflow sets itself win over the engine's. */
function firstHop(params: HttpParams, url: URL, context: HandlerContext): Hop {
  const headers = new Map([['idempotency-key', context.idempotencyKey]]);
  if (context.traceparent !== undefined) headers.set('traceparent', context.traceparent);
  for (const [name, value] of params.headers) headers.set(name, value);
  return { url, method: params.method, headers, body: params.body };
}

async function exchange(
  first: Hop,
  course: Course,
  context: HandlerContext,
  place: Place,
): Promise<StepOutcome> {
  const startedMs = context.now();
  const arrival = await follow(first, course);
  switch (arrival.kind) {
    case 'blocked':
      return blocked(`redirect: ${arrival.message}`);
    case 'too-many-redirects':
      return known(
        permanentFailure(`http_request: more than ${REDIRECTS_MAX} redirects`, {
          code: 'TOO_MANY_REDIRECTS',
        }),
      );
    case 'answered': {
      const { response, hop, redirects } = arrival;
      const status = response.statusCode;
      const body = await readBody(response, () => place.take(hop.url.origin));
      context.log.debug(
        { status, redirects, elapsed_ms: context.now() - startedMs },
        'http_request',
      );
      if (body === undefined) return tooLarge(status);
      return outcomeOfAnswer(status, response.headers, body, context.now());
    }
  }
}

/**
 * Undefined when it is over the cap.
 *
 * @param takePlace awaited before more than a small answer is kept
 */
async function readBody(
  response: Dispatcher.ResponseData,
  takePlace: () => Promise<void>,
): Promise<AnswerBody | undefined> {
  let text = '';
  try {
    for await (const piece of textOf(response)) {
      if (piece.bytes > SMALL_BYTES_MAX) await takePlace();
      text += piece.text;
    }
  } catch (error) {
    if (error instanceof TooLarge) return undefined;
    if (error instanceof Unreadable) return { problem: error.message };
    throw error;
  }
  return { text };
}

function tooLarge(status: number): StepOutcome {
  const message = `http_request: the answer is over ${RESPONSE_BYTES_MAX} bytes`;
  return known(permanentFailure(message, { status, code: 'RESPONSE_TOO_LARGE' }));
}

function blocked(message: string): StepOutcome {
  return known(permanentFailure(`http_request: ${message}`, { code: 'BLOCKED_URL' }));
}

function refusedSlot(reason: SlotRefusal): StepFailure {
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
    return known(permanentFailure(`http_request: ${error.message}`, { code: error.code }));
  }
  if (outer.aborted) return refusedSlot('aborted');
  if (deadline.isOver) {
    return retryableFailure(`http_request: no answer within ${deadline.timeoutMs} ms`, {
      code: 'TIMEOUT',
    });
  }
  const code = transportCode(error);
  const message = `http_request: transport error ${code}`;
  return UNSENDABLE_CODES.has(code)
    ? known(permanentFailure(message, { code }))
    : retryableFailure(message, { code });
}
