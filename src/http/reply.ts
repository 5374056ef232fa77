/** What replies have in common: the headers that follow from the type of a body, and the form of refusals. */

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

/**
 * Every JSON answer, refusals included, is for one caller and true for now: no cache may keep it. It depends on the
 * caller, the tenant, and whether a page is wanted.
 */
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
