/** Pauses between retries that go on for as long as the page is open. */

import { EngineError } from 'durable-workflow-engine-client';

const PAUSE_MS = { min: 1000, max: 30_000 } as const;

/**
 * Exponential backoff with jitter, so that pages that lost the same engine do not reconnect at the same moment.
 *
 * @param tries failed attempts so far
 * @param error of the latest attempt: the engine may ask for a longer pause
 */
export function pauseMs(tries: number, error: unknown): number {
  const askedFor = error instanceof EngineError ? (error.retryAfterMs ?? 0) : 0;
  const growing = Math.min(PAUSE_MS.min * 2 ** tries, PAUSE_MS.max);
  return Math.max(askedFor, growing * (0.5 + Math.random() / 2));
}

/** Resolves after this time, or at once when the signal is aborted. */
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
