/**
 * The arithmetic of a sliding window: which grants count at a time, and when who is refused may come
 * again. Pure: times are handed in.
 */

import type { UnixMs } from '../../src/base/time.js';

/** Who was told to come later: `at` ascending, in the order of asking. */
interface Place {
  readonly key: string;
  readonly at: UnixMs;
}

/** A place that is not taken up this long after its time is given away. */
const PLACE_KEPT_MS = 5_000;

/** Compacting costs a copy, so it waits until half of the array is over. */
const CUT_MIN = 64;

export class GrantWindow {
  #max: number;
  #windowMs: number;
  /** Times at which grants were used, ascending, from `#head` on. */
  #times: UnixMs[] = [];
  #head = 0;
  /** Grants whose use is not known: until when each may be used, in order of granting. */
  readonly #open = new Map<number, UnixMs>();
  #places: Place[] = [];
  /** The keys of the places: most who ask have none. */
  readonly #expected = new Set<string>();

  /** @param windowMs the window counts what happened less than this long ago */
  constructor(max: number, windowMs: number) {
    this.#max = max;
    this.#windowMs = windowMs;
  }

  /** Nothing counts any more, and nobody is expected. */
  isEmpty(now: UnixMs): boolean {
    this.#forget(now);
    return this.#size === 0 && this.#places.length === 0;
  }

  /** A grant of which only the latest time of its use is known. */
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
   * `now` when a grant can be given, else the time at which to ask again. Those who have a place come
   * before those who have none; who asks with a place gives it up for a grant or a new place.
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
    // Places stay in the order of their times, which is that of asking.
    let index = this.#places.length;
    while (index > 0 && (this.#places[index - 1] as Place).at > at) index -= 1;
    this.#places.splice(index, 0, { key, at });
    this.#expected.add(key);
    return at;
  }

  /** The keys of those who have a place. */
  get expected(): string[] {
    return this.#places.map(({ key }) => key);
  }

  /** With another limit the places are void. @returns the keys of those who had one */
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

  /** When the grant or place at `index`, counted from the oldest, leaves the window. */
  #freeAt(index: number, now: UnixMs): UnixMs {
    const known = this.#times.length - this.#head;
    if (index < known) return (this.#times[this.#head + index] as UnixMs) + this.#windowMs;
    const place = index - known - this.#open.size;
    // One in use at this moment counts from now, at the least.
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
