/** String formats of the contract. */

import { toUnixMs } from './common.js';

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/** Any version and variant, with hyphens. */
export function isUuid(text: string): boolean {
  return UUID.test(text);
}

export function isTimestamp(text: string): boolean {
  return toUnixMs(text) !== undefined;
}

export function isCalendarDay(text: string): boolean {
  return text.length === 10 && isTimestamp(`${text}T00:00:00Z`);
}

const zonesSeen = new Set(['UTC']);
/** There are some 600 zones and aliases; spellings in other cases must not fill the memory. */
const ZONES_SEEN_MAX = 1_000;

/** Newer runtimes accept offsets such as `+02:00` as zones; the contract does not. */
export function isTimeZone(text: string): boolean {
  if (zonesSeen.has(text)) return true;
  if (text.length > 64 || !/^[a-z]/i.test(text)) return false;
  try {
    new Intl.DateTimeFormat('en', { timeZone: text });
  } catch {
    // The constructor throws only for unknown zones.
    return false;
  }
  if (zonesSeen.size < ZONES_SEEN_MAX) zonesSeen.add(text);
  return true;
}
