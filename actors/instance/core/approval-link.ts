/**
 * The links by which people answer without a key: what one allows is written in it and signed, so that
 * nothing has to be stored for it. It works as long as its gate is open. Pure.
 */

import { createHmac, timingSafeEqual } from 'node:crypto';
import { isJsonObject } from '../../../src/base/json.js';
import { parseJson } from '../../../src/base/json-guard.js';
import type { UnixMs } from '../../../src/base/time.js';

export interface ApprovalGrant {
  /** The id of the approval. */
  readonly approval: string;
  /** Unix ms; this very instant is too late. */
  readonly expiresAt: UnixMs;
  /** The one value that it can answer; null: any of the choices. */
  readonly value: string | null;
  /** Whom it was made for. */
  readonly recipient: string | null;
}

/** @param keys the one that signs first */
export function approvalToken(grant: ApprovalGrant, keys: readonly Buffer[]): string {
  const { approval, expiresAt, value, recipient } = grant;
  const text = JSON.stringify([approval, expiresAt, value, recipient]);
  const head = Buffer.from(text).toString('base64url');
  return `${head}.${signature(head, keys[0]!).toString('base64url')}`;
}

/** Undefined unless one of the keys has signed it. Whether its time is over is for the caller to see. */
export function grantIn(token: string, keys: readonly Buffer[]): ApprovalGrant | undefined {
  const [head = '', mark = '', ...rest] = token.split('.');
  const given = Buffer.from(mark, 'base64url');
  // One text for one signature: base64 has several.
  if (rest.length > 0 || given.toString('base64url') !== mark) return undefined;
  const isSigned = keys.some((key) => {
    const expected = signature(head, key);
    return given.length === expected.length && timingSafeEqual(given, expected);
  });
  if (!isSigned) return undefined;
  const parsed = parseJson(Buffer.from(head, 'base64url').toString('utf8'));
  if (!parsed.ok || !Array.isArray(parsed.value) || isJsonObject(parsed.value)) return undefined;
  const [approval, expiresAt, value, recipient] = parsed.value as [string, number, string, string];
  return { approval, expiresAt, value: value ?? null, recipient: recipient ?? null };
}

function signature(head: string, key: Buffer): Buffer {
  return createHmac('sha256', key).update(head).digest();
}
