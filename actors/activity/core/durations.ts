/** A histogram of durations with exponential buckets: quantiles have the same relative error at any scale. Pure. */

/** Buckets per doubling: a quantile is at most a tenth off. */
const PER_DOUBLING = 4;

export type Buckets = Map<number, number>;

/** Bucket 0 holds durations below a millisecond. */
export function bucketOf(ms: number): number {
  return ms < 1 ? 0 : 1 + Math.floor(Math.log2(ms) * PER_DOUBLING);
}

export function addTo(buckets: Buckets, bucket: number, count: number): void {
  buckets.set(bucket, (buckets.get(bucket) ?? 0) + count);
}

/** In ms, the geometric middle of a bucket; null without observations. @param part between 0 and 1 */
export function quantile(buckets: Buckets, part: number): number | null {
  const total = [...buckets.values()].reduce((sum, count) => sum + count, 0);
  let below = 0;
  for (const bucket of [...buckets.keys()].sort((a, b) => a - b)) {
    below += buckets.get(bucket) as number;
    if (below < total * part) continue;
    return bucket === 0 ? 0 : Math.round(2 ** ((bucket - 0.5) / PER_DOUBLING));
  }
  return null;
}
