/** Signed links that answer an approval without an API key. They are not stored. */

import { createHmac, timingSafeEqual } from 'node:crypto';
import { parseJson } from '../../../src/base/json-guard.js';
import type { UnixMs } from '../../../src/base/time.js';

export interface ApprovalGrant {
  readonly approval: string;
  /** Unix ms, exclusive. */
  readonly expiresAt: UnixMs;
  /** The only value that the link can submit; null: any choice. */
  readonly value: string | null;
  readonly recipient: string | null;
}

/** Signs with the first key. */
export function approvalToken(grant: ApprovalGrant, keys: readonly Buffer[]): string {
  const { approval, expiresAt, value, recipient } = grant;
  const text = JSON.stringify([approval, expiresAt, value, recipient]);
  const head = Buffer.from(text).toString('base64url');
  return `${head}.${signature(head, keys[0]!).toString('base64url')}`;
}

/** Undefined unless one of the keys signed the token. The caller checks the expiry. */
export function verifiedGrant(token: string, keys: readonly Buffer[]): ApprovalGrant | undefined {
  const [head = '', mark = '', ...rest] = token.split('.');
  const actual = Buffer.from(mark, 'base64url');
  // Base64 has several spellings of the same bytes; only the canonical one is accepted.
  if (rest.length > 0 || actual.toString('base64url') !== mark) return undefined;
  const isSigned = keys.some((key) => {
    const expected = signature(head, key);
    return actual.length === expected.length && timingSafeEqual(actual, expected);
  });
  if (!isSigned) return undefined;
  const parsed = parseJson(Buffer.from(head, 'base64url').toString('utf8'));
  if (!parsed.ok || !Array.isArray(parsed.value)) return undefined;
  const [approval, expiresAt, value, recipient] = parsed.value as [string, number, string, string];
  return { approval, expiresAt, value: value ?? null, recipient: recipient ?? null };
}

function signature(head: string, key: Buffer): Buffer {
  return createHmac('sha256', key).update(head).digest();
}
