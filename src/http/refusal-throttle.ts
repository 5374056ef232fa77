/**
 * Delays the refusals of a tenant that repeats refused requests at once: a loop of them would take the front thread
 * from all others, however little each costs. A delayed answer occupies one connection of its client. Pure: time is
 * an argument (docs/limits.md).
 */

import { LIMITS } from '../base/limits.js';
import { lastUsed, valueFor } from '../base/quota/last-used.js';
import { TokenBucket } from '../base/quota/rates.js';

/** Too large, too many, not now: refusals that are about load, not about the request. */
const REFUSALS: ReadonlySet<number> = new Set([413, 429, 503]);

/** Tenants that are remembered; the others count as not refused lately. */
const TENANTS_MAX = 10_000;

const RATE = { perSecond: LIMITS.refusalsPerSecond, burst: LIMITS.refusalsAtOnce };

export class RefusalThrottle {
  /** Beyond its burst a bucket is in debt, for as long as the answer is delayed. */
  readonly #buckets = lastUsed<string, TokenBucket>(TENANTS_MAX);

  /**
   * @param now milliseconds of a monotonic clock
   * @returns how long the answer is delayed; 0: not at all
   */
  delayMs(tenant: string, status: number, now: number): number {
    if (!REFUSALS.has(status)) return 0;
    const bucket = valueFor(this.#buckets, tenant, () => new TokenBucket(RATE, now));
    if (bucket.waitMs(0, now) < LIMITS.refusalHeldMsMax) bucket.take(1);
    return bucket.waitMs(0, now);
  }
}
