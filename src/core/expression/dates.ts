/** Dates in expressions: ISO 8601 text in its own offset, or UTC. Independent of locale and system time zone. Pure. */

import { DateTime, Info } from 'luxon';

/** 0 = Monday … 6 = Sunday; null when the text is not a date. */
export function dayOfWeek(time: string): number | null {
  const date = parseTime(time);
  return date === undefined ? null : date.weekday - 1;
}

/** `format` with its strftime conversions replaced, in English; null when the text is not a date. */
export function formatDate(time: string, format: string): string | null {
  const date = parseTime(time);
  if (date === undefined) return null;
  return format.replace(/%(.)/gs, (all, letter: string) => CONVERSIONS.get(letter)?.(date) ?? all);
}

/** Bounds the input of the parser's patterns. */
const TIME_LENGTH_MAX = 40;

/** The text must begin with year and month: a time of day alone would be taken as today's. */
function parseTime(time: string): DateTime<true> | undefined {
  const text = time.trim();
  if (text.length > TIME_LENGTH_MAX || !/^\d{4}-\d\d/.test(text) || text.includes('[')) {
    return undefined;
  }
  const date = DateTime.fromISO(text.replace(' ', 'T'), {
    zone: 'utc',
    setZone: true,
    locale: 'en-US',
  });
  return date.isValid ? date : undefined;
}

const DAYS = Info.weekdays('long', { locale: 'en-US' });
const MONTHS = Info.months('long', { locale: 'en-US' });
type Conversion = (date: DateTime<true>) => string;

const CONVERSIONS: ReadonlyMap<string, Conversion> = new Map<string, Conversion>([
  ['Y', (date) => pad(date.year, 4)],
  ['y', (date) => pad(date.year % 100, 2)],
  ['m', (date) => pad(date.month, 2)],
  ['d', (date) => pad(date.day, 2)],
  ['e', (date) => String(date.day).padStart(2)],
  ['j', (date) => pad(date.ordinal, 3)],
  ['H', (date) => pad(date.hour, 2)],
  ['I', (date) => pad(date.hour % 12 || 12, 2)],
  ['M', (date) => pad(date.minute, 2)],
  ['S', (date) => pad(date.second, 2)],
  ['f', (date) => pad(date.millisecond, 3)],
  ['p', (date) => (date.hour < 12 ? 'AM' : 'PM')],
  ['A', (date) => DAYS[date.weekday - 1]!],
  ['a', (date) => DAYS[date.weekday - 1]!.slice(0, 3)],
  ['B', (date) => MONTHS[date.month - 1]!],
  ['b', (date) => MONTHS[date.month - 1]!.slice(0, 3)],
  ['u', (date) => String(date.weekday)],
  ['w', (date) => String(date.weekday % 7)],
  ['V', (date) => pad(date.weekNumber, 2)],
  ['G', (date) => pad(date.weekYear, 4)],
  ['F', (date) => `${pad(date.year, 4)}-${pad(date.month, 2)}-${pad(date.day, 2)}`],
  ['T', (date) => `${pad(date.hour, 2)}:${pad(date.minute, 2)}:${pad(date.second, 2)}`],
  ['R', (date) => `${pad(date.hour, 2)}:${pad(date.minute, 2)}`],
  ['s', (date) => String(Math.floor(date.toMillis() / 1000))],
  ['z', (date) => offsetText(date, '')],
  ['Z', (date) => (date.offset === 0 ? 'UTC' : offsetText(date, ':'))],
  ['%', () => '%'],
]);

export const DATE_CONVERSIONS: readonly string[] = [...CONVERSIONS.keys()];
const pad = (value: number, digits: number): string => String(value).padStart(digits, '0');

function offsetText(date: DateTime<true>, separator: string): string {
  const minutes = Math.abs(date.offset);
  const sign = date.offset < 0 ? '-' : '+';
  return `${sign}${pad(Math.floor(minutes / 60), 2)}${separator}${pad(minutes % 60, 2)}`;
}
