/** Lines over time, made of minutes as they are stored. Pure. */

import type { ActivityInterval } from '../../schema/statistics.js';
import { addTo, type Buckets, quantile } from './durations.js';
import { isoTime, type UnixMs } from './time.js';

export interface StoredMinute {
  readonly at: string;
  readonly created: number;
  readonly completed: number;
  readonly failed: number;
  readonly cancelled: number;
  /** JSON: pairs of a bucket and a count. */
  readonly durations: string;
}

type Sums = Pick<StoredMinute, 'created' | 'completed' | 'failed' | 'cancelled'>;

/** Every interval from the one that `since` begins until now. */
export function activityIntervals(
  minutes: readonly StoredMinute[],
  since: UnixMs,
  now: UnixMs,
  stepMs: number,
): ActivityInterval[] {
  const count = Math.floor(Math.max(0, now - since) / stepMs) + 1;
  const sums = Array.from({ length: count }, () => ({
    counts: { created: 0, completed: 0, failed: 0, cancelled: 0 },
    durations: new Map() as Buckets,
  }));
  for (const minute of minutes) {
    const sum = sums[Math.floor((Date.parse(minute.at) - since) / stepMs)];
    if (sum === undefined) continue;
    for (const change of Object.keys(sum.counts) as (keyof Sums)[]) {
      sum.counts[change] += minute[change];
    }
    for (const [bucket, times] of JSON.parse(minute.durations) as [number, number][]) {
      addTo(sum.durations, bucket, times);
    }
  }
  return sums.map(({ counts, durations }, i) => ({
    at: isoTime(since + i * stepMs),
    ...counts,
    duration_p50_ms: quantile(durations, 0.5),
    duration_p95_ms: quantile(durations, 0.95),
  }));
}
