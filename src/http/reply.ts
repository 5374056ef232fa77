/** What replies have in common: headers by the type of a body and by the origin of the request, and refusals. */

import { type AnswerMembers, EngineError, type ErrorCode } from '../base/errors.js';
import type { HttpReply } from './server.js';

export type HeaderList = readonly (readonly [string, string])[];

/** Why a request is not served. An `EngineError` is one; a 408 has no code in the catalogue. */
export interface Refusal {
  readonly status: number;
  readonly message: string;
  readonly code?: ErrorCode;
  readonly retryAfterMs?: number | undefined;
  readonly members?: AnswerMembers | undefined;
}

/** The caller gets no detail of a defect; the log has it under the request id. */
export const DEFECT = new EngineError('ENG_INTERNAL', 'internal error');

/** The body is the message, and the findings of a definition; the code goes into a header. */
export function refusalReply({ status, message, code, retryAfterMs, members }: Refusal): HttpReply {
  const headers: [string, string][] = [];
  if (code !== undefined) headers.push(['x-error-code', code]);
  if (retryAfterMs !== undefined) {
    headers.push(['retry-after', String(Math.ceil(retryAfterMs / 1_000))]);
  }
  if (members?.cell !== undefined) headers.push(['x-cell', members.cell]);
  return { status, body: JSON.stringify({ error: message, ...members }), headers };
}

const JSON_TYPE = 'application/json';
export const NO_HEADERS: HeaderList = [];

/** No cache may keep a JSON answer: it depends on the caller, the tenant, and whether a page is wanted. */
const JSON_HEADERS: HeaderList = [
  ['content-type', JSON_TYPE],
  ['cache-control', 'no-store'],
  ['x-content-type-options', 'nosniff'],
  ['vary', 'authorization, x-api-key, x-tenant-id, accept'],
];

export function typeOf({ body, contentType }: HttpReply): string | undefined {
  return body === undefined ? undefined : (contentType ?? JSON_TYPE);
}

/** The headers that follow from the type of a body; undefined: there is no body. */
export function typeHeaders(contentType: string | undefined): HeaderList {
  if (contentType === JSON_TYPE) return JSON_HEADERS;
  return contentType === undefined ? NO_HEADERS : [['content-type', contentType]];
}

// ---------------------------------------------------------------- cross-origin access

const METHODS = 'GET, POST, PUT, PATCH, DELETE, OPTIONS';
const REQUEST_HEADERS =
  'content-type, authorization, x-api-key, x-tenant-id, x-cell, x-trigger-secret, ' +
  'x-trigger-timestamp, x-trigger-nonce, x-engine-signature';
/** Reply headers that a script may read; without them a browser client could not page. */
const EXPOSED_HEADERS = 'link, retry-after, x-cell, x-error-code, x-next-cursor, x-request-id';
/** Chromium ignores more than two hours; a change of the list need not wait for even that long. */
const PREFLIGHT_AGE_S = '600';

export interface CorsPolicy {
  /** Headers for a reply to a request from `origin`; only `vary`, or none, for a foreign one. */
  replyHeaders(origin: string | undefined): HeaderList;
  /** What the 204 to a preflight from `origin` carries besides `replyHeaders`. */
  preflightHeaders(origin: string | undefined): HeaderList;
}

/** Compares origins exactly; `*` is any. If an origin is named, all replies depend on it, as `vary` says. */
export function corsPolicy(origins: readonly string[]): CorsPolicy {
  const isAny = origins.includes('*');
  const foreign: HeaderList = isAny || origins.length === 0 ? NO_HEADERS : [['vary', 'Origin']];
  const replies = new Map(origins.map((origin) => [origin, allowed(origin, foreign)]));
  const anyReply = isAny ? allowed('*', NO_HEADERS) : undefined;

  const replyHeaders = (origin: string | undefined): HeaderList => {
    if (origin === undefined) return foreign;
    return anyReply ?? replies.get(origin) ?? foreign;
  };
  return {
    replyHeaders,
    preflightHeaders: (origin) => (replyHeaders(origin) === foreign ? NO_HEADERS : PREFLIGHT),
  };
}

const PREFLIGHT: HeaderList = [
  ['access-control-allow-methods', METHODS],
  ['access-control-allow-headers', REQUEST_HEADERS],
  ['access-control-max-age', PREFLIGHT_AGE_S],
];

function allowed(origin: string, foreign: HeaderList): HeaderList {
  return [
    ['access-control-allow-origin', origin],
    ['access-control-expose-headers', EXPOSED_HEADERS],
    ...foreign,
  ];
}
