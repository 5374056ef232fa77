/** A sliding window: counts grants, and reserves the times of repeated requests. */

import type { UnixMs } from '../../src/base/time.js';

interface Place {
  readonly key: string;
  readonly at: UnixMs;
}

/** From the time of a reservation to its expiry. */
const PLACE_KEPT_MS = 5_000;
/** Compacting copies the array, so it waits until half of it is stale. */
const CUT_MIN = 64;

export class GrantWindow {
  #max: number;
  #windowMs: number;
  /** Times at which grants were used, ascending, from `#head` on. */
  #times: UnixMs[] = [];
  #head = 0;
  /** Unreported grants, in order, with the latest time of their use. */
  readonly #open = new Map<number, UnixMs>();
  #places: Place[] = [];
  /** Avoids the search of `#places`, as most requests have no reservation. */
  readonly #expected = new Set<string>();

  constructor(max: number, windowMs: number) {
    this.#max = max;
    this.#windowMs = windowMs;
  }

  /** Whether its rows have everything that it knows: no grant is unreported, and no time is reserved. */
  isAtRest(now: UnixMs): boolean {
    this.#forget(now);
    return this.#open.size === 0 && this.#places.length === 0;
  }

  grant(number: number, usableUntil: UnixMs): void {
    this.#open.set(number, usableUntil);
  }

  used(number: number, at: UnixMs | null): void {
    if (this.#open.delete(number) && at !== null) this.add(at);
  }

  /**
   * Returns `now` for a grant, else the reserved time of the next request. Reservations precede
   * other requests; a request with a reservation exchanges it for a grant or a new reservation.
   */
  place(key: string, now: UnixMs): UnixMs {
    this.#forget(now);
    const own = this.#expected.delete(key)
      ? this.#places.findIndex((place) => place.key === key)
      : -1;
    if (own >= 0) this.#places.splice(own, 1);
    const used = this.#size;
    const ahead = own >= 0 ? own : this.#places.length;
    if (used + ahead < this.#max) return now;
    const at = Math.max(now + 1, this.#freeAt(used + ahead - this.#max, now));
    // Reservations stay in the order of their times.
    let index = this.#places.length;
    while (index > 0 && (this.#places[index - 1] as Place).at > at) index -= 1;
    this.#places.splice(index, 0, { key, at });
    this.#expected.add(key);
    return at;
  }

  get expected(): string[] {
    return this.#places.map(({ key }) => key);
  }

  /** A changed limit voids the reservations, whose keys are returned. */
  change(max: number, windowMs: number): string[] {
    if (max === this.#max && windowMs === this.#windowMs) return [];
    this.#max = max;
    this.#windowMs = windowMs;
    const keys = this.expected;
    this.#places = [];
    this.#expected.clear();
    return keys;
  }

  get #size(): number {
    return this.#times.length - this.#head + this.#open.size;
  }

  /** When the grant or reservation at `index`, from the oldest, leaves the window. */
  #freeAt(index: number, now: UnixMs): UnixMs {
    const known = this.#times.length - this.#head;
    if (index < known) return (this.#times[this.#head + index] as UnixMs) + this.#windowMs;
    const place = index - known - this.#open.size;
    // An unreported grant counts from now at the earliest.
    if (place < 0) return now + this.#windowMs;
    return (this.#places[place] as Place).at + this.#windowMs;
  }

  #forget(now: UnixMs): void {
    for (const [number, usableUntil] of this.#open) {
      if (usableUntil > now) break;
      this.#open.delete(number);
      this.add(usableUntil);
    }
    const since = now - this.#windowMs;
    while (this.#head < this.#times.length && (this.#times[this.#head] as UnixMs) <= since) {
      this.#head += 1;
    }
    if (this.#head > CUT_MIN && 2 * this.#head > this.#times.length) {
      this.#times = this.#times.slice(this.#head);
      this.#head = 0;
    }
    const stale = this.#places.findIndex(({ at }) => at + PLACE_KEPT_MS > now);
    if (stale === 0) return;
    for (const { key } of this.#places.splice(0, stale < 0 ? this.#places.length : stale)) {
      this.#expected.delete(key);
    }
  }

  /** Adds a grant that was used at this time at the latest. */
  add(at: UnixMs): void {
    let index = this.#times.length;
    while (index > this.#head && (this.#times[index - 1] as UnixMs) > at) index -= 1;
    this.#times.splice(index, 0, at);
  }
}
