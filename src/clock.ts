/** The machine's own clock and timers, as the `Clock` that the engine is handed. */

import { performance } from 'node:perf_hooks';
import type { Clock } from './core/clock.js';

export const realClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  setTimeout: (fn, ms) => setTimeout(fn, ms),
  clearTimeout: (handle) => clearTimeout(handle as NodeJS.Timeout),
};

/**
 * Engine time: the database's clock at the start, carried on by this machine's monotonic clock, so
 * that a change of the machine's clock moves no deadline.
 *
 * @param offsetMs database time minus `performance.timeOrigin + performance.now()`
 */
export function createEngineClock(offsetMs: number): Clock {
  const origin = performance.timeOrigin + offsetMs;
  // Worker threads have a monotonic clock of their own; timeOrigin makes them agree.
  return { ...realClock, now: () => Math.floor(origin + performance.now()) };
}
