/** Replaced by the simulation; only thread entries use the real clock (`real-clock.ts`). */

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

export interface ClockReading {
  readonly unixMs: number;
  readonly sentAt: number;
  readonly receivedAt: number;
}

/** The offset of the other clock. A known offset moves only as far as the reading proves it wrong. */
export function offsetFrom({ unixMs, sentAt, receivedAt }: ClockReading, known?: number): number {
  if (known === undefined) return unixMs - (sentAt + receivedAt) / 2;
  return Math.min(Math.max(known, unixMs - receivedAt), unixMs - sentAt);
}
