/** What handlers throw, and what their signals are aborted with. */

import { textOf } from './texts.js';

/**
 * Says whether the step is tried again, whatever else is thrown: its `retryable` is what counts, so that errors of
 * one's own can have it, too.
 */
abstract class TaskError extends Error {
  abstract readonly retryable: boolean;
  /** Kept as a line of the step's log, as JSON. */
  readonly details: unknown;

  constructor(message: string, { details, cause }: { details?: unknown; cause?: unknown } = {}) {
    super(message, cause === undefined ? undefined : { cause });
    this.details = details;
  }
}

export interface RetryableErrorOptions {
  /**
   * The next try comes no sooner, in milliseconds, or at that time: the worker keeps the claim until then, and not its
   * place.
   */
  readonly retryAfterMs?: number | Date;
  readonly details?: unknown;
  readonly cause?: unknown;
}

/** The step is tried again, as its `retry` says. So it is after any error that is no `FatalError`. */
export class RetryableError extends TaskError {
  override readonly name = 'RetryableError';
  readonly retryable = true;
  readonly retryAfterMs: number;

  /** @throws TypeError for a time that is none */
  constructor(message: string, options: RetryableErrorOptions = {}) {
    super(message, options);
    this.retryAfterMs = waitOf(options.retryAfterMs) ?? invalidWait(options.retryAfterMs);
  }
}

function invalidWait(value: unknown): never {
  throw new TypeError(`retryAfterMs must be milliseconds or a Date, not ${textOf(value)}`);
}

/** Milliseconds from now on; undefined: it says none. Absent is none at all. */
export function waitOf(retryAfterMs: unknown): number | undefined {
  if (retryAfterMs === undefined || retryAfterMs === null) return 0;
  const isTime = retryAfterMs instanceof Date;
  const ms = isTime ? retryAfterMs.getTime() - Date.now() : retryAfterMs;
  if (typeof ms !== 'number' || Number.isNaN(ms)) return undefined;
  return Math.max(0, ms);
}

/** The step has failed for good: another try would not help. */
export class FatalError extends TaskError {
  override readonly name: string = 'FatalError';
  readonly retryable = false;
}

/**
 * - `lost`: the server says that the claim is over: the instance was cancelled, or another worker has the task
 * - `silent`: no heartbeat was answered for as long as the lease lasts, so that another worker may have the task
 * - `timeout`: the `timeout_ms` of the task has passed
 * - `stopping`: the worker stops, and the task took longer than `stopTimeoutMs`
 */
export type AbortReason = 'lost' | 'silent' | 'timeout' | 'stopping';

/** The reason of `ctx.signal`. */
export class TaskAbortedError extends Error {
  override readonly name = 'TaskAbortedError';
  readonly reason: AbortReason;

  constructor(reason: AbortReason, message: string) {
    super(message);
    this.reason = reason;
  }
}
