/** Distinguishes programming errors from errors of a database, which throws none of these. */

import { AssertionError } from 'node:assert';

export function isOfCode(error: unknown): boolean {
  return (
    error instanceof TypeError ||
    error instanceof RangeError ||
    error instanceof SyntaxError ||
    error instanceof AssertionError
  );
}
