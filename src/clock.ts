/** The machine's own clock and timers, as the `Clock` that the engine is handed. */

import { performance } from 'node:perf_hooks';
import type { Clock } from './core/clock.js';

export const realClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  setTimeout: (fn, ms) => setTimeout(fn, ms),
  clearTimeout: (handle) => clearTimeout(handle as NodeJS.Timeout),
};

export interface EngineClock extends Clock {
  /** @param offsetMs database time minus `performance.timeOrigin + performance.now()` */
  setOffset(offsetMs: number): void;
}

/**
 * Engine time: the database's clock as it was read once, carried on by this machine's monotonic
 * clock, so that a change of the machine's clock moves no deadline. Until the offset is known it is
 * the machine's time.
 */
export function createEngineClock(): EngineClock {
  // Worker threads have a monotonic clock of their own; timeOrigin makes them agree.
  let origin = performance.timeOrigin;
  return {
    ...realClock,
    now: () => Math.floor(origin + performance.now()),
    setOffset: (offsetMs) => {
      origin = performance.timeOrigin + offsetMs;
    },
  };
}
