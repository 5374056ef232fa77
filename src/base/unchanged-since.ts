/**
 * Optimistic concurrency: a change that contains the `updated_at` its sender has read is rejected if the object was
 * changed since. The check must run where changes of an object are serialised.
 */

import { conflict } from './errors.js';
import { isoTime, msOfTime, type UnixMs } from './time.js';

/**
 * Later than the previous time by at least a millisecond, the precision that callers see: otherwise a change within
 * the same millisecond, or after the clock was set back, would go unnoticed.
 */
export function updatedAt(now: UnixMs, before: string | null | undefined): string {
  return isoTime(before == null ? now : Math.max(now, msOfTime(before) + 1));
}

/**
 * @param given `if_unchanged_since` of the change; absent: no check
 * @param present `updated_at` of the object; null or undefined: it does not exist
 * @throws EngineError 409 when the object was changed after `given`, or does not exist any more
 */
export function checkUnchanged(
  given: string | null | undefined,
  present: string | null | undefined,
): void {
  if (given == null) return;
  const read = isoTime(Date.parse(given));
  if (present == null) {
    throw conflict(`if_unchanged_since is ${read}, but it is not there any more`);
  }
  const changed = Date.parse(present);
  if (changed <= Date.parse(given)) return;
  throw conflict(`if_unchanged_since is ${read}, but updated_at is ${isoTime(changed)}`);
}
