/** Aggregates stored minutes of a queue into intervals. */

import type { QueueInterval } from '../../../schema/statistics.js';
import { isoTime, type UnixMs } from '../../../src/base/time.js';

type Sums = Omit<QueueInterval, 'at' | 'longest_wait_ms'>;

export interface StoredQueueMinute extends Sums {
  readonly at: string;
  /** In milliseconds. */
  readonly longest_wait: number;
}

export class QueueLines {
  readonly intervals: QueueInterval[];
  readonly #since: UnixMs;
  readonly #stepMs: number;

  constructor(since: UnixMs, now: UnixMs, stepMs: number) {
    this.#since = since;
    this.#stepMs = stepMs;
    const length = Math.floor(Math.max(0, now - since) / stepMs) + 1;
    this.intervals = Array.from({ length }, (_, i) => ({
      at: isoTime(since + i * stepMs),
      ...{ arrived: 0, taken: 0, withdrawn: 0, ended: 0, longest_wait_ms: 0 },
    }));
  }

  add({ at, longest_wait, ...sums }: StoredQueueMinute): void {
    const interval = this.intervals[Math.floor((Date.parse(at) - this.#since) / this.#stepMs)];
    if (interval === undefined) return;
    for (const change of ['arrived', 'taken', 'withdrawn', 'ended'] as const) {
      interval[change] += sums[change];
    }
    interval.longest_wait_ms = Math.max(interval.longest_wait_ms, longest_wait);
  }
}
