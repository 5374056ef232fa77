/** The instances that wait for a key, oldest first. Only the first of them are in memory; the others are in their rows. */

import type { UnixMs } from '../../src/base/time.js';

export interface Waiter {
  readonly instance: string;
  readonly createdAt: UnixMs;
}

/** Waiting instances in memory; more are read when these run out. */
export const WAITERS_MAX = 1_000;

export class WaitingLine<W extends Waiter> {
  #waiters: W[];
  #isComplete: boolean;

  /** @param first at most `WAITERS_MAX`, in order */
  constructor(first: readonly W[]) {
    this.#waiters = [...first];
    this.#isComplete = first.length < WAITERS_MAX;
  }

  /** No instance waits beyond those in memory. */
  get isComplete(): boolean {
    return this.#isComplete;
  }

  get all(): readonly W[] {
    return this.#waiters;
  }

  get first(): W | undefined {
    return this.#waiters[0];
  }

  /** More have to be read. */
  get isUsedUp(): boolean {
    return this.#waiters.length === 0 && !this.#isComplete;
  }

  find(instance: string): W | undefined {
    return this.#waiters.find((waiter) => waiter.instance === instance);
  }

  shift(): void {
    this.#waiters.shift();
  }

  /** Adds the instance, or replaces its entry. */
  put(waiter: W): void {
    const known = this.#waiters.findIndex(({ instance }) => instance === waiter.instance);
    if (known >= 0) {
      this.#waiters[known] = waiter;
      return;
    }
    const place = this.#placeOf(waiter);
    if (place === this.#waiters.length && !this.#isComplete) return;
    this.#waiters.splice(place, 0, waiter);
    if (this.#waiters.length > 2 * WAITERS_MAX) {
      this.#waiters.length = WAITERS_MAX;
      this.#isComplete = false;
    }
  }

  remove(instance: string): void {
    const known = this.#waiters.findIndex((waiter) => waiter.instance === instance);
    if (known >= 0) this.#waiters.splice(known, 1);
  }

  /** Removes all entries that do not match. */
  keep(matches: (waiter: W) => boolean): void {
    this.#waiters = this.#waiters.filter(matches);
  }

  /** Searches from the end: a new instance is mostly the youngest. */
  #placeOf(waiter: W): number {
    let place = this.#waiters.length;
    while (place > 0 && isOlder(waiter, this.#waiters[place - 1] as W)) place -= 1;
    return place;
  }
}

export function isOlder(a: Waiter, b: Waiter): boolean {
  return a.createdAt < b.createdAt || (a.createdAt === b.createdAt && a.instance < b.instance);
}
