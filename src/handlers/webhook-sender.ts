/** One attempt to deliver a webhook: a signed POST, protected like `http_request` (docs/webhooks.md). */

import type { Dispatcher } from 'undici';
import { ERROR_EXCERPT_MAX } from '../../schema/webhook.js';
import { type AttemptOutcome, type DeliveryErrorClass, webhookSignature } from '../core/webhook.js';
import { BlockedAddressError, checkUrl, UnresolvableHostError } from './address-guard.js';
import { textOf, Unreadable } from './http-body.js';
import {
  Deadline,
  type FollowOptions,
  follow,
  HEADERS_ACROSS_ORIGINS,
  type Hop,
  REDIRECTS_MAX,
  transportCode,
} from './http-hops.js';
import type { HttpRequestDeps } from './http-transport.js';

const ATTEMPT_TIMEOUT_MS = 10_000;
/** A short response to a success is read to its end, so that the connection can be reused. */
const DUMP_BYTES_MAX = 16 * 1024;

export interface WebhookRequest {
  readonly url: string;
  readonly body: string;
  /** The signing secret; absent: the deployment's, if there is one. */
  readonly secret?: string | undefined;
}

export interface WebhookSender {
  /** Whether webhooks with the deployment's secret are signed. */
  readonly isSigned: boolean;
  problemOf(url: string): string | undefined;
  /** Resolves when the tenant may send the next one. Absent: no limit. Never rejects. */
  readonly turn?: (tenant: string, signal: AbortSignal) => Promise<unknown>;
  /** Never rejects. Once the signal aborts it settles promptly, as `aborted`. */
  send(request: WebhookRequest, signal: AbortSignal): Promise<AttemptOutcome>;
}

export interface WebhookSenderDeps {
  readonly http: Pick<HttpRequestDeps, 'dispatcher' | 'isAllowed' | 'rate' | 'setTimer'>;
  /** The deployment's secret; undefined: not signed. */
  readonly secret: string | undefined;
  readonly now: () => number;
}

export function createWebhookSender(deps: WebhookSenderDeps): WebhookSender {
  const send: WebhookSender['send'] = async (request, signal) => {
    const target = checkUrl(request.url, deps.http.isAllowed);
    if (!target.ok) return failed('internal_policy', target.message);
    const dispatcher = await deps.http.dispatcher();
    if (dispatcher === undefined) return failed('aborted', 'the engine is stopping');
    const deadline = new Deadline(deps.http.setTimer, signal, ATTEMPT_TIMEOUT_MS);
    const chain: Chain = { redirects: 0, rest: Promise.resolve() };
    try {
      const headers = headersOf(deps, request);
      const first: Hop = { url: target.value, method: 'POST', headers, body: request.body };
      const { isAllowed } = deps.http;
      return await attempt(first, { dispatcher, isAllowed, signal: deadline.signal }, chain);
    } catch (error) {
      return transportFailure(error, deadline, signal, chain.redirects);
    } finally {
      void chain.rest.then(() => deadline.clear());
    }
  };
  const problemOf = (url: string) => {
    const target = checkUrl(url, deps.http.isAllowed);
    return target.ok ? undefined : target.message;
  };
  const { rate } = deps.http;
  return {
    isSigned: deps.secret !== undefined,
    problemOf,
    ...(rate && { turn: (tenant, signal) => rate.wait(tenant, signal) }),
    send,
  };
}

interface Chain {
  redirects: number;
  /** Settles when the rest of the response has been read. Never rejects. */
  rest: Promise<void>;
}

async function attempt(first: Hop, options: FollowOptions, chain: Chain): Promise<AttemptOutcome> {
  const result = await follow(first, {
    ...options,
    keepsPost: true,
    headersAcrossOrigins: ACROSS_ORIGINS,
    onRedirect: () => {
      chain.redirects += 1;
    },
  });
  switch (result.kind) {
    case 'too-many-redirects':
      return failed('redirect_rejected', `more than ${REDIRECTS_MAX} redirects`);
    case 'blocked':
      return failed('redirect_rejected', result.message);
    case 'answered':
      return answered(result.response, options.signal, chain);
  }
}

/** Signatures may be sent on: they protect only the body, which the other origin receives as well. */
const ACROSS_ORIGINS: ReadonlySet<string> = new Set([
  ...HEADERS_ACROSS_ORIGINS,
  'x-engine-timestamp',
  'x-engine-signature',
]);

/** Signed anew for each attempt, so that a receiver can refuse old ones. */
function headersOf(
  { secret: byDefault, now }: WebhookSenderDeps,
  { body, secret = byDefault }: WebhookRequest,
): ReadonlyMap<string, string> {
  const headers = new Map([['content-type', 'application/json']]);
  if (secret === undefined) return headers;
  const timestamp = Math.floor(now() / 1_000);
  headers.set('x-engine-timestamp', String(timestamp));
  headers.set('x-engine-signature', webhookSignature(secret, timestamp, body));
  return headers;
}

async function answered(
  response: Dispatcher.ResponseData,
  signal: AbortSignal,
  chain: Chain,
): Promise<AttemptOutcome> {
  const { statusCode, body } = response;
  if (statusCode < 400) {
    // The rest may be slow, and success does not wait for it.
    chain.rest = body.dump({ limit: DUMP_BYTES_MAX, signal }).catch(() => undefined);
    return { delivered: true, status: statusCode };
  }
  const text = await beginningOf(response);
  const excerpt = text === '' ? `status ${statusCode}` : `status ${statusCode}: ${text}`;
  return failed('http_status', excerpt, statusCode);
}

/** The text received until the body ends, fails or exceeds the excerpt. */
async function beginningOf(response: Dispatcher.ResponseData): Promise<string> {
  let text = '';
  try {
    for await (const piece of textOf(response)) {
      text += piece.text;
      // Leaving the loop destroys the body, and with it the connection.
      if (text.length >= ERROR_EXCERPT_MAX) break;
    }
  } catch (error) {
    if (error instanceof Unreadable) text ||= error.message;
  }
  return text.trim();
}

function failed(
  errorClass: DeliveryErrorClass,
  message: string,
  status?: number,
): Extract<AttemptOutcome, { delivered: false }> {
  // Without half of a surrogate pair, which Postgres cannot store.
  const excerpt = message.slice(0, ERROR_EXCERPT_MAX).replace(/[\ud800-\udbff]$/, '');
  return { delivered: false, errorClass, status, excerpt };
}

function transportFailure(
  error: unknown,
  deadline: Deadline,
  outer: AbortSignal,
  redirects: number,
): AttemptOutcome {
  if (outer.aborted) return failed('aborted', 'the attempt was given up');
  if (deadline.isOver) return failed('timeout', `no answer within ${deadline.timeoutMs} ms`);
  if (error instanceof BlockedAddressError) {
    return failed(redirects === 0 ? 'internal_policy' : 'redirect_rejected', error.message);
  }
  if (error instanceof UnresolvableHostError) return failed('dns', error.message);
  const code = transportCode(error);
  const errorClass = CLASSES.find(([pattern]) => pattern.test(code))?.[1] ?? 'other';
  return failed(errorClass, `transport error ${code}`);
}

/** By the codes of node:dns, node:tls with OpenSSL, node:net and undici, in this order. */
const CLASSES: readonly (readonly [pattern: RegExp, errorClass: DeliveryErrorClass])[] = [
  [/^(ENOTFOUND|ENODATA|ENONAME|EAI_[A-Z]+|ESERVFAIL|EREFUSED|ETIMEOUT)$/, 'dns'],
  [
    /^(ERR_TLS_|ERR_SSL_|CERT_|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_|HOSTNAME_MISMATCH|EPROTO)/,
    'tls',
  ],
  [/^UND_ERR_HEADERS_OVERFLOW$/, 'response_too_large'],
  [
    /^(ECONN[A-Z]+|E(HOST|NET)[A-Z]+|EPIPE|ETIMEDOUT|EADDRNOTAVAIL|EACCES|UND_ERR_(CONNECT_TIMEOUT|SOCKET|CLOSED))$/,
    'connect',
  ],
];
