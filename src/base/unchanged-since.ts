/**
 * Changes of what was looked at before: who sends the `updated_at` that was read has the change refused when somebody
 * else was quicker. It is asked where the change is decided, one after the other for each thing.
 */

import { conflict } from './errors.js';
import { isoTime, msOfTime, type UnixMs } from './time.js';

/**
 * The `updated_at` of a change, later than the one before it by at least the millisecond that callers see: of two changes
 * within one, or with a clock that was set back, who had read the first would not be told of the second.
 */
export function updatedAt(now: UnixMs, before: string | null | undefined): string {
  return isoTime(before == null ? now : Math.max(now, msOfTime(before) + 1));
}

/**
 * @param given `if_unchanged_since` of the change; absent: whatever is there is changed
 * @param present `updated_at` of what is there; null or undefined: nothing is
 * @throws EngineError 409 when it was changed after `given`, or is not there any more
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
