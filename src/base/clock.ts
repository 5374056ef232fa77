/**
 * Time as a value that is handed in. Everything that waits or measures takes a `Clock`, so that the
 * simulation can replace it; only thread entries construct the real one (`src/base/real-clock.ts`).
 */

/** What `setTimeout` returned; opaque, so that a simulated clock may use numbers. */
export type TimerHandle = unknown;

export interface Clock {
  /** Unix milliseconds. May jump when the clock is set. */
  now(): number;
  /** Milliseconds from an arbitrary origin. Never goes back: the one to measure durations with. */
  monotonic(): number;
  setTimeout(fn: () => void, ms: number): TimerHandle;
  clearTimeout(handle: TimerHandle): void;
}

/** What another clock showed at some moment between two moments of the monotonic clock. */
export interface ClockReading {
  readonly unixMs: number;
  readonly sentAt: number;
  readonly receivedAt: number;
}

/**
 * What is to be added to the monotonic clock to get the time of the clock that was read. An offset
 * that is known is only moved as far as the reading proves it wrong: a reading that took long proves
 * little.
 */
export function offsetFrom({ unixMs, sentAt, receivedAt }: ClockReading, known?: number): number {
  if (known === undefined) return unixMs - (sentAt + receivedAt) / 2;
  return Math.min(Math.max(known, unixMs - receivedAt), unixMs - sentAt);
}
