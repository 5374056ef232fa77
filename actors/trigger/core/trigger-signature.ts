/** Verifies signature, timestamp and nonce of a signed request for a trigger (docs/triggers.md). Pure. */

import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import type { UnixMs } from '../../../src/base/time.js';

type SignedHead = Readonly<Record<'timestamp' | 'nonce' | 'signature', string | undefined>>;

const PAST_MAX_MS = 300_000;
const AHEAD_MAX_MS = 60_000;
const TIMESTAMP = /^\d{1,12}$/;
/** Printable ASCII without blanks. */
const NONCE = /^[\x21-\x7e]{16,128}$/;

/** The problem, as a message for the developers of the sender; undefined for a valid request. */
export function signatureProblem(
  { timestamp, nonce, signature }: SignedHead,
  body: Uint8Array,
  secret: string,
  now: UnixMs,
): string | undefined {
  if (timestamp === undefined || !TIMESTAMP.test(timestamp)) {
    return 'x-trigger-timestamp must be the unix time in seconds';
  }
  const age = now - Number(timestamp) * 1_000;
  if (age > PAST_MAX_MS) return 'x-trigger-timestamp is more than 300 s old';
  if (age < -AHEAD_MAX_MS) return 'x-trigger-timestamp is more than 60 s ahead';
  if (nonce === undefined || !NONCE.test(nonce)) {
    return 'x-trigger-nonce must be 16 to 128 printable characters';
  }
  return isSameText(signature ?? '', signatureOf(secret, timestamp, nonce, body))
    ? undefined
    : 'x-engine-signature does not fit';
}

/** `v1=` and the HMAC-SHA256 of timestamp, nonce and body, joined by dots, in base64url. */
export function signatureOf(
  secret: string,
  timestamp: string,
  nonce: string,
  body: Uint8Array,
): string {
  const mac = createHmac('sha256', secret).update(`${timestamp}.${nonce}.`).update(body);
  return `v1=${mac.digest('base64url')}`;
}

/** Takes the same time for any difference and lengths. */
export function isSameText(a: string, b: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(a), digest(b));
}
