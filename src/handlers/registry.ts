/**
 * The built-in handlers with outside effects. They are called once the dispatch of the step is committed, so an
 * attempt may be repeated after a crash, with the same idempotency key. Other names run on external workers.
 */

import type { JsonObject, JsonValue } from '../base/json.js';
import type { StepOutcome } from '../core/builtin.js';
import { createHttpRequest } from './http-request.js';
import type { HttpRequestDeps } from './http-transport.js';

export interface HandlerLog {
  debug(fields: JsonObject, message: string): void;
  info(fields: JsonObject, message: string): void;
  warn(fields: JsonObject, message: string): void;
}

export interface HandlerContext {
  /** Aborted when the step times out, is cancelled, or the shard stops. */
  readonly signal: AbortSignal;
  /** The same for all tries of one execution of a step; sent as the header `Idempotency-Key`. */
  readonly idempotencyKey: string;
  readonly tenant: string;
  readonly isLong: boolean;
  readonly traceparent?: string;
  readonly log: HandlerLog;
  readonly now: () => number;
  /** Calls `then` once the memory of the outcome is released, by its instance or otherwise. Absent: at once. */
  readonly whenTaken?: (then: () => void) => void;
  /** Waits for a resource of the engine; the wait does not count as time of the call. */
  readonly waitFor: <T>(what: Promise<T>) => Promise<T>;
}

/** Never rejects, and settles promptly once its signal aborts; the caller (`handler-pool.ts`) relies on neither. */
export interface EffectHandler {
  (params: JsonValue, context: HandlerContext): Promise<StepOutcome>;
  /** The time limit in the parameters of the call; absent: that of the server. */
  readonly limitMs?: (params: JsonValue) => number;
}

export function createRegistry(deps: {
  readonly http: HttpRequestDeps;
}): ReadonlyMap<string, EffectHandler> {
  return new Map([['http_request', createHttpRequest(deps.http)]]);
}
