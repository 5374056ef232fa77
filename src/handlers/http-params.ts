/** Parses the parameters of `http_request` (docs/reference/handlers.md). Null counts as absent. Pure. */

import {
  HTTP_METHOD_DEFAULT,
  HTTP_METHODS,
  HTTP_TIMEOUT_MS_DEFAULT,
  HTTP_TIMEOUT_MS_MAX,
  type HttpMethod,
} from '../../schema/handlers.js';
import { displayText } from '../base/bounds.js';
import { isJsonObject, type JsonObject, type JsonValue, ownValue } from '../base/json.js';
import type { Parsed } from '../core/parsed.js';

export type { HttpMethod } from '../../schema/handlers.js';

export interface HttpParams {
  readonly url: string;
  readonly method: HttpMethod;
  readonly headers: ReadonlyMap<string, string>;
  readonly body: string | undefined;
  readonly timeoutMs: number;
}

export function parseHttpParams(params: JsonValue): Parsed<HttpParams> {
  const fields = isJsonObject(params) ? params : {};
  const url = present(fields, 'url');
  if (typeof url !== 'string' || url === '') return refuse('url is required');
  const method = readMethod(present(fields, 'method') ?? HTTP_METHOD_DEFAULT);
  if (method === undefined) return refuse(`method must be one of ${HTTP_METHODS.join(', ')}`);
  const timeoutMs = present(fields, 'timeout_ms') ?? HTTP_TIMEOUT_MS_DEFAULT;
  if (!isTimeout(timeoutMs)) {
    return refuse(`timeout_ms must be a whole number from 1 to ${HTTP_TIMEOUT_MS_MAX}`);
  }
  const given = present(fields, 'headers') ?? {};
  if (!isJsonObject(given)) return refuse('headers must be an object');
  const headers = readHeaders(given);
  if (typeof headers === 'string') return refuse(headers);
  // A string is sent as it is, any other value as JSON; null and the empty string are not sent.
  const content = present(fields, 'body') ?? '';
  const body = content === '' ? undefined : displayText(content);
  if (body !== undefined && !headers.has('content-type')) {
    headers.set('content-type', 'application/json');
  }
  return { ok: true, value: { url, method, headers, body, timeoutMs } };
}

/** The timeout of a request; the default for invalid parameters. */
export function httpTimeoutMs(params: JsonValue): number {
  const given = isJsonObject(params) ? present(params, 'timeout_ms') : undefined;
  return given !== undefined && isTimeout(given) ? given : HTTP_TIMEOUT_MS_DEFAULT;
}

function refuse(message: string) {
  return { ok: false, message } as const;
}

function present(fields: JsonObject, name: string): JsonValue | undefined {
  return ownValue(fields, name) ?? undefined;
}

function readMethod(method: JsonValue): HttpMethod | undefined {
  const name = typeof method === 'string' ? method.toUpperCase() : undefined;
  return HTTP_METHODS.find((known) => known === name);
}

function isTimeout(value: JsonValue): value is number {
  return Number.isInteger(value) && Number(value) >= 1 && Number(value) <= HTTP_TIMEOUT_MS_MAX;
}

/** Headers that only the client itself may write: those of the connection and framing could smuggle a request. */
const HEADERS_DROPPED: ReadonlySet<string> = new Set([
  ...['accept-encoding', 'connection', 'content-length', 'expect', 'host', 'keep-alive'],
  ...['proxy-connection', 'te', 'trailer', 'transfer-encoding', 'upgrade'],
]);

const HEADER_NAME = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
/** Control characters other than tab, and everything beyond Latin-1. */
const HEADER_VALUE_FORBIDDEN = /[^\t\x20-\x7e\x80-\xff]/;

/**
 * The headers to send, or what is wrong with them. Invalid names and values that are not strings are dropped. A string
 * that cannot be sent is refused: it is often a credential with a stray line break.
 */
function readHeaders(given: JsonObject): Map<string, string> | string {
  const headers = new Map<string, string>();
  for (const [givenName, value] of Object.entries(given)) {
    const name = givenName.toLowerCase();
    if (typeof value !== 'string' || !HEADER_NAME.test(name) || HEADERS_DROPPED.has(name)) continue;
    if (HEADER_VALUE_FORBIDDEN.test(value)) {
      return `the value of header ${name} holds characters that cannot be sent`;
    }
    headers.set(name, value);
  }
  return headers;
}
