/** The clock of the machine, and engine time, which follows the clock of the database. */

import { performance } from 'node:perf_hooks';
import type { Clock, TimerHandle } from './clock.js';
import type { UnixMs } from './time.js';

/**
 * `performance.now()` counts from the start of a thread, `hrtime` from a common origin. A pause between the two
 * readings makes the origin appear earlier, so the latest of several is the most exact.
 */
const MONOTONIC_ORIGIN = Math.max(...Array.from({ length: 20 }, readOrigin));

function readOrigin(): number {
  const [seconds, nanoseconds] = process.hrtime();
  return seconds * 1_000 + nanoseconds / 1_000_000 - performance.now();
}

export const realClock: Clock = {
  now: () => Date.now(),
  monotonic: () => MONOTONIC_ORIGIN + performance.now(),
  setTimeout: (fn, ms) => setTimeout(fn, ms),
  clearTimeout: (handle) => clearTimeout(handle as NodeJS.Timeout),
};

/** A clock that is set back by at most this stands still until it is reached again. */
const HELD_MS_MAX = 1_000;

/**
 * The monotonic clock plus an offset, so that setting the machine's clock moves no deadline. A larger offset takes
 * effect at once; a slightly smaller one makes the clock stand still, a much smaller one makes it go back. The
 * initial offset is that of the machine's clock.
 */
export class EngineClock implements Clock {
  readonly #base: Clock;
  #offsetMs: number;
  #latest: UnixMs = Number.NEGATIVE_INFINITY;

  constructor(base: Clock = realClock) {
    this.#base = base;
    this.#offsetMs = base.now() - base.monotonic();
  }

  now(): UnixMs {
    const time = Math.floor(this.#base.monotonic() + this.#offsetMs);
    if (time > this.#latest) this.#latest = time;
    return this.#latest;
  }

  monotonic(): number {
    return this.#base.monotonic();
  }

  setTimeout(fn: () => void, ms: number): TimerHandle {
    return this.#base.setTimeout(fn, ms);
  }

  clearTimeout(handle: TimerHandle): void {
    this.#base.clearTimeout(handle);
  }

  /** @returns the jump of engine time, ahead or back; 0 when it is negligible */
  setOffset(offsetMs: number): number {
    const jumpMs = this.#base.monotonic() + offsetMs - this.now();
    this.#offsetMs = offsetMs;
    if (Math.abs(jumpMs) <= HELD_MS_MAX) return 0;
    this.#latest = Number.NEGATIVE_INFINITY;
    return jumpMs;
  }
}

/** Resolves with the work or at the deadline, which is on the monotonic clock. Rejects as the work does. */
export async function within(
  deadline: number,
  work: Promise<unknown>,
  clock: Clock = realClock,
): Promise<void> {
  let timer: TimerHandle;
  const timeout = new Promise<void>((resolve) => {
    timer = clock.setTimeout(resolve, Math.max(0, deadline - clock.monotonic()));
  });
  try {
    await Promise.race([work, timeout]);
  } finally {
    clock.clearTimeout(timer);
  }
}
