/**
 * Optimistic concurrency: a change with the `updated_at` that its sender has read is refused when somebody else was
 * quicker. Checked where changes of one thing are decided one after the other.
 */

import { conflict } from './errors.js';
import { isoTime, msOfTime, type UnixMs } from './time.js';

/**
 * Later than the one before by at least the millisecond that callers see: otherwise a change within the same one, or
 * after a clock was set back, would not be noticed.
 */
export function updatedAt(now: UnixMs, before: string | null | undefined): string {
  return isoTime(before == null ? now : Math.max(now, msOfTime(before) + 1));
}

/**
 * @param given `if_unchanged_since` of the change; absent: anything is changed
 * @param present `updated_at` of what exists; null or undefined: nothing
 * @throws EngineError 409 when it was changed after `given`, or does not exist any more
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
