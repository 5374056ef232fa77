/**
 * Rates: token buckets, which fill steadily up to a burst, and a number of times in a second. Pure: time is an
 * argument, in milliseconds.
 */

export interface BucketRate {
  readonly perSecond: number;
  readonly burst: number;
}

/** A full bucket admits what costs more than the burst, and is in debt then, so that nothing is refused for ever. */
export class TokenBucket {
  readonly rate: BucketRate;
  #tokens: number;
  #at: number;

  /** A full one. @param now by a clock that never goes back */
  constructor(rate: BucketRate, now: number) {
    this.rate = rate;
    this.#tokens = rate.burst;
    this.#at = now;
  }

  /** Milliseconds until so much can be taken; 0: now. */
  waitMs(cost: number, now: number): number {
    const { perSecond, burst } = this.rate;
    const gained = ((now - this.#at) * perSecond) / 1_000;
    this.#tokens = Math.min(burst, this.#tokens + gained);
    this.#at = now;
    const missing = Math.min(cost, burst) - this.#tokens;
    return missing <= 0 ? 0 : Math.ceil((missing * 1_000) / perSecond);
  }

  /** Takes it even if it is not there: the bucket is in debt then. */
  take(cost: number): void {
    this.#tokens -= cost;
  }
}

const SECOND_MS = 1_000;

/** So many in a second, which begins with the first of them. */
export class SecondLimit {
  readonly #max: number;
  #from = Number.NEGATIVE_INFINITY;
  #count = 0;

  constructor(max: number) {
    this.#max = max;
  }

  admits(nowMs: number): boolean {
    const passedMs = nowMs - this.#from;
    // A clock that is set back begins another second.
    if (passedMs >= SECOND_MS || passedMs < 0) {
      this.#from = nowMs;
      this.#count = 0;
    }
    this.#count += 1;
    return this.#count <= this.#max;
  }
}
