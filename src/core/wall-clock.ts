/**
 * What clocks show: wall-clock times are handled as if they were UTC and converted with the offsets of
 * their zone, so that gaps and repeated hours have one answer whatever the time or the zone of the
 * machine.
 */

import { FixedOffsetZone, IANAZone, type Zone } from 'luxon';
import { isoTime, type UnixMs } from '../base/time.js';

/** A wall-clock time as the Unix milliseconds it would have in UTC. */
export type LocalMs = number;

export const SECOND_MS = 1_000;
export const MINUTE_MS = 60_000;
export const HOUR_MS = 60 * MINUTE_MS;
export const DAY_MS = 24 * HOUR_MS;

/** @param name of a zone that there is */
export function zoneOf(name: string): Zone {
  // Asking Intl for an offset takes some 10 µs, and most instances and schedules are in UTC.
  return name === 'UTC' ? FixedOffsetZone.utcInstance : IANAZone.create(name);
}

export function offsetMs(zone: Zone, at: UnixMs): number {
  return Math.round(zone.offset(at) * MINUTE_MS);
}

/** RFC 3339 as clocks in the zone show it, with their offset, which that form knows in whole minutes. */
export function zonedTime(zone: Zone, at: UnixMs): string {
  const minutes = Math.round(zone.offset(at));
  const digits = (value: number) => String(value).padStart(2, '0');
  const size = Math.abs(minutes);
  const offset = `${digits(Math.floor(size / 60))}:${digits(size % 60)}`;
  const shown = isoTime(at + minutes * MINUTE_MS).slice(0, -1);
  return `${shown}${minutes < 0 ? '-' : '+'}${offset}`;
}

/** When clocks in a zone show a time. */
export interface Showings {
  /** Undefined for a time that they skip. */
  readonly first: UnixMs | undefined;
  /** When they show it once more. */
  readonly second: UnixMs | undefined;
  /** The offsets of the day before and of the day after. */
  readonly before: number;
  readonly behind: number;
}

/** A zone does not change twice within two days, so its offsets around the time are all there are. */
export function showingsOf(local: LocalMs, zone: Zone): Showings {
  const before = offsetMs(zone, local - DAY_MS);
  const behind = offsetMs(zone, local + DAY_MS);
  if (before === behind) return { first: local - before, second: undefined, before, behind };
  const instants = [Math.max(before, behind), Math.min(before, behind)].map((by) => local - by);
  const [first, second] = instants.filter((at) => offsetMs(zone, at) === local - at);
  return { first, second, before, behind };
}
