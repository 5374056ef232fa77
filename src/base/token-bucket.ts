/**
 * A token bucket: it fills at a steady rate up to its burst. What costs more than the burst is let through by a
 * full bucket, which is in debt then, so that nothing is refused for ever. Pure: time is handed in.
 */

export interface BucketRate {
  readonly perSecond: number;
  readonly burst: number;
}

export class TokenBucket {
  readonly rate: BucketRate;
  #tokens: number;
  #at: number;

  /** A full one. @param now in milliseconds, by a clock that never goes back */
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

  /** After `waitMs` was 0. */
  take(cost: number): void {
    this.#tokens -= cost;
  }
}
