/**
 * Computes the fire times of a cron expression. The search uses local times as if they were UTC, and converts them to
 * instants by the offsets of the zone (docs/cron.md):
 *
 * - local times in a gap fire once, at the first minute after the gap;
 * - a local time that occurs twice fires the first time only, unless the hour is `*`: such an expression is an interval.
 */

import type { Zone } from 'luxon';
import type { UnixMs } from '../../../src/base/time.js';
import {
  DAY_MS,
  type LocalMs,
  offsetMs,
  SECOND_MS,
  showingsOf,
  zoneOf,
} from '../../../src/core/timing.js';
import { type CronFields, YEAR_MAX, type YearRange } from './cron-fields.js';

const HOURS = 24;

/** The next fire strictly after an instant; null when none remains. @param timezone IANA name */
export function nextFire(fields: CronFields, timezone: string, after: UnixMs): UnixMs | null {
  const zone = zoneOf(timezone);
  const shown = after + offsetMs(zone, after);
  const from = Math.floor(shown / SECOND_MS) * SECOND_MS + SECOND_MS;
  const next = firstInstant(fields, zone, from, after);
  const again = fields.hours.length < HOURS ? undefined : shownAgain(fields, zone, after, next);
  if (again !== undefined && (next === undefined || again < next)) return again;
  return next ?? null;
}

export function nextFires(
  fields: CronFields,
  timezone: string,
  after: UnixMs,
  count: number,
): UnixMs[] {
  const fires: UnixMs[] = [];
  let last: UnixMs | null = after;
  while (fires.length < count) {
    last = nextFire(fields, timezone, last);
    if (last === null) break;
    fires.push(last);
  }
  return fires;
}

/** The instant in `(before, behind]` at which the offset changes to that of `behind`. */
function transition(zone: Zone, before: UnixMs, behind: UnixMs): UnixMs {
  const offset = offsetMs(zone, behind);
  let [low, high] = [before, behind];
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    if (offsetMs(zone, middle) === offset) high = middle;
    else low = middle;
  }
  return high;
}

function firstInstant(
  fields: CronFields,
  zone: Zone,
  from: LocalMs,
  after: UnixMs,
): UnixMs | undefined {
  const local = nextLocal(fields, from);
  if (local === undefined) return undefined;
  const { first, second, before, behind } = showingsOf(local, zone);
  const at =
    first ?? transition(zone, local - Math.max(before, behind), local - Math.min(before, behind));
  if (at > after) return at;
  if (second === undefined || fields.hours.length === HOURS) return second;
  return firstInstant(fields, zone, transition(zone, at, second) + before, after);
}

/** Local times that occur again between `after` and `next`, before and after the clock is set back. */
function shownAgain(fields: CronFields, zone: Zone, after: UnixMs, next: UnixMs | undefined) {
  const behind = Math.min(next ?? Number.POSITIVE_INFINITY, after + DAY_MS);
  const [old, offset] = [offsetMs(zone, after), offsetMs(zone, behind)];
  if (offset >= old) return undefined;
  const turn = transition(zone, after, behind);
  const local = nextLocal(fields, turn + offset);
  return local !== undefined && local < turn + old ? local - offset : undefined;
}

/** The first matching local time at or after `from`. */
function nextLocal(fields: CronFields, from: LocalMs): LocalMs | undefined {
  const today = Math.floor(from / DAY_MS) * DAY_MS;
  const year = new Date(today).getUTCFullYear();
  const isYear = nextYear(fields.years, year) === year;
  if (isYear && dayIn(fields, year, today, today + DAY_MS) !== undefined) {
    const time = timeOfDay(fields, (from - today) / SECOND_MS);
    if (time !== undefined) return today + time * SECOND_MS;
  }
  const day = nextDay(fields, today + DAY_MS);
  return day === undefined ? undefined : day + (timeOfDay(fields, 0) ?? 0) * SECOND_MS;
}

/** The first matching time at or after `from`, both in seconds of the day. */
function timeOfDay({ seconds, minutes, hours }: CronFields, from: number): number | undefined {
  const [hour, minute, second] = [Math.floor(from / 3_600), Math.floor(from / 60) % 60, from % 60];
  for (const h of hours) {
    if (h < hour) continue;
    for (const m of minutes) {
      if (h === hour && m < minute) continue;
      const isNow = h === hour && m === minute;
      const s = isNow ? seconds.find((value) => value >= second) : seconds[0];
      if (s !== undefined) return h * 3_600 + m * 60 + s;
    }
  }
  return undefined;
}

/** The first matching day at or after a midnight. The search up to the last year takes some milliseconds. */
function nextDay(fields: CronFields, from: LocalMs): LocalMs | undefined {
  let year = nextYear(fields.years, new Date(from).getUTCFullYear());
  while (year !== undefined) {
    const begin = Date.UTC(year, 0, 1);
    const found = dayIn(fields, year, Math.max(begin, from), Date.UTC(year + 1, 0, 1));
    if (found !== undefined) return found;
    year = nextYear(fields.years, year + 1);
  }
  return undefined;
}

/** The first matching day of a year between two midnights, the last excluded. */
function dayIn({ months, days, weekdays }: CronFields, year: number, from: LocalMs, to: LocalMs) {
  for (const month of months) {
    const end = Date.UTC(year, month, 1);
    if (end <= from) continue;
    for (const day of days) {
      const at = Date.UTC(year, month - 1, day);
      if (at >= end || at >= to) break;
      if (at >= from && weekdays.includes(weekdayOf(at))) return at;
    }
  }
  return undefined;
}

/** 0 is Sunday; 1970 began on a Thursday. */
function weekdayOf(day: LocalMs): number {
  return (((day / DAY_MS + 4) % 7) + 7) % 7;
}

function nextYear(years: readonly YearRange[], from: number): number | undefined {
  let next = YEAR_MAX + 1;
  for (const { first, last, step } of years) {
    const year = first + Math.max(0, Math.ceil((from - first) / step)) * step;
    if (year <= last) next = Math.min(next, year);
  }
  return next > YEAR_MAX ? undefined : next;
}
