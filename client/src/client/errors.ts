/** What a call of the client rejects with, whatever went wrong. */

import type { Failure } from '../generated/types.js';

export interface EngineErrorParts {
  readonly status: number;
  readonly code: string;
  readonly message: string;
  readonly field?: string | undefined;
  readonly requestId?: string | undefined;
  readonly retryAfterMs?: number | undefined;
  readonly body?: unknown;
  readonly cause?: unknown;
}

/**
 * A refusal of the server, or no answer of it. What the signal of the caller ends rejects with the reason of that
 * signal instead. docs/reference/errors.md has the codes of the server. Those of the client have the status 0, unless
 * somebody else answered:
 *
 * - `CLIENT_UNREACHABLE`: no connection came about, so that nothing was sent
 * - `CLIENT_NETWORK`: no answer came, or only a part of one; the request may have been carried out
 * - `CLIENT_TIMEOUT`: the answer did not come in time; the same holds
 * - `CLIENT_NO_ENGINE`: something else than an engine answered, with the status
 * - `HTTP_502` and the like: so did a gateway before the engine
 */
export class EngineError extends Error {
  override readonly name = 'EngineError';
  /** That of the answer; 0 where none came. */
  readonly status: number;
  /** Stable, for programs; messages are for people. */
  readonly code: string;
  /** The field that the refusal is about, where the message begins with one. */
  readonly field: string | undefined;
  /** By which the log of the server has the request. */
  readonly requestId: string | undefined;
  /** How long the server asks to wait before another try, in milliseconds. */
  readonly retryAfterMs: number | undefined;
  /** The body of the refusal; that of a definition has the lists `errors` and `warnings`. */
  readonly body: unknown;

  constructor(parts: EngineErrorParts) {
    super(parts.message, parts.cause === undefined ? undefined : { cause: parts.cause });
    this.status = parts.status;
    this.code = parts.code;
    this.field = parts.field;
    this.requestId = parts.requestId;
    this.retryAfterMs = parts.retryAfterMs;
    this.body = parts.body;
  }
}

/** What cannot be sent as it was given, so that nothing was: a mistake of the caller. */
export class UnsendableError extends TypeError {}

/** An instance that was waited for ended, and not by completing. */
export class InstanceFailedError extends Error {
  override readonly name = 'InstanceFailedError';
  readonly instanceId: string;
  readonly state: 'failed' | 'cancelled';
  /** Which block failed, and why: docs/reference/failures.md. Undefined for one that was cancelled. */
  readonly failure: Failure | undefined;

  constructor(instanceId: string, state: 'failed' | 'cancelled', failure: Failure | undefined) {
    const why = failure === undefined ? '' : `: ${failure.message}`;
    const where = failure?.block_id ? ` at ${failure.block_id}` : '';
    super(
      `the instance ${instanceId} ${state === 'failed' ? 'failed' : 'was cancelled'}${where}${why}`,
    );
    this.instanceId = instanceId;
    this.state = state;
    this.failure = failure;
  }
}
