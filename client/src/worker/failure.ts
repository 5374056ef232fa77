/** From whatever a handler threw to what the server is told. Pure. */

export interface Failure {
  readonly message: string;
  readonly retryable: boolean;
  readonly retryAfterMs: number;
  /** As JSON. */
  readonly details: string | undefined;
}

/** An error is retryable unless it says that it is not. */
export function failureOf(thrown: unknown): Failure {
  const { retryable, retryAfterMs, details } = (
    typeof thrown === 'object' && thrown !== null ? thrown : {}
  ) as { retryable?: unknown; retryAfterMs?: unknown; details?: unknown };
  return {
    message: messageOf(thrown),
    retryable: retryable !== false,
    retryAfterMs: typeof retryAfterMs === 'number' && retryAfterMs > 0 ? retryAfterMs : 0,
    details: details === undefined ? undefined : textOf(details),
  };
}

function messageOf(thrown: unknown): string {
  if (thrown instanceof Error) return thrown.message || thrown.name;
  if (typeof thrown === 'string' && thrown !== '') return thrown;
  return `the handler threw ${textOf(thrown)}`;
}

function textOf(value: unknown): string {
  try {
    return JSON.stringify(value) ?? String(value);
  } catch {
    // It contains itself, or a bigint; not everything has a text of its own.
    return Object.prototype.toString.call(value);
  }
}
