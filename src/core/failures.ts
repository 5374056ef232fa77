/** Failures of instances as values (docs/reference/failures.md). */

import { FAILURE_MESSAGE_MAX, type Failure, type FailureCode } from '../../schema/failure.js';
import { clip } from '../base/bounds.js';
import { isJsonObject, type JsonValue, ownValue } from '../base/json.js';
import { isoTime, type UnixMs } from '../base/time.js';

/** `_error` in the row of a step that has missed its deadline. */
export const BREACHED = 'sla_deadline_breached';

/** Whether the output is the error of a step that failed for good; a retry of the instance deletes it. */
export function isErrorRow(output: JsonValue): boolean {
  if (!isJsonObject(output)) return false;
  return ownValue(output, '__error__') === true || ownValue(output, '_error') === BREACHED;
}

export function reasonOf(code: FailureCode, message: string, now: UnixMs) {
  return { code, message: failureMessage(message), at: isoTime(now) };
}

export const failureMessage = (text: string): string => clip(text, FAILURE_MESSAGE_MAX - 1);

/** A failure that no block has caused. */
export function failureOfWhole(code: FailureCode, message: string, now: UnixMs): Failure {
  const nowhere = { block_id: null, path: null, handler: null, attempt: null };
  return { ...nowhere, ...reasonOf(code, message, now) };
}
