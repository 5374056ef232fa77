/** A clock whose timers run when the test says so, in the order of their times. */

import type { Clock } from '../../src/base/clock.js';

export class HandClock implements Clock {
  ms: number;
  readonly #timers = new Map<object, { readonly at: number; readonly fn: () => void }>();

  constructor(ms = 0) {
    this.ms = ms;
  }

  readonly now = () => this.ms;
  readonly monotonic = this.now;

  setTimeout(fn: () => void, ms: number): object {
    const handle = {};
    this.#timers.set(handle, { at: this.ms + ms, fn });
    return handle;
  }

  clearTimeout(handle: unknown): void {
    this.#timers.delete(handle as object);
  }

  /** No timer runs any more. */
  forget(): void {
    this.#timers.clear();
  }

  /** How many timers wait. */
  get waiting(): number {
    return this.#timers.size;
  }

  /** Time passes at once: what is due in it runs at its end. */
  jump(ms: number): void {
    this.ms += ms;
    for (const [handle, { at, fn }] of this.#timers) {
      if (at <= this.ms && this.#timers.delete(handle)) fn();
    }
  }

  /** Lets time pass with everything that is due in it. */
  pass(ms: number): void {
    const until = this.ms + ms;
    while (this.step(until));
    this.ms = until;
  }

  /** Runs the next timer that is due by then; false when there is none. */
  step(until: number): boolean {
    const [next] = [...this.#timers].sort(([, a], [, b]) => a.at - b.at);
    if (next === undefined || next[1].at > until) return false;
    this.#timers.delete(next[0]);
    this.ms = Math.max(this.ms, next[1].at);
    next[1].fn();
    return true;
  }
}
