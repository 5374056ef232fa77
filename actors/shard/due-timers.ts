/**
 * The timers that one shard has in memory, by due time. An instance that is only in the database is loaded
 * shortly before its time, so that a burst of timers waits only for its commits. The number of preloaded
 * instances is bounded, in total and per tenant; the others are loaded when they are due. Pure.
 */

import { LIMITS } from '../../src/base/limits.js';
import { Tally } from '../../src/base/quota/tally.js';
import type { UnixMs } from '../../src/base/time.js';
import type { Timer, WakeTimer } from '../runtime/timer.js';
import { TimerHeap } from '../runtime/timer-heap.js';

/** Limit of one tenant, so that others always find places. */
const TENANT_SHARE = 0.75;

export class DueTimers {
  /** Instances that are still to be preloaded. */
  readonly #far = new TimerHeap<WakeTimer>();
  readonly #near = new TimerHeap<Timer>();
  /** Preloaded instances; each is in the heap once. */
  readonly #ahead = new Set<Timer>();
  readonly #aheadByTenant = new Tally();

  /** Nothing is preloaded for it. */
  push(at: UnixMs, timer: Timer): void {
    this.#near.push(at, timer);
  }

  /** Its instance may be in the database only. */
  pushFar(at: UnixMs, timer: WakeTimer): void {
    this.#far.push(at, timer);
  }

  /** When there is something to do next, after now. */
  nextAt(now: UnixMs): UnixMs | undefined {
    const near = this.#near.nextAt ?? Number.POSITIVE_INFINITY;
    const far = this.#far.nextAt ?? Number.POSITIVE_INFINITY;
    const loading = far - LIMITS.timerLeadMs;
    // An instance that was not preloaded in time is retried whenever a place is free.
    const at = Math.min(near, loading > now ? loading : far);
    return at === Number.POSITIVE_INFINITY ? undefined : at;
  }

  /** Takes out the first timer that is due. */
  popDue(now: UnixMs): Timer | undefined {
    const near = this.#near.nextAt ?? Number.POSITIVE_INFINITY;
    const far = this.#far.nextAt ?? Number.POSITIVE_INFINITY;
    if (far < near) return this.#far.popDue(now);
    const timer = this.#near.popDue(now);
    if (timer !== undefined && this.#ahead.delete(timer)) {
      this.#aheadByTenant.add((timer as WakeTimer).tenant, -1);
    }
    return timer;
  }

  /**
   * The next instance to preload, the earliest first; '' when its tenant has reached its limit, undefined
   * when there is none for now.
   * @param max limit of all tenants
   */
  nextAhead(now: UnixMs, max: number): string | undefined {
    const at = this.#far.nextAt;
    if (at === undefined || at <= now || this.#ahead.size >= max) return undefined;
    const timer = this.#far.popDue(now + LIMITS.timerLeadMs);
    if (timer === undefined) return undefined;
    this.#near.push(at, timer);
    if (this.#aheadByTenant.of(timer.tenant) >= max * TENANT_SHARE) return '';
    this.#ahead.add(timer);
    this.#aheadByTenant.add(timer.tenant, 1);
    return timer.instance;
  }
}
