/** Pauses between tries that go on for as long as the page is open. */

import { EngineError } from 'durable-workflow-engine-client';

const PAUSE_MS = { min: 1000, max: 30_000 } as const;

/**
 * Growing, with chance in it: pages that lost one engine do not come back together.
 *
 * @param tries that have failed before this one
 * @param error of this one: the engine may ask for a longer pause
 */
export function pauseMs(tries: number, error: unknown): number {
  const askedFor = error instanceof EngineError ? (error.retryAfterMs ?? 0) : 0;
  const growing = Math.min(PAUSE_MS.min * 2 ** tries, PAUSE_MS.max);
  return Math.max(askedFor, growing * (0.5 + Math.random() / 2));
}

/** Resolves after this time, and at once when the signal is aborted. */
export function sleep(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      signal.removeEventListener('abort', end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal.addEventListener('abort', end, { once: true });
  });
}
