/**
 * The timers that one shard has in memory, by the time at which they are due. An instance that is in the database
 * only is loaded a little before its time, so that a burst that is due in one moment has nothing left to wait for
 * but its commits. How many are loaded ahead is bounded, and so is the part of one tenant: the others
 * are loaded when they are due. Pure.
 */

import { LIMITS } from '../../src/base/limits.js';
import { Tally } from '../../src/base/quota/tally.js';
import type { UnixMs } from '../../src/base/time.js';
import type { Timer, WakeTimer } from '../runtime/timer.js';
import { TimerHeap } from '../runtime/timer-heap.js';

/** Of the places one tenant has so many at most: others find some, whatever it has due. */
const TENANT_SHARE = 0.75;

export class DueTimers {
  /** Of instances that have yet to be loaded ahead. */
  readonly #far = new TimerHeap<WakeTimer>();
  readonly #near = new TimerHeap<Timer>();
  /** Those of the near ones whose instances were loaded for it; each is in the heap once. */
  readonly #ahead = new Set<Timer>();
  readonly #aheadByTenant = new Tally();

  /** Nothing is to be loaded for it. */
  push(at: UnixMs, timer: Timer): void {
    this.#near.push(at, timer);
  }

  /** Its instance may be in the database only. */
  pushFar(at: UnixMs, timer: WakeTimer): void {
    this.#far.push(at, timer);
  }

  /** When there is something to do next, behind now; undefined: never. */
  nextAt(now: UnixMs): UnixMs | undefined {
    const near = this.#near.nextAt ?? Number.POSITIVE_INFINITY;
    const far = this.#far.nextAt ?? Number.POSITIVE_INFINITY;
    const loading = far - LIMITS.timerLeadMs;
    // One that could not be loaded in its time is looked at whenever a place is left.
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
   * The next instance that is due soon, those first that are due first; '' when its tenant has its part of the places
   * already, undefined when there is none for now.
   * @param max that may be loaded ahead at once
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
