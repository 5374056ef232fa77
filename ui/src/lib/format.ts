/** Formats numbers, instants and durations in the viewer's language and time zone. Pure. */

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

const relative = new Intl.RelativeTimeFormat(undefined, { numeric: 'auto', style: 'short' });
const instant = new Intl.DateTimeFormat(undefined, {
  dateStyle: 'medium',
  timeStyle: 'long',
});
const clock = { hour: '2-digit', minute: '2-digit', second: '2-digit' } as const;
const day = { year: 'numeric', month: 'short', day: 'numeric' } as const;
const clocks = {
  s: new Intl.DateTimeFormat(undefined, clock),
  ms: new Intl.DateTimeFormat(undefined, { ...clock, fractionalSecondDigits: 3 }),
};
const moments = {
  s: new Intl.DateTimeFormat(undefined, { ...day, ...clock }),
  ms: new Intl.DateTimeFormat(undefined, { ...day, ...clock, fractionalSecondDigits: 3 }),
};
const count = new Intl.NumberFormat();
const share = new Intl.NumberFormat(undefined, { style: 'percent', maximumSignificantDigits: 2 });
const compact = new Intl.NumberFormat(undefined, { notation: 'compact', maximumFractionDigits: 1 });

/** Such as `5 min. ago` or `in 2 days`. */
export function formatRelative(at: Date, now: number): string {
  const ms = at.getTime() - now;
  const size = Math.abs(ms);
  if (size < 5 * SECOND) return 'now';
  if (size < MINUTE) return relative.format(Math.trunc(ms / SECOND), 'second');
  if (size < HOUR) return relative.format(Math.trunc(ms / MINUTE), 'minute');
  if (size < DAY) return relative.format(Math.trunc(ms / HOUR), 'hour');
  if (size < 60 * DAY) return relative.format(Math.trunc(ms / DAY), 'day');
  return new Intl.DateTimeFormat(undefined, { dateStyle: 'medium' }).format(at);
}

/** With the time zone, and followed by the exact instant. */
export function formatInstant(at: Date): string {
  return `${instant.format(at)} (${at.toISOString()})`;
}

/** In the local time of another zone. @param local RFC 3339 with the offset of that zone */
export function formatZoned(local: string): string {
  return `${local.slice(0, 10)} ${local.slice(11, 19)} ${local.slice(-6)}`;
}

/** Date and time in the viewer's zone. */
export function formatLocal(at: Date): string {
  return moments.s.format(at);
}

/** The time of day, with the date unless it is today. */
export function formatClock(at: Date, now: number, to: 's' | 'ms' = 's'): string {
  const isToday = at.toDateString() === new Date(now).toDateString();
  return (isToday ? clocks : moments)[to].format(at);
}

/** Such as `12 ms`, `3.4 s`, `5 m 20 s`, `2 h 5 m` or `3 d 4 h`. */
export function formatDuration(ms: number): string {
  if (ms < SECOND) return `${Math.round(ms)} ms`;
  if (ms < 10 * SECOND) return `${(Math.floor(ms / 100) / 10).toString()} s`;
  if (ms < MINUTE) return `${Math.floor(ms / SECOND)} s`;
  if (ms < HOUR) return pair(ms, MINUTE, 'm', SECOND, 's');
  if (ms < DAY) return pair(ms, HOUR, 'h', MINUTE, 'm');
  return pair(ms, DAY, 'd', HOUR, 'h');
}

/** From one instant to `to`, or to now but at most to `until`, when it ends by itself. */
export function elapsedMs(
  from: number,
  now: number,
  {
    to = now,
    until,
  }: { readonly to?: number | undefined; readonly until?: number | undefined } = {},
): number {
  return Math.max(0, Math.min(to, until ?? to) - from);
}

function pair(ms: number, large: number, largeName: string, small: number, smallName: string) {
  const rest = Math.floor((ms % large) / small);
  const head = `${Math.floor(ms / large)} ${largeName}`;
  return rest === 0 ? head : `${head} ${rest} ${smallName}`;
}

export function formatCount(value: number): string {
  return count.format(value);
}

/** Compact, such as `1.2K`. */
export function formatCompact(value: number): string {
  return compact.format(value);
}

/** Of a share from 0 to 1, such as `12%`. */
export function formatShare(value: number): string {
  return share.format(value);
}

/** `1 instance`, `3 instances`. */
export function countOf(value: number, one: string, many = `${one}s`): string {
  return `${formatCount(value)} ${value === 1 ? one : many}`;
}

/** `customer_tier` as `Customer tier`. */
export function wordsOf(name: string): string {
  const words = name.replaceAll(/[_-]+/g, ' ').trim();
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** Indented JSON. */
export function jsonTextOf(value: unknown): string {
  return JSON.stringify(value, null, 2);
}

/** Ids of the same time share their beginning, so the end is shown. */
export function shortIdOf(id: string): string {
  return id.length > 12 ? `${id.slice(0, 4)}…${id.slice(-6)}` : id;
}
