/**
 * The clock that all code uses to wait or measure, so that the simulation can replace it; only thread entries use the
 * real one (`real-clock.ts`).
 */

/** Opaque, so that a simulated clock may use numbers. */
export type TimerHandle = unknown;

export interface Clock {
  /** Unix milliseconds. May jump when the clock is set. */
  now(): number;
  /** Milliseconds from an arbitrary origin. Never goes back: use it to measure durations. */
  monotonic(): number;
  setTimeout(fn: () => void, ms: number): TimerHandle;
  clearTimeout(handle: TimerHandle): void;
}

/** A reading of another clock, taken between two moments of the monotonic clock. */
export interface ClockReading {
  readonly unixMs: number;
  readonly sentAt: number;
  readonly receivedAt: number;
}

/**
 * The offset of the other clock from the monotonic one. A known offset is moved only as far as the reading proves it
 * wrong, because a slow reading is imprecise.
 */
export function offsetFrom({ unixMs, sentAt, receivedAt }: ClockReading, known?: number): number {
  if (known === undefined) return unixMs - (sentAt + receivedAt) / 2;
  return Math.min(Math.max(known, unixMs - receivedAt), unixMs - sentAt);
}
