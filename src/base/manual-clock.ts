/**
 * The clock of a server that a test controls. Time stands still until it is set. Measured durations are real, and a
 * timeout fires after its real duration or, if that is earlier, when the time is set to its end: what repeats at real
 * intervals finds that no time has passed, and nothing waits for a time that has come.
 */

import type { TimerHandle } from './clock.js';
import { EngineClock } from './real-clock.js';
import type { UnixMs } from './time.js';

interface Timeout {
  readonly at: UnixMs;
  readonly fn: () => void;
  handle: TimerHandle;
}

export class ManualClock extends EngineClock {
  #now: UnixMs;
  readonly #timeouts = new Set<Timeout>();

  constructor(now: UnixMs) {
    super();
    this.#now = now;
  }

  override now(): UnixMs {
    return this.#now;
  }

  override setTimeout(fn: () => void, ms: number): TimerHandle {
    const timeout: Timeout = { at: this.#now + ms, fn, handle: undefined };
    timeout.handle = super.setTimeout(() => this.#fire(timeout), ms);
    this.#timeouts.add(timeout);
    return timeout;
  }

  override clearTimeout(handle: TimerHandle): void {
    const timeout = handle as Timeout | undefined;
    if (timeout !== undefined && this.#timeouts.delete(timeout)) super.clearTimeout(timeout.handle);
  }

  /**
   * Sets the time, where other clocks set an offset, and fires what is due, in order. Time never goes back.
   *
   * @returns 0: that time has passed is no jump of the clock
   */
  override setOffset(unixMs: UnixMs): number {
    this.#now = Math.max(this.#now, unixMs);
    const due = [...this.#timeouts].filter(({ at }) => at <= this.#now);
    for (const timeout of due.sort((a, b) => a.at - b.at)) {
      super.clearTimeout(timeout.handle);
      this.#fire(timeout);
    }
    return 0;
  }

  #fire(timeout: Timeout): void {
    if (this.#timeouts.delete(timeout)) timeout.fn();
  }
}
