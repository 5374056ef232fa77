/** The errors that handlers throw, and the reasons of their aborted signals. */

import { textOf } from './texts.js';

/**
 * Decides whether the step is retried. Only the member `retryable` counts, so that other error classes can have it,
 * too.
 */
abstract class TaskError extends Error {
  abstract readonly retryable: boolean;
  /** Stored as a line of the step's log, as JSON. */
  readonly details: unknown;

  constructor(message: string, { details, cause }: { details?: unknown; cause?: unknown } = {}) {
    super(message, cause === undefined ? undefined : { cause });
    this.details = details;
  }
}

export interface RetryableErrorOptions {
  /**
   * The earliest time of the next attempt, or the delay in milliseconds. The worker keeps the claim until then, but not
   * the slot.
   */
  readonly retryAfterMs?: number | Date;
  readonly details?: unknown;
  readonly cause?: unknown;
}

/** The step is retried according to its `retry`, as after any error other than `FatalError`. */
export class RetryableError extends TaskError {
  override readonly name = 'RetryableError';
  readonly retryable = true;
  readonly retryAfterMs: number;

  /** @throws TypeError for an invalid time */
  constructor(message: string, options: RetryableErrorOptions = {}) {
    super(message, options);
    this.retryAfterMs = waitOf(options.retryAfterMs) ?? invalidWait(options.retryAfterMs);
  }
}

function invalidWait(value: unknown): never {
  throw new TypeError(`retryAfterMs must be milliseconds or a Date, not ${textOf(value)}`);
}

/** The delay in milliseconds; undefined if the value is invalid. A missing value means no delay. */
export function waitOf(retryAfterMs: unknown): number | undefined {
  if (retryAfterMs === undefined || retryAfterMs === null) return 0;
  const isTime = retryAfterMs instanceof Date;
  const ms = isTime ? retryAfterMs.getTime() - Date.now() : retryAfterMs;
  if (typeof ms !== 'number' || Number.isNaN(ms)) return undefined;
  return Math.max(0, ms);
}

/** The step fails permanently: a retry would not help. */
export class FatalError extends TaskError {
  override readonly name: string = 'FatalError';
  readonly retryable = false;
}

/**
 * - `lost`: the server reports that the claim is over: the instance was cancelled, or another worker has the task
 * - `silent`: no heartbeat was acknowledged for the length of the lease, so another worker may have the task
 * - `timeout`: the `timeout_ms` of the task was exceeded
 * - `stopping`: the worker is stopping, and the task took longer than `stopTimeoutMs`
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
