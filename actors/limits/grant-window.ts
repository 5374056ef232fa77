/**
 * The arithmetic of a sliding window: which grants count at a time, and when a refused request may be repeated. Pure.
 */

import type { UnixMs } from '../../src/base/time.js';

/** A reservation of a refused request: `at` ascending, in the order of requests. */
interface Place {
  readonly key: string;
  readonly at: UnixMs;
}

/** A reservation expires this long after its time. */
const PLACE_KEPT_MS = 5_000;

/** Compacting costs a copy, so it waits until half of the array is stale. */
const CUT_MIN = 64;

export class GrantWindow {
  #max: number;
  #windowMs: number;
  /** Times at which grants were used, ascending, from `#head` on. */
  #times: UnixMs[] = [];
  #head = 0;
  /** Grants with unknown use: until when each may be used, in order of granting. */
  readonly #open = new Map<number, UnixMs>();
  #places: Place[] = [];
  /** The keys of reservations: most requests have none. */
  readonly #expected = new Set<string>();

  /** @param windowMs only uses more recent than this count */
  constructor(max: number, windowMs: number) {
    this.#max = max;
    this.#windowMs = windowMs;
  }

  /** Nothing counts any more, and there are no reservations. */
  isEmpty(now: UnixMs): boolean {
    this.#forget(now);
    return this.#size === 0 && this.#places.length === 0;
  }

  /** A grant of which only the latest possible use is known. */
  restore(usedBy: UnixMs): void {
    this.#insert(usedBy);
  }

  grant(number: number, usableUntil: UnixMs): void {
    this.#open.set(number, usableUntil);
  }

  used(number: number, at: UnixMs | null): void {
    if (this.#open.delete(number) && at !== null) this.#insert(at);
  }

  /**
   * `now` when a grant can be given, else the time at which to ask again. Reservations precede other requests; a
   * request with a reservation exchanges it for a grant or a new one.
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
    // Reservations are in the order of their times, which is that of requests.
    let index = this.#places.length;
    while (index > 0 && (this.#places[index - 1] as Place).at > at) index -= 1;
    this.#places.splice(index, 0, { key, at });
    this.#expected.add(key);
    return at;
  }

  /** The keys of the reservations. */
  get expected(): string[] {
    return this.#places.map(({ key }) => key);
  }

  /** Another limit voids the reservations. @returns their keys */
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

  /** When the grant or reservation at `index`, counted from the oldest, leaves the window. */
  #freeAt(index: number, now: UnixMs): UnixMs {
    const known = this.#times.length - this.#head;
    if (index < known) return (this.#times[this.#head + index] as UnixMs) + this.#windowMs;
    const place = index - known - this.#open.size;
    // A grant with unknown use counts from now at the earliest.
    if (place < 0) return now + this.#windowMs;
    return (this.#places[place] as Place).at + this.#windowMs;
  }

  #forget(now: UnixMs): void {
    for (const [number, usableUntil] of this.#open) {
      if (usableUntil > now) break;
      this.#open.delete(number);
      this.#insert(usableUntil);
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

  /** Mostly at the end. */
  #insert(at: UnixMs): void {
    let index = this.#times.length;
    while (index > this.#head && (this.#times[index - 1] as UnixMs) > at) index -= 1;
    this.#times.splice(index, 0, at);
  }
}
