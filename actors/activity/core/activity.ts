/** Aggregates stored minutes into intervals, with histograms of durations. */

import type { ActivityInterval } from '../../../schema/statistics.js';
import { isoTime, type UnixMs } from '../../../src/base/time.js';

type Sums = Pick<ActivityInterval, 'created' | 'completed' | 'failed' | 'cancelled'>;

export interface StoredMinute extends Sums {
  readonly at: string;
  /** JSON pairs of bucket and count. */
  readonly durations: string;
}

export class ActivityLines {
  readonly #since: UnixMs;
  readonly #stepMs: number;
  readonly #intervals: readonly { readonly counts: Sums; readonly durations: Buckets }[];

  constructor(since: UnixMs, now: UnixMs, stepMs: number) {
    this.#since = since;
    this.#stepMs = stepMs;
    const length = Math.floor(Math.max(0, now - since) / stepMs) + 1;
    this.#intervals = Array.from({ length }, () => ({
      counts: { created: 0, completed: 0, failed: 0, cancelled: 0 },
      durations: new Map(),
    }));
  }

  add(minute: StoredMinute): void {
    const place = Math.floor((Date.parse(minute.at) - this.#since) / this.#stepMs);
    const interval = this.#intervals[place];
    if (interval === undefined) return;
    for (const change of Object.keys(interval.counts) as (keyof Sums)[]) {
      interval.counts[change] += minute[change];
    }
    for (const [bucket, times] of JSON.parse(minute.durations) as [number, number][]) {
      addTo(interval.durations, bucket, times);
    }
  }

  get intervals(): ActivityInterval[] {
    return this.#intervals.map(({ counts, durations }, i) => ({
      at: isoTime(this.#since + i * this.#stepMs),
      ...counts,
      duration_p50_ms: quantile(durations, 0.5),
      duration_p95_ms: quantile(durations, 0.95),
    }));
  }
}

/** Buckets per doubling: a quantile is at most a tenth off. */
const PER_DOUBLING = 4;
/** A histogram with exponential buckets: quantiles have the same relative error at any scale. */
export type Buckets = Map<number, number>;

/** Bucket 0 holds durations below a millisecond. */
export function bucketOf(ms: number): number {
  return ms < 1 ? 0 : 1 + Math.floor(Math.log2(ms) * PER_DOUBLING);
}

export function addTo(buckets: Buckets, bucket: number, count: number): void {
  buckets.set(bucket, (buckets.get(bucket) ?? 0) + count);
}

/** The geometric middle of a bucket, in ms; null without observations. */
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
