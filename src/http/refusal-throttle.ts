/**
 * Delays the refusals of a tenant that repeats refused requests at once: a loop of them would take the front thread
 * from all others, however little each costs. A delayed answer occupies one connection of its client. Pure: time is
 * an argument (docs/limits.md).
 */

import { lastUsed } from '../base/last-used.js';
import { LIMITS } from '../base/limits.js';

/** Too large, too many, not now: refusals that are about load, not about the request. */
const REFUSALS: ReadonlySet<number> = new Set([413, 429, 503]);

/** Tenants that are remembered; the others count as not refused lately. */
const TENANTS_MAX = 10_000;

const INTERVAL_MS = 1_000 / LIMITS.refusalsPerSecond;
const AT_ONCE_MS = INTERVAL_MS * LIMITS.refusalsAtOnce;

export class RefusalThrottle {
  /** When the refusals of a tenant will have been sent at the steady rate. */
  readonly #caughtUp = lastUsed<string, number>(TENANTS_MAX);

  /**
   * @param now milliseconds of a monotonic clock
   * @returns how long the answer is delayed; 0: not at all
   */
  delayMs(tenant: string, status: number, now: number): number {
    if (!REFUSALS.has(status)) return 0;
    const before = Math.max(now, this.#caughtUp.get(tenant) ?? now);
    const caughtUp = Math.min(before + INTERVAL_MS, now + AT_ONCE_MS + LIMITS.refusalHeldMsMax);
    this.#caughtUp.set(tenant, caughtUp);
    return Math.max(0, caughtUp - now - AT_ONCE_MS);
  }
}
