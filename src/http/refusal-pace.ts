/**
 * Who asks again at once what was just refused has its refusals told later: a loop of them would take the front
 * thread from all others, however little each costs. What is held back is one answer on a connection that its
 * client keeps open for it. Pure: time is handed in (docs/limits.md).
 */

import { lastUsed } from '../base/last-used.js';
import { LIMITS } from '../base/limits.js';

/** Too large, too many, not now: what is said of load, and not of the request. */
const REFUSALS: ReadonlySet<number> = new Set([413, 429, 503]);

/** Tenants that are remembered; to the others nothing was refused lately. */
const TENANTS_MAX = 10_000;

const INTERVAL_MS = 1_000 / LIMITS.refusalsPerSecond;
const AT_ONCE_MS = INTERVAL_MS * LIMITS.refusalsAtOnce;

export class RefusalPace {
  /** When the refusals of a tenant will have been told at the steady rate. */
  readonly #caughtUp = lastUsed<string, number>(TENANTS_MAX);

  /**
   * @param now milliseconds of a clock that never goes back
   * @returns how long the answer is held back; 0: not at all
   */
  holdMs(tenant: string, status: number, now: number): number {
    if (!REFUSALS.has(status)) return 0;
    const before = Math.max(now, this.#caughtUp.get(tenant) ?? now);
    const caughtUp = Math.min(before + INTERVAL_MS, now + AT_ONCE_MS + LIMITS.refusalHeldMsMax);
    this.#caughtUp.set(tenant, caughtUp);
    return Math.max(0, caughtUp - now - AT_ONCE_MS);
  }
}
