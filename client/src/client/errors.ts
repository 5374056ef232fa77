/** What a call of the client rejects with, whatever went wrong. */

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
 * A refusal of the server, or of the way to it. What the signal of the caller ends rejects with the reason of that
 * signal instead. docs/reference/errors.md has the codes of the server; those of the client have the status 0:
 *
 * - `CLIENT_NETWORK`: no answer came, or only a part of one; `cause` has the error of `fetch`
 * - `CLIENT_TIMEOUT`: the answer did not come in time
 * - `CLIENT_NO_ENGINE`: something else than an engine answers at the address; the status is what it answered
 */
export class EngineError extends Error {
  override readonly name = 'EngineError';
  /** That of the answer; 0 where none came. */
  readonly status: number;
  /** Stable, for programs; messages are for people. */
  readonly code: string;
  /** The field that the refusal is about, where the message names one. */
  readonly field: string | undefined;
  /** By which the log of the server has the request. */
  readonly requestId: string | undefined;
  /** How long the server asks to wait before another try. */
  readonly retryAfterMs: number | undefined;
  /** The body of the refusal; that of a definition has the lists `errors` and `warnings`. */
  readonly body: unknown;

  constructor({
    status,
    code,
    message,
    field,
    requestId,
    retryAfterMs,
    body,
    cause,
  }: EngineErrorParts) {
    super(message, cause === undefined ? undefined : { cause });
    this.status = status;
    this.code = code;
    this.field = field;
    this.requestId = requestId;
    this.retryAfterMs = retryAfterMs;
    this.body = body;
  }
}
