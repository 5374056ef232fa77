/** The errors that calls of the client reject with. */

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
 * A refusal by the server, or a missing response. A call that its own signal aborts rejects with the reason of that
 * signal instead. The codes of the server are in docs/reference/errors.md. The codes of the client have status 0,
 * unless something else answered:
 *
 * - `CLIENT_UNREACHABLE`: no connection could be made, so nothing was sent
 * - `CLIENT_NETWORK`: no response or only a part of it arrived; the request may have been executed
 * - `CLIENT_TIMEOUT`: the response did not arrive in time; the request may have been executed
 * - `CLIENT_NO_ENGINE`: something other than an engine answered, with that status
 * - `HTTP_502` and similar: a gateway in front of the engine answered
 */
export class EngineError extends Error {
  override readonly name = 'EngineError';
  /** Status of the response; 0 if there was none. */
  readonly status: number;
  /** Stable, for programs; messages may change. */
  readonly code: string;
  /** The field that caused the refusal, if the message begins with one. */
  readonly field: string | undefined;
  /** The id of the request in the server log. */
  readonly requestId: string | undefined;
  /** How long the server asks to wait before a retry, in milliseconds. */
  readonly retryAfterMs: number | undefined;
  /** The body of the response; for a definition it has the lists `errors` and `warnings`. */
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

/** The caller's mistake: the request cannot be sent as given, and nothing was sent. */
export class UnsendableError extends TypeError {}

/** An instance that was waited for failed or was cancelled. */
export class InstanceFailedError extends Error {
  override readonly name = 'InstanceFailedError';
  readonly instanceId: string;
  readonly state: 'failed' | 'cancelled';
  /** The block that failed and the reason: docs/reference/failures.md. Undefined for a cancelled instance. */
  readonly failure: Failure | undefined;

  constructor(instanceId: string, state: 'failed' | 'cancelled', failure: Failure | undefined) {
    const why = failure === undefined ? '' : `: ${failure.message}`;
    const where = failure?.block_id ? ` at ${failure.block_id}` : '';
    super(
      `instance ${instanceId} ${state === 'failed' ? 'failed' : 'was cancelled'}${where}${why}`,
    );
    this.instanceId = instanceId;
    this.state = state;
    this.failure = failure;
  }
}
