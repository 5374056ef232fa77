/**
 * Tick labels of a time axis, in the viewer's language, clock and time zone unless others are given, such as `15:05` or
 * `03:05 PM`. Pure; times are Unix milliseconds.
 */

export interface Viewer {
  readonly locale?: string;
  readonly zone?: string;
}

/** As much of the time as distinguishes two ticks that are `step` ms apart. */
export function tickText(at: number, step: number, viewer: Viewer = {}): string {
  const kind =
    step < SECOND ? 'fraction' : step < MINUTE ? 'second' : step < DAY ? 'minute' : 'day';
  return formatter(kind, viewer).format(at);
}

/** The labels of all ticks, with the date below the first one and wherever the date changes. */
export function tickTexts(ticks: readonly number[], step: number, viewer: Viewer = {}): string[] {
  let before: string | undefined;
  return ticks.map((at) => {
    const text = tickText(at, step, viewer);
    const day = formatter('day', viewer).format(at);
    if (step >= DAY || day === before) return text;
    before = day;
    return `${text}\n${day}`;
  });
}

/** The date and the time, to the second. */
export function momentText(at: number, viewer: Viewer = {}): string {
  return formatter('moment', viewer).format(at);
}

const SECOND = 1_000;
const MINUTE = 60_000;
const DAY = 86_400_000;

const PARTS = {
  fraction: { minute: '2-digit', second: '2-digit', fractionalSecondDigits: 3 },
  second: { hour: '2-digit', minute: '2-digit', second: '2-digit' },
  minute: { hour: '2-digit', minute: '2-digit' },
  day: { month: 'short', day: 'numeric' },
  moment: { month: 'short', day: 'numeric', hour: '2-digit', minute: '2-digit', second: '2-digit' },
} as const satisfies Record<string, Intl.DateTimeFormatOptions>;

const formatters = new Map<string, Intl.DateTimeFormat>();

/** Creating a formatter costs more than using it a hundred times. */
function formatter(kind: keyof typeof PARTS, { locale, zone }: Viewer): Intl.DateTimeFormat {
  const key = `${kind} ${locale} ${zone}`;
  const known = formatters.get(key);
  if (known !== undefined) return known;
  const made = new Intl.DateTimeFormat(locale, {
    ...PARTS[kind],
    ...(zone === undefined ? {} : { timeZone: zone }),
  });
  formatters.set(key, made);
  return made;
}
