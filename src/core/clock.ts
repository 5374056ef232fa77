/**
 * Time as a value that is handed in. Everything that waits or measures takes a `Clock`, so that the
 * simulation can replace it; only thread entries construct the real one (`src/clock.ts`).
 */

/** What `setTimeout` returned; opaque, so that a simulated clock may use numbers. */
export type TimerHandle = unknown;

export interface Clock {
  /** Unix milliseconds. May jump when the machine's clock is set. */
  now(): number;
  /** Milliseconds from an arbitrary origin. Never goes back: the one to measure durations with. */
  monotonic(): number;
  setTimeout(fn: () => void, ms: number): TimerHandle;
  clearTimeout(handle: TimerHandle): void;
}
