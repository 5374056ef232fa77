/**
 * What an answer to `http_request` comes to (docs/reference/handlers.md): a success or a failure,
 * and what the workflow gets to see of it. Pure.
 */

import type { JsonObject, JsonValue } from '../base/json.js';
import { parseJson } from '../base/json-guard.js';
import {
  permanentFailure,
  retryableFailure,
  type StepFailure,
  type StepOutcome,
} from '../core/builtin.js';

/** Beyond it `json` would only repeat what is large already; the text of the body is there. */
const JSON_CHARACTERS_MAX = 1024 * 1024;

/** A server that asks for more is asked again after a day. */
export const RETRY_AFTER_MS_MAX = 24 * 60 * 60 * 1_000;

/** Of the client's errors those that say 'not now': too slow, too early, too many. */
const RETRYABLE_STATUSES: ReadonlySet<number> = new Set([408, 425, 429]);

export type ResponseHeaders = Readonly<Record<string, string | string[] | undefined>>;

/** Its text, or why it has none that can be read. */
export type AnswerBody = { readonly text: string } | { readonly problem: string };

/** @param now Unix milliseconds, for a `Retry-After` that is a date */
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

/** A failure that leaves no doubt about the request: it was answered, or never sent. */
export function known(failure: StepFailure): StepFailure {
  return { ...failure, isKnown: true };
}

/** By name in lower case, as undici gives them; what came several times is joined by commas. */
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

/** Undefined too when it cannot be kept as it is, such as numbers beyond 2^53: the text can. */
function jsonOf(contentType: string, body: string): JsonValue | undefined {
  if (!/^application\/(?:[\w.+-]+\+)?json\b/i.test(contentType)) return undefined;
  if (body.length > JSON_CHARACTERS_MAX) return undefined;
  const parsed = parseJson(body);
  return parsed.ok ? (parsed.value as JsonValue) : undefined;
}

/** Seconds or a date; undefined when it is neither, or over. */
function retryAfterMs(text: string, now: number): number | undefined {
  const ms = /^\d+$/.test(text) ? Number(text) * 1_000 : Date.parse(text) - now;
  return ms > 0 ? Math.min(ms, RETRY_AFTER_MS_MAX) : undefined;
}
