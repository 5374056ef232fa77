/**
 * Which cell has a tenant that nobody placed. Tenants fall into buckets by a hash that every proxy can take,
 * and each bucket chooses its cell by rendezvous hashing: when a cell comes or goes, only the buckets that it
 * wins or loses change, evenly from and to all others. Pure.
 */

import { createHash } from 'node:crypto';

/** As many as three hexadecimal digits tell apart. */
export const BUCKETS = 4096;

const DIGITS = 3;

/** @returns the first digits of the SHA-256 of the tenant's id, as `000` … `fff` (docs/operate/cells.md) */
export function bucketOf(tenant: string): string {
  return sha256(tenant).slice(0, DIGITS);
}

export function allBuckets(): string[] {
  return Array.from({ length: BUCKETS }, (_, at) => at.toString(16).padStart(DIGITS, '0'));
}

/**
 * The cell with the highest score; each cell's score of a bucket knows nothing of other cells.
 *
 * @param cells that take new tenants, in any order
 * @returns undefined when there is none
 */
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
