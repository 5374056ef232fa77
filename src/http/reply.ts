/** Shared parts of replies: headers by content type and origin, and refusals. */

import { STATUS_CODES } from 'node:http';
import { type AnswerMembers, EngineError, type ErrorCode } from '../base/errors.js';
import { valueFor } from '../base/quota/last-used.js';
import type { HttpReply } from './server.js';

export type HeaderList = readonly (readonly [string, string])[];

/** A refusal of a request. An `EngineError` is one; a 408 has no code in the catalogue. */
export interface Refusal {
  readonly status: number;
  readonly message: string;
  readonly code?: ErrorCode;
  readonly retryAfterMs?: number | undefined;
  readonly members?: AnswerMembers | undefined;
}

/** Callers get no details of a defect; the log has them under the request id. */
export const DEFECT = new EngineError('ENG_INTERNAL', 'internal error');

/** The body contains the message and further members; the code is a header. */
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

/** JSON must not be cached: it depends on the caller, the tenant and the accepted type. */
const JSON_HEADERS: HeaderList = [
  ['content-type', JSON_TYPE],
  ['cache-control', 'no-store'],
  ['x-content-type-options', 'nosniff'],
  ['vary', 'authorization, x-api-key, x-tenant-id, accept'],
];

export function typeOf({ body, contentType }: HttpReply): string | undefined {
  return body === undefined ? undefined : (contentType ?? JSON_TYPE);
}

/** Each header after a line break. */
export function headerText(headers: HeaderList): string {
  let text = '';
  for (const [name, value] of headers) text += `\r\n${name}: ${value}`;
  return text;
}

/** Beginnings of heads by type and status, mostly of JSON and of replies without a body. */
const HEADS = new Map<string | undefined, Map<number, string>>();

/** The beginning of a head: from the status to the name of `x-request-id`. @throws Error for an unknown status */
export function headText(status: number, contentType: string | undefined): string {
  const heads = valueFor(HEADS, contentType, () => new Map<number, string>());
  return valueFor(heads, status, () => newHead(status, contentType));
}

function newHead(status: number, contentType: string | undefined): string {
  const type: HeaderList = contentType === undefined ? [] : [['content-type', contentType]];
  const fields = headerText(contentType === JSON_TYPE ? JSON_HEADERS : type);
  const reason = STATUS_CODES[status];
  if (reason === undefined) throw new Error(`reply status ${status} is unknown`);
  return `${status} ${reason}${fields}\r\nx-request-id: `;
}

const METHODS = 'GET, POST, PUT, PATCH, DELETE, OPTIONS';
const REQUEST_HEADERS =
  'content-type, authorization, x-api-key, x-tenant-id, x-cell, x-trigger-secret, ' +
  'x-trigger-timestamp, x-trigger-nonce, x-engine-signature, prefer';
/** Response headers that a script may read; without them a browser client could not page. */
const EXPOSED_HEADERS =
  'link, preference-applied, retry-after, x-cell, x-error-code, x-next-cursor, x-request-id';
/** Chromium caps this at two hours; shorter, so that a changed list takes effect soon. */
const PREFLIGHT_AGE_S = '600';

export interface CorsPolicy {
  /** Headers for a reply to `origin`; at most `vary` for a foreign one. */
  replyHeaders(origin: string | undefined): HeaderList;
  /** Headers of the 204 to a preflight from `origin`, in addition to `replyHeaders`. */
  preflightHeaders(origin: string | undefined): HeaderList;
}

/** Compares origins exactly; `*` is any. With configured origins every reply depends on the origin, hence `vary`. */
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
