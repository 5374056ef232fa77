/** What the reply of a worker endpoint means for the claim of its task (docs/push-workers.md). Pure. */

import { ERROR_EXCERPT_MAX } from '../../../schema/webhook.js';
import { isJsonObject, type JsonObject } from '../../../src/base/json.js';
import { BODY_JSON_LIMITS, parseJson } from '../../../src/base/json-guard.js';
import { masked } from '../../../src/core/masking.js';
import type { PushAnswer, PushReply } from '../../../src/handlers/push-sender.js';

/**
 * - `keep`: the endpoint accepted the task, and reports by the API
 * - `return`: the task was not worked on: it goes back to its queue, and the endpoint is left alone for a while
 * - `drop`: the claim is over or its delivery was given up; its lease decides
 */
export type Decision =
  | { readonly kind: 'complete'; readonly output: JsonObject }
  | { readonly kind: 'fail'; readonly message: string; readonly retryable: boolean }
  | { readonly kind: 'keep' }
  | { readonly kind: 'return'; readonly reason: string; readonly pauseMs: number | undefined }
  | { readonly kind: 'drop' };

export interface Sent {
  readonly endpoint: string;
  readonly secret: string;
  readonly timeoutMs: number;
}

const ACCEPTED = 202;
const TOO_MANY = 429;
const UNAVAILABLE = 503;
/** Longer than the excerpt by the longest form of a secret. */
const MASKED_MAX = 16 * 1024;
/** An endpoint may not ask for a longer pause. */
const PAUSE_MS_MAX = 60 * 60_000;

export function decisionOn(reply: PushReply, sent: Sent): Decision {
  switch (reply.kind) {
    case 'aborted':
      return { kind: 'drop' };
    case 'unsent':
      return { kind: 'return', reason: reply.reason, pauseMs: undefined };
    case 'timeout':
      return failure(sent, `did not answer within ${sent.timeoutMs} ms`);
    case 'broken':
      return failure(sent, `did not answer: ${reply.reason}`);
    case 'answered':
      return onAnswer(reply, sent);
  }
}

function onAnswer(answer: PushAnswer, sent: Sent): Decision {
  const { status, retryAfterMs } = answer;
  if (status === TOO_MANY || (status === UNAVAILABLE && retryAfterMs !== undefined)) {
    // Without a time, or with 0, the pause grows.
    const pauseMs = retryAfterMs ? Math.min(retryAfterMs, PAUSE_MS_MAX) : undefined;
    return { kind: 'return', reason: `answered ${status}`, pauseMs };
  }
  if (status === ACCEPTED) return { kind: 'keep' };
  if (status >= 200 && status < 300) return onSuccess(answer, sent);
  if (status >= 300 && status < 400) {
    return failure(sent, `answered ${status}: redirects are not followed`);
  }
  const body = objectIn(answer.text);
  const isFinal = status < 500 && body?.retryable === false;
  const own = [body?.message, body?.error].find((it) => typeof it === 'string');
  return failure(sent, `answered ${status}${after(own ?? answer.text, sent)}`, !isFinal);
}

function onSuccess({ status, text, problem }: PushAnswer, sent: Sent): Decision {
  if (problem !== undefined) return failure(sent, `answered ${status}, but ${problem}`);
  if (text.trim() === '') return { kind: 'complete', output: {} };
  const parsed = parseJson(text, BODY_JSON_LIMITS);
  if (!parsed.ok) {
    const { message } = parsed.problem;
    return failure(
      sent,
      `answered ${status}, but its body is no JSON: ${message}${after(text, sent)}`,
    );
  }
  if (parsed.value === null) return { kind: 'complete', output: {} };
  if (isJsonObject(parsed.value)) return { kind: 'complete', output: parsed.value };
  return failure(sent, `answered ${status}, but its body is no JSON object${after(text, sent)}`);
}

function objectIn(text: string): JsonObject | undefined {
  const parsed = parseJson(text, BODY_JSON_LIMITS);
  return parsed.ok && isJsonObject(parsed.value) ? parsed.value : undefined;
}

/** The beginning of the text, without the endpoint's secret. */
function after(text: string, { secret }: Sent): string {
  // Masked before it is cut, so that no part of the secret is left.
  const [whole = ''] = masked([text.trim().slice(0, MASKED_MAX)], [secret]);
  // Without half of a surrogate pair, which Postgres cannot store.
  const shown = whole.slice(0, ERROR_EXCERPT_MAX).replace(/[\ud800-\udbff]$/, '');
  return shown === '' ? '' : `: ${shown}`;
}

function failure({ endpoint }: Sent, what: string, retryable = true): Decision {
  return { kind: 'fail', message: `endpoint ${endpoint} ${what}`, retryable };
}
