/** Whether a database is away, and may come back by itself, or refuses for good. */

/** Refused, timed out or cut connections, and a server that starts, stops or has no room. */
export function isAway(error: unknown): boolean {
  const code = (error as { code?: unknown }).code;
  if (typeof code === 'string') return /^(E[A-Z]+|08...|53...|57P0[123])$/.test(code);
  // A server without TLS says so with the same word, and stays so.
  return error instanceof Error && /^(?!.*SSL).*(?:connection|timeout)/i.test(error.message);
}
