/** What an error says of the engine and of the next try. */

import { EngineError } from 'durable-workflow-engine-client';

/** Whether an answer will not change by asking again. Of 429 it will: the engine asks to wait a moment. */
export function isFinal(error: unknown): boolean {
  if (!(error instanceof EngineError) || error.status === 429) return false;
  return error.status >= 400 && error.status < 500;
}

/** Whether the key is missing, wrong, revoked or expired. */
export function isUnknown(error: unknown): boolean {
  return error instanceof EngineError && error.status === 401;
}

/** Whether there is no engine that serves: nobody answers, a gateway does, or one that is not ready. */
export function isAway(error: unknown): boolean {
  if (!(error instanceof EngineError) || error.code === 'ENG_SLOW_READ') return false;
  return error.status === 0 || (error.status >= 502 && error.status <= 504);
}
