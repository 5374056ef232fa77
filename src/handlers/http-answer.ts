/** Turns a response to `http_request` into an outcome (docs/reference/handlers.md). Pure. */

import type { JsonObject, JsonValue } from '../base/json.js';
import { parseJson } from '../base/json-guard.js';
import {
  permanentFailure,
  retryableFailure,
  type StepFailure,
  type StepOutcome,
} from '../core/builtin.js';

/** Above it `json` would only repeat a large body. */
const JSON_CHARACTERS_MAX = 1024 * 1024;

/** Caps what a server asks for. */
export const RETRY_AFTER_MS_MAX = 24 * 60 * 60 * 1_000;

/** Client errors that are temporary: timeout, too early, too many requests. */
const RETRYABLE_STATUSES: ReadonlySet<number> = new Set([408, 425, 429]);

export type ResponseHeaders = Readonly<Record<string, string | string[] | undefined>>;

/** The text, or why it cannot be read. */
export type AnswerBody = { readonly text: string } | { readonly problem: string };

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
export function known(failure: StepFailure): StepFailure {
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

/** Seconds or a date; undefined for anything else, or a date in the past. */
function retryAfterMs(text: string, now: number): number | undefined {
  const ms = /^\d+$/.test(text) ? Number(text) * 1_000 : Date.parse(text) - now;
  return ms > 0 ? Math.min(ms, RETRY_AFTER_MS_MAX) : undefined;
}
