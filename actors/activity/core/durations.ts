/**
 * Durations by buckets whose bounds grow by a constant factor, so that a few numbers tell quantiles from
 * milliseconds to weeks with the same relative error. Pure.
 */

/** Four buckets for each doubling: a quantile is at most a tenth away from the true one. */
const PER_DOUBLING = 4;

export type Buckets = Map<number, number>;

/** 0 holds all that took no millisecond. */
export function bucketOf(ms: number): number {
  return ms < 1 ? 0 : 1 + Math.floor(Math.log2(ms) * PER_DOUBLING);
}

/** In the middle of its bucket on the scale of the buckets. */
function durationOf(bucket: number): number {
  return bucket === 0 ? 0 : Math.round(2 ** ((bucket - 0.5) / PER_DOUBLING));
}

export function addTo(buckets: Buckets, bucket: number, count: number): void {
  buckets.set(bucket, (buckets.get(bucket) ?? 0) + count);
}

/** In ms; null without any. @param part between 0 and 1 */
export function quantile(buckets: Buckets, part: number): number | null {
  const total = [...buckets.values()].reduce((sum, count) => sum + count, 0);
  let below = 0;
  for (const bucket of [...buckets.keys()].sort((a, b) => a - b)) {
    below += buckets.get(bucket) as number;
    if (below >= total * part) return durationOf(bucket);
  }
  return null;
}
