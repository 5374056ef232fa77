/** Aggregates stored minutes into intervals. Pure. */

import type { ActivityInterval } from '../../../schema/statistics.js';
import { isoTime, type UnixMs } from '../../../src/base/time.js';
import { addTo, type Buckets, quantile } from './durations.js';

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

interface Interval {
  readonly counts: Record<keyof Sums, number>;
  readonly durations: Buckets;
}

/** Every interval from the one with `since` until now. */
export class ActivityLines {
  readonly #since: UnixMs;
  readonly #stepMs: number;
  readonly #intervals: readonly Interval[];

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
