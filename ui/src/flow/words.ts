/** How kinds of blocks and marks of an axis are worded. Pure; the zone is that of the viewer unless one is given. */

import type { Look } from './outline.ts';

export const LOOK_WORDS: Readonly<Record<Look, string>> = {
  step: 'step',
  http_request: 'HTTP request',
  approval: 'approval',
  sleep: 'sleep',
  wait_for_event: 'wait for an event',
  sub_sequence: 'sub-sequence',
  parallel: 'parallel',
  race: 'race',
  router: 'router',
  ab_split: 'A/B split',
  try_catch: 'try and catch',
  saga: 'saga',
  loop: 'loop',
  for_each: 'for each',
  cancellation_scope: 'cancellation scope',
  hooks: 'hooks',
  unknown: 'block',
};

/** As much of the time as tells two marks `step` ms apart from each other. */
export function tickText(at: number, step: number, zone?: string): string {
  const kind =
    step < 1_000 ? 'fraction' : step < 60_000 ? 'second' : step < 86_400_000 ? 'minute' : 'day';
  return formatter(kind, zone).format(at);
}

const PARTS = {
  fraction: { minute: '2-digit', second: '2-digit', fractionalSecondDigits: 3 },
  second: { hour: '2-digit', minute: '2-digit', second: '2-digit' },
  minute: { hour: '2-digit', minute: '2-digit' },
  day: { month: 'short', day: 'numeric' },
} as const satisfies Record<string, Intl.DateTimeFormatOptions>;

const formatters = new Map<string, Intl.DateTimeFormat>();

/** Making one costs more than using it a hundred times. */
function formatter(kind: keyof typeof PARTS, zone: string | undefined): Intl.DateTimeFormat {
  const key = `${kind} ${zone}`;
  const known = formatters.get(key);
  if (known !== undefined) return known;
  const made = new Intl.DateTimeFormat('en-GB', {
    ...PARTS[kind],
    ...(zone === undefined ? {} : { timeZone: zone }),
  });
  formatters.set(key, made);
  return made;
}
