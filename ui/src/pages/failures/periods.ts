/** The periods in which failures are looked at, as in the address. Pure. */

const MINUTE_MS = 60_000;

export const PERIODS = [
  { name: '15m', label: '15 m', words: 'the last 15 minutes', spanMs: 15 * MINUTE_MS },
  { name: '1h', label: '1 h', words: 'the last hour', spanMs: 60 * MINUTE_MS },
  { name: '24h', label: '24 h', words: 'the last 24 hours', spanMs: 24 * 60 * MINUTE_MS },
  { name: '7d', label: '7 d', words: 'the last 7 days', spanMs: 7 * 24 * 60 * MINUTE_MS },
  { name: 'all', label: 'All', words: undefined, spanMs: undefined },
] as const;
export type Period = (typeof PERIODS)[number];

/** Also that of the overview. */
export const LAST_DAY = PERIODS[2];

export function periodOf(name: string | undefined): Period {
  return PERIODS.find((period) => period.name === name) ?? LAST_DAY;
}

/** Undefined: at any time. */
export function startOf({ spanMs }: Period, now: number): string | undefined {
  return spanMs === undefined ? undefined : new Date(now - spanMs).toISOString();
}
