/**
 * The cell of a tenant that is not settled. Tenants are hashed into buckets, which every proxy can compute, and each
 * bucket chooses its cell by rendezvous hashing: a cell that is added or removed changes only the buckets that it gains
 * or loses, evenly from and to all others. Pure.
 */

import { createHash } from 'node:crypto';

/** Hexadecimal. */
const DIGITS = 3;
export const BUCKETS = 16 ** DIGITS;

/** The first digits of the SHA-256 of the tenant's id, `000` … `fff` (docs/operate/cells.md). */
export function bucketOf(tenant: string): string {
  return sha256(tenant).slice(0, DIGITS);
}

export function allBuckets(): string[] {
  return Array.from({ length: BUCKETS }, (_, at) => at.toString(16).padStart(DIGITS, '0'));
}

/** The cell with the highest score, which depends on the bucket and the cell only; undefined without cells. */
export function cellOfBucket(bucket: string, cells: readonly string[]): string | undefined {
  let best: { readonly cell: string; readonly score: string } | undefined;
  for (const cell of cells) {
    const score = sha256(`${bucket} ${cell}`);
    if (best === undefined || score > best.score) best = { cell, score };
  }
  return best?.cell;
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
