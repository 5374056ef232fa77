/**
 * The built-in handlers that act on the outside world, by name. A shard starts one only after the
 * step is committed as dispatched, so an attempt may happen again after a crash, with the same
 * idempotency key. A name that is neither here nor in `core/builtin.ts` means an external worker.
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
  /** The same for all tries of one execution of a step; goes out as the header `Idempotency-Key`. */
  readonly idempotencyKey: string;
  /** Whose step it is. */
  readonly tenant: string;
  /** It may take longer than a minute. */
  readonly isLong: boolean;
  /** W3C trace context of the attempt, when it is traced. */
  readonly traceparent?: string;
  readonly log: HandlerLog;
  /** Engine time in milliseconds. */
  readonly now: () => number;
  /**
   * Runs `then` once the outcome needs no memory of the handler's any more: its instance has taken
   * it, or nobody will. Absent: at once.
   */
  readonly whenTaken?: (then: () => void) => void;
  /** Waits for something of the engine's, which is not counted as time of the call. */
  readonly waitFor: <T>(what: Promise<T>) => Promise<T>;
}

/**
 * Never rejects: whatever happens is an outcome. Once its signal aborts it settles without delay.
 * Whoever calls it does not rely on either (`actors/shard/handler-pool.ts`).
 */
export interface EffectHandler {
  (params: JsonValue, context: HandlerContext): Promise<StepOutcome>;
  /** How long such a call may take by a limit of its own; absent: as long as the server lets it. */
  readonly limitMs?: (params: JsonValue) => number;
}

/** The handlers over their dependencies, whose owner opens and closes them. */
export function createRegistry(deps: {
  readonly http: HttpRequestDeps;
}): ReadonlyMap<string, EffectHandler> {
  return new Map([['http_request', createHttpRequest(deps.http)]]);
}
