/**
 * Signed links for answering an approval without an API key: nothing is stored, and they work until the gate closes.
 */

import { createHmac, timingSafeEqual } from 'node:crypto';
import { parseJson } from '../../../src/base/json-guard.js';
import type { UnixMs } from '../../../src/base/time.js';

export interface ApprovalGrant {
  readonly approval: string;
  /** Unix ms, exclusive. */
  readonly expiresAt: UnixMs;
  /** The only value that the link may answer; null: any choice. */
  readonly value: string | null;
  readonly recipient: string | null;
}

/** @param keys the first one signs */
export function approvalToken(grant: ApprovalGrant, keys: readonly Buffer[]): string {
  const { approval, expiresAt, value, recipient } = grant;
  const text = JSON.stringify([approval, expiresAt, value, recipient]);
  const head = Buffer.from(text).toString('base64url');
  return `${head}.${signature(head, keys[0]!).toString('base64url')}`;
}

/** The grant in a token that one of the keys has signed, else undefined. The caller checks the expiry. */
export function verifiedGrant(token: string, keys: readonly Buffer[]): ApprovalGrant | undefined {
  const [head = '', mark = '', ...rest] = token.split('.');
  const given = Buffer.from(mark, 'base64url');
  // Base64 has several spellings of the same bytes; only the canonical one is accepted.
  if (rest.length > 0 || given.toString('base64url') !== mark) return undefined;
  const isSigned = keys.some((key) => {
    const expected = signature(head, key);
    return given.length === expected.length && timingSafeEqual(given, expected);
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
