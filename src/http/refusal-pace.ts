/**
 * Who asks again at once what was just refused has its refusals told later: a loop of them would take the front
 * thread from all others, however little each costs. What is held back is one answer on a connection that its
 * client keeps open for it. Pure: time is handed in (docs/limits.md).
 */

import { LIMITS } from '../base/limits.js';
import { lastUsed, valueFor } from '../base/quota/last-used.js';
import { TokenBucket } from '../base/quota/rates.js';

/** Too large, too many, not now: what is said of load, and not of the request. */
const REFUSALS: ReadonlySet<number> = new Set([413, 429, 503]);

/** Tenants that are remembered; to the others nothing was refused lately. */
const TENANTS_MAX = 10_000;

const RATE = { perSecond: LIMITS.refusalsPerSecond, burst: LIMITS.refusalsAtOnce };

export class RefusalPace {
  /** Beyond its burst a bucket is in debt, for as long as the answer is held back. */
  readonly #buckets = lastUsed<string, TokenBucket>(TENANTS_MAX);

  /**
   * @param now milliseconds of a clock that never goes back
   * @returns how long the answer is held back; 0: not at all
   */
  holdMs(tenant: string, status: number, now: number): number {
    if (!REFUSALS.has(status)) return 0;
    const bucket = valueFor(this.#buckets, tenant, () => new TokenBucket(RATE, now));
    if (bucket.waitMs(0, now) < LIMITS.refusalHeldMsMax) bucket.take(1);
    return bucket.waitMs(0, now);
  }
}
