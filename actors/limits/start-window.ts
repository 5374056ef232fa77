/** The starts under one key of a throttle: when the next one may be. Pure. */

import type { UnixMs } from '../../src/base/time.js';

export interface StartTerms {
  /** At most so many starts in any window of `perMs`. */
  readonly limit: number;
  readonly perMs: number;
  /** At most so many starts at once; a further one may follow every `perMs / limit`. */
  readonly burst: number;
}

export class StartWindow {
  /** Starts that count, ascending; a grant counts at its latest use until its use is reported. */
  #times: UnixMs[] = [];
  /** Unreported grants, with the times that count for them and their share of the bucket. */
  readonly #open = new Map<number, { readonly at: UnixMs; readonly share: number }>();
  /** When a bucket of `burst` starts would be full again. */
  #fullAt = 0;

  add(at: UnixMs, terms: StartTerms): void {
    this.#insert(at);
    this.#fullAt = Math.max(this.#fullAt, at) + shareOf(terms);
  }

  grant(number: number, now: UnixMs, usableUntil: UnixMs, terms: StartTerms): void {
    const share = shareOf(terms);
    this.#open.set(number, { at: usableUntil, share });
    this.#insert(usableUntil);
    this.#fullAt = Math.max(this.#fullAt, now) + share;
  }

  /** @param at when the grant was used; null: it was not used, and counts no longer */
  used(number: number, at: UnixMs | null): void {
    const counted = this.#open.get(number);
    if (counted === undefined) return;
    this.#open.delete(number);
    if (at === null) this.#fullAt -= counted.share;
    const index = this.#times.lastIndexOf(counted.at);
    if (index < 0) return;
    this.#times.splice(index, 1);
    if (at !== null) this.#insert(at);
  }

  /** When the next start may be: `now` at the earliest. */
  nextAt(now: UnixMs, terms: StartTerms): UnixMs {
    const { limit, perMs, burst } = terms;
    this.#forget(now, perMs);
    const counted = this.#times.length;
    const inWindow = counted < limit ? now : (this.#times[counted - limit] as UnixMs) + perMs;
    const inBucket = this.#fullAt - (burst - 1) * shareOf(terms);
    return Math.max(now, inWindow, Math.ceil(inBucket));
  }

  #insert(at: UnixMs): void {
    let index = this.#times.length;
    while (index > 0 && (this.#times[index - 1] as UnixMs) > at) index -= 1;
    this.#times.splice(index, 0, at);
  }

  #forget(now: UnixMs, perMs: number): void {
    for (const [number, { at }] of this.#open) if (at <= now) this.#open.delete(number);
    let old = 0;
    while (old < this.#times.length && (this.#times[old] as UnixMs) <= now - perMs) old += 1;
    // Removing one by one would copy the array each time.
    if (old > 0 && 2 * old >= this.#times.length) this.#times.splice(0, old);
  }
}

/** The time in which the bucket gets one more start. */
const shareOf = ({ perMs, limit }: StartTerms): number => perMs / limit;
