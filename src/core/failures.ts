/** Failures of instances as values (docs/reference/failures.md). */

import { FAILURE_MESSAGE_MAX, type Failure, type FailureCode } from '../../schema/failure.js';
import { clip } from './expression/bounds.js';
import { isoTime, type UnixMs } from './time.js';

/** What every failure says, wherever it happened. */
export function reasonOf(
  code: FailureCode,
  message: string,
  now: UnixMs,
): Pick<Failure, 'code' | 'message' | 'at'> {
  return { code, message: failureMessage(message), at: isoTime(now) };
}

/** As long as the messages of failures may be. */
export function failureMessage(text: string): string {
  return clip(text, FAILURE_MESSAGE_MAX - 1);
}

/** Of an instance that failed as a whole, and not because of one of its blocks. */
export function failureOfWhole(code: FailureCode, message: string, now: UnixMs): Failure {
  const nowhere = { block_id: null, path: null, handler: null, attempt: null };
  return { ...nowhere, ...reasonOf(code, message, now) };
}
