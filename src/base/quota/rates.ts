/** Token buckets and limits per second. Pure: time is an argument, in milliseconds. */

export interface BucketRate {
  readonly perSecond: number;
  readonly burst: number;
}

/** A full bucket admits a cost above the burst and goes into debt, so that no request is refused for ever. */
export class TokenBucket {
  readonly rate: BucketRate;
  #tokens: number;
  #at: number;

  /** Starts full. @param now on a monotonic clock */
  constructor(rate: BucketRate, now: number) {
    this.rate = rate;
    this.#tokens = rate.burst;
    this.#at = now;
  }

  waitMs(cost: number, now: number): number {
    const { perSecond, burst } = this.rate;
    const gained = ((now - this.#at) * perSecond) / 1_000;
    this.#tokens = Math.min(burst, this.#tokens + gained);
    this.#at = now;
    const missing = Math.min(cost, burst) - this.#tokens;
    return missing <= 0 ? 0 : Math.ceil((missing * 1_000) / perSecond);
  }

  /** Takes the cost even when the tokens do not suffice: the bucket goes into debt. */
  take(cost: number): void {
    this.#tokens -= cost;
  }
}

const SECOND_MS = 1_000;

/** A limit per second; a second begins with its first event. */
export class SecondLimit {
  readonly #max: number;
  #from = Number.NEGATIVE_INFINITY;
  #count = 0;

  constructor(max: number) {
    this.#max = max;
  }

  admits(nowMs: number): boolean {
    const passedMs = nowMs - this.#from;
    // A clock that was set back starts another second.
    if (passedMs >= SECOND_MS || passedMs < 0) {
      this.#from = nowMs;
      this.#count = 0;
    }
    this.#count += 1;
    return this.#count <= this.#max;
  }
}
