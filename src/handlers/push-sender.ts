/**
 * Delivers one task to a worker endpoint: a signed POST, protected like `http_request`, without redirects
 * (docs/push-workers.md). Tells exactly whether the request was sent: the body is read only once a connection is open.
 */

import type { Readable } from 'node:stream';
import type { Dispatcher } from 'undici';
import { messageSignature } from '../core/message-signature.js';
import { checkUrl } from './address-guard.js';
import { RESPONSE_BYTES_MAX, TooLarge, textOf, Unreadable } from './http-body.js';
import { Deadline, transportCode } from './http-hops.js';
import { retryAfterMs } from './http-request.js';
import type { HttpRequestDeps } from './http-transport.js';

export interface PushRequest {
  readonly tenant: string;
  readonly url: string;
  readonly secret: string;
  /** The id of the message: the same for a repetition of the same claim only. */
  readonly id: string;
  readonly body: string;
  readonly idempotencyKey: string;
  readonly traceparent: string | undefined;
  readonly timeoutMs: number;
}

export interface PushAnswer {
  readonly kind: 'answered';
  readonly status: number;
  readonly retryAfterMs: number | undefined;
  readonly text: string;
  /** Why the body could not be read. */
  readonly problem?: string;
  /** Called when the text is no longer kept. */
  readonly free: () => void;
}

/**
 * - `unsent`: no byte of the request has left
 * - `broken`: the connection failed afterwards, so the receiver may have worked
 * - `aborted`: by the signal
 */
export type PushReply =
  | PushAnswer
  | { readonly kind: 'unsent' | 'broken'; readonly reason: string }
  | { readonly kind: 'timeout' | 'aborted' };

export interface PushSender {
  /** Never rejects. Once the signal aborts it settles promptly, as `aborted`. */
  send(request: PushRequest, signal: AbortSignal): Promise<PushReply>;
}

export interface PushSenderDeps {
  readonly http: Pick<HttpRequestDeps, 'dispatcher' | 'isAllowed' | 'rate' | 'setTimer' | 'large'>;
  readonly now: () => number;
}

/** A larger body takes one of the slots for large ones. */
const SMALL_BYTES_MAX = 64 * 1024;
const ABORTED = { kind: 'aborted' } as const;

export function createPushSender(deps: PushSenderDeps): PushSender {
  return {
    async send(request, signal) {
      const { http } = deps;
      const target = checkUrl(request.url, http.isAllowed);
      if (!target.ok) return { kind: 'unsent', reason: target.message };
      if ((await http.rate?.wait(request.tenant, signal)) !== undefined) return ABORTED;
      const dispatcher = await http.dispatcher();
      if (dispatcher === undefined || signal.aborted) return ABORTED;
      const deadline = new Deadline(http.setTimer, signal, request.timeoutMs);
      const body = new OnceBody(request.body);
      try {
        const response = await dispatcher.request({
          origin: target.value.origin,
          path: target.value.pathname + target.value.search,
          method: 'POST',
          headers: headersOf(request, body.bytes.length, deps.now()),
          // The client accepts any iterable, which its types leave out.
          body: body as unknown as Readable,
          signal: deadline.signal,
        });
        return await answered(deps, request, response, deadline.signal);
      } catch (error) {
        if (signal.aborted) return ABORTED;
        if (!body.isSent) return { kind: 'unsent', reason: reasonOf(error, deadline) };
        if (deadline.isOver) return { kind: 'timeout' };
        return { kind: 'broken', reason: reasonOf(error, deadline) };
      } finally {
        deadline.clear();
      }
    },
  };
}

/** A body that knows whether it was read, which the client does when it begins to write to an open connection. */
class OnceBody implements AsyncIterable<Buffer> {
  readonly bytes: Buffer;
  isSent = false;

  constructor(text: string) {
    this.bytes = Buffer.from(text);
  }

  async *[Symbol.asyncIterator]() {
    this.isSent = true;
    yield this.bytes;
  }
}

function headersOf(request: PushRequest, bytes: number, now: number): Record<string, string> {
  const { secret, id, body, idempotencyKey, traceparent } = request;
  const timestamp = Math.floor(now / 1_000);
  return {
    'content-type': 'application/json',
    'content-length': String(bytes),
    'webhook-id': id,
    'webhook-timestamp': String(timestamp),
    'webhook-signature': messageSignature(secret, { id, timestamp, body }),
    'idempotency-key': idempotencyKey,
    ...(traceparent === undefined ? {} : { traceparent }),
  };
}

async function answered(
  { http, now }: PushSenderDeps,
  { tenant, url }: PushRequest,
  response: Dispatcher.ResponseData,
  signal: AbortSignal,
): Promise<PushReply> {
  const { statusCode: status, headers } = response;
  const after = retryAfterMs(String(headers['retry-after'] ?? ''), now());
  const seen = { kind: 'answered', status, retryAfterMs: after } as const;
  let release: (() => void) | undefined;
  const free = () => release?.();
  let text = '';
  try {
    for await (const piece of textOf(response, isSuccess(status))) {
      if (piece.bytes > SMALL_BYTES_MAX && release === undefined) {
        const slot = await http.large.acquire([tenant, new URL(url).origin], signal);
        if (!slot.ok) throw new DOMException('aborted', 'AbortError');
        release = slot.release;
      }
      text += piece.text;
    }
  } catch (error) {
    free();
    if (error instanceof TooLarge) {
      return { ...seen, text: '', free, problem: `the body is over ${RESPONSE_BYTES_MAX} bytes` };
    }
    if (error instanceof Unreadable) return { ...seen, text: '', free, problem: error.message };
    throw error;
  }
  return { ...seen, text, free };
}

/** What becomes an output must be exactly what was sent; other texts are only shown. */
const isSuccess = (status: number) => status >= 200 && status < 300;

function reasonOf(error: unknown, deadline: Deadline): string {
  if (deadline.isOver) return `no connection within ${deadline.timeoutMs} ms`;
  const code = transportCode(error);
  const isOwn = error instanceof Error && /^(BLOCKED_ADDRESS|UNRESOLVABLE_HOST)$/.test(code);
  return isOwn ? error.message : `transport error ${code}`;
}
