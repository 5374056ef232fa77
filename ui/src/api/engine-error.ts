/** Classifies errors of the engine: final, unauthenticated, or unavailable. */

import { EngineError } from 'durable-workflow-engine-client';

/** Whether a retry would get the same answer. A 429 asks the caller to wait, so it is not final. */
export function isFinal(error: unknown): boolean {
  if (!(error instanceof EngineError) || error.status === 429) return false;
  return error.status >= 400 && error.status < 500;
}

/** Whether the key is missing, wrong, revoked or expired. */
export function isUnauthenticated(error: unknown): boolean {
  return error instanceof EngineError && error.status === 401;
}

/** Whether no engine is serving: there is no answer, a gateway answered, or the engine is not ready. */
export function isUnavailable(error: unknown): boolean {
  if (!(error instanceof EngineError) || error.code === 'ENG_SLOW_READ') return false;
  return error.status === 0 || (error.status >= 502 && error.status <= 504);
}
