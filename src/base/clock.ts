/**
 * Everything that waits or measures takes a `Clock`, so that the simulation can replace it; only thread entries use
 * the real one (`real-clock.ts`).
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
 * The offset from the monotonic clock to the clock that was read. A known offset is moved only as far as the reading
 * proves it wrong: a slow reading proves little.
 */
export function offsetFrom({ unixMs, sentAt, receivedAt }: ClockReading, known?: number): number {
  if (known === undefined) return unixMs - (sentAt + receivedAt) / 2;
  return Math.min(Math.max(known, unixMs - receivedAt), unixMs - sentAt);
}
