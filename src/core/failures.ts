/** Failures of instances as values (docs/reference/failures.md). */

import { FAILURE_MESSAGE_MAX, type Failure, type FailureCode } from '../../schema/failure.js';
import { clip } from '../base/bounds.js';
import { isJsonObject, type JsonValue, ownValue } from '../base/json.js';
import { isoTime, type UnixMs } from '../base/time.js';

/** What the row of a step says whose deadline has passed. */
export const BREACHED = 'sla_deadline_breached';

/** Whether an output is that of a step which failed for good: a retry of the instance drops it. */
export function isErrorRow(output: JsonValue): boolean {
  if (!isJsonObject(output)) return false;
  return ownValue(output, '__error__') === true || ownValue(output, '_error') === BREACHED;
}

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
