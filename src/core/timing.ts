/**
 * Calendar arithmetic: how long a retry waits and when a delayed step is due. Wall-clock times are handled as if they
 * were UTC and converted with the offsets of their zone, so that gaps and repeated hours have one answer whatever the
 * zone of the machine.
 */

import { DateTime, FixedOffsetZone, IANAZone, type Zone } from 'luxon';
import type { UnixMs } from '../base/time.js';

/** Durations in ms. With a `backoff_multiplier` below 1 waits get shorter. */
export interface RetryTimes {
  readonly initial_backoff: number;
  readonly max_backoff: number;
  readonly backoff_multiplier: number;
}

/** `duration` and `jitter` in ms; `holidays` as `YYYY-MM-DD`; `fire_at_local` is a wall-clock time. */
export interface DelayTimes {
  readonly duration: number;
  readonly business_days_only?: boolean;
  readonly jitter?: number;
  readonly holidays?: readonly string[];
  readonly fire_at_local?: string;
  readonly timezone?: string;
}

/** Hours from 0 to 23 and different, `end_hour` excluded; days from 0 (Monday) to 6, none: all. */
export interface WindowTimes {
  readonly start_hour: number;
  readonly end_hour: number;
  readonly days: readonly number[];
}

export interface DelayWorld {
  readonly now: number;
  readonly timezone: string;
  readonly random: () => number;
  /** `YYYY-MM-DD`, from context.config.holidays. */
  readonly configHolidays: readonly string[];
}

/** Larger powers exceed every cap anyway (docs/reference/steps.md). */
const EXPONENT_MAX = 63;

/** `initial_backoff * backoff_multiplier ^ failedAttempt` in ms, at most `max_backoff`. The first attempt is 0. */
export function backoffMs(retry: RetryTimes, failedAttempt: number): number {
  if (retry.initial_backoff <= 0) return 0;
  const exponent = Math.min(Math.max(failedAttempt, 0), EXPONENT_MAX);
  const wait = retry.initial_backoff * retry.backoff_multiplier ** exponent;
  return Math.max(0, Math.floor(Math.min(wait, retry.max_backoff)));
}

/** Without a policy: at once, then 200 ms, 400 ms, …, so that a broken worker does not cause a hot loop. */
const REDISPATCH: RetryTimes = { initial_backoff: 100, max_backoff: 60_000, backoff_multiplier: 2 };

/** The wait in whole ms after attempt `failedAttempt` of a step without `retry`. */
export function redispatchMs(failedAttempt: number): number {
  return failedAttempt === 0 ? 0 : backoffMs(REDISPATCH, failedAttempt);
}

/** The last instant with a four-digit year, as timestamps on the wire require. */
const LATEST_MS = 253_402_300_799_999;

/**
 * When a delayed step is due, in Unix ms: `now` plus the duration, or `fire_at_local` in its own zone or that of the
 * instance. Weekends and holidays are skipped on request, keeping the clock time; jitter is added last and ignores
 * both. A wall-clock time that does not exist is moved by the width of the gap; one that exists twice means the first.
 * An unknown zone counts as UTC, a malformed `fire_at_local` as absent.
 */
export function delayTarget(delay: DelayTimes, world: DelayWorld): number {
  const local = delay.fire_at_local === undefined ? undefined : parseLocal(delay.fire_at_local);
  const zone = zoneNamed(local === undefined ? world.timezone : (delay.timezone ?? world.timezone));
  let target =
    local === undefined ? Math.min(world.now + delay.duration, LATEST_MS) : toUnix(local, zone);
  if (delay.business_days_only === true) {
    const holidays = new Set([...(delay.holidays ?? []), ...world.configHolidays]);
    target = nextBusinessDay(target, zone, holidays);
  }
  const jitter = delay.jitter ?? 0;
  const shift = jitter > 0 ? Math.floor(world.random() * (2 * jitter + 1)) - jitter : 0;
  return Math.min(Math.max(Math.round(target + shift), 0), LATEST_MS);
}

/** Two weeks and a day: each allowed day comes twice, and no zone skips the same hour on both. */
const OPENING_DAYS_MAX = 15;

/** When a step with this window may run, in Unix ms: `now`, or the next opening on an allowed day. */
export function nextOpening(window: WindowTimes, now: number, timezone: string): number {
  const zone = zoneNamed(timezone);
  const local: LocalMs = now + offsetMs(zone, now);
  if (isOpen(window, local)) return now;
  const start: LocalMs = Math.floor(local / DAY_MS) * DAY_MS + window.start_hour * HOUR_MS;
  for (let day = start > local ? 0 : 1; day <= OPENING_DAYS_MAX; day += 1) {
    const wanted: LocalMs = start + day * DAY_MS;
    if (!isOpen(window, wanted)) continue;
    const at = toUnix(wanted, zone);
    if (isOpen(window, at + offsetMs(zone, at))) return at;
  }
  throw new Error(`a window that opens at ${window.start_hour} in ${timezone} never opens`);
}

/** Compares local day and hour, even if the window contains midnight. */
function isOpen({ start_hour, end_hour, days }: WindowTimes, local: LocalMs): boolean {
  const clock = new Date(local);
  const hour = clock.getUTCHours();
  const weekday = (clock.getUTCDay() + 6) % 7;
  if (days.length > 0 && !days.includes(weekday)) return false;
  return start_hour < end_hour
    ? start_hour <= hour && hour < end_hour
    : start_hour <= hour || hour < end_hour;
}

/** Whether `text` is `YYYY-MM-DDTHH:MM:SS` and a valid date and time. */
export const isLocalTime = (text: string): boolean => parseLocal(text) !== undefined;
/** A look-up in Intl takes some 40 µs, and creations name only a few zones. */
const knownZones = new Set<string>(['UTC']);
/** Bounds the memory: further spellings are looked up each time. */
const KNOWN_ZONES_MAX = 2_000;

/** Whether `zone` is an IANA name, in upper or lower case. Offsets such as `+02:00` are not. */
export function isKnownTimezone(zone: string): boolean {
  if (knownZones.has(zone)) return true;
  if (zone.length > 64 || !/^[A-Za-z]/.test(zone) || !IANAZone.isValidZone(zone)) return false;
  if (knownZones.size < KNOWN_ZONES_MAX) knownZones.add(zone);
  return true;
}

function parseLocal(text: string): LocalMs | undefined {
  if (!/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d$/.test(text)) return undefined;
  const local = Date.parse(`${text}Z`);
  // Date.parse reads 30 February as 2 March.
  const isReal = !Number.isNaN(local) && new Date(local).toISOString().startsWith(text);
  return isReal ? local : undefined;
}

const zoneNamed = (name: string): Zone => zoneOf(isKnownTimezone(name) ? name : 'UTC');

function toUnix(local: LocalMs, zone: Zone): UnixMs {
  const { first, before } = showingsOf(local, zone);
  // In a gap, the offset before it moves the time by the width of the gap.
  return first ?? local - before;
}

const DAY_MOVES_MAX = 30;

function nextBusinessDay(target: number, zone: Zone, holidays: ReadonlySet<string>): number {
  const start: LocalMs = target + offsetMs(zone, target);
  let local = start;
  for (let moves = 0; moves < DAY_MOVES_MAX; moves += 1) {
    const day = new Date(local);
    const weekday = day.getUTCDay();
    if (weekday === 6) local += 2 * DAY_MS;
    else if (weekday === 0 || holidays.has(day.toISOString().slice(0, 10))) local += DAY_MS;
    else break;
  }
  // An unmoved target keeps its instant, even if its clock time exists twice.
  return local === start ? target : toUnix(local, zone);
}

/** A wall-clock time as the Unix milliseconds it would have in UTC. */
export type LocalMs = number;
export const SECOND_MS = 1_000;
export const MINUTE_MS = 60_000;
export const HOUR_MS = 60 * MINUTE_MS;
export const DAY_MS = 24 * HOUR_MS;

/** @param name a known zone */
export function zoneOf(name: string): Zone {
  // Asking Intl for an offset takes some 10 µs, and most instances and schedules are in UTC.
  return name === 'UTC' ? FixedOffsetZone.utcInstance : IANAZone.create(name);
}

export const offsetMs = (zone: Zone, at: UnixMs): number => Math.round(zone.offset(at) * MINUTE_MS);

/** RFC 3339 in local time, with the offset of the zone in whole minutes. */
export function zonedTime(zone: Zone, at: UnixMs): string {
  const time = DateTime.fromMillis(at, { zone, locale: 'en-US' });
  return time.toFormat("yyyy-MM-dd'T'HH:mm:ss.SSSZZ");
}

/**
 * The instants at which clocks in the zone show a local time: `first` is undefined in a gap, `second` unless the time is
 * repeated. A zone changes at most once in two days, so that the offsets a day before and a day after suffice.
 */
export function showingsOf(local: LocalMs, zone: Zone) {
  const before = offsetMs(zone, local - DAY_MS);
  const behind = offsetMs(zone, local + DAY_MS);
  if (before === behind) return { first: local - before, second: undefined, before, behind };
  const instants = [Math.max(before, behind), Math.min(before, behind)].map((by) => local - by);
  const [first, second] = instants.filter((at) => offsetMs(zone, at) === local - at);
  return { first, second, before, behind };
}
