/** Whether a database is temporarily unavailable, or refuses for good. */

/** True for refused, timed out or cut connections, and for a server that starts, stops or has no free connection. */
export function isUnavailable(error: unknown): boolean {
  const code = (error as { code?: unknown }).code;
  if (typeof code === 'string') return /^(E[A-Z]+|08...|53...|57P0[123])$/.test(code);
  // A server without TLS says so with the same word, and stays so.
  return error instanceof Error && /^(?!.*SSL).*(?:connection|timeout)/i.test(error.message);
}
