/** Time as numbers, and its text form. */

/** Milliseconds since 1970-01-01T00:00:00Z, on the engine's clock. */
export type UnixMs = number;
let lastMs = Number.NaN;
let lastText = '';

/** RFC 3339 in UTC with milliseconds. Rows of one batch share their time, so the last text is cached. */
export function isoTime(ms: UnixMs): string {
  if (ms !== lastMs) {
    lastText = new Date(ms).toISOString();
    lastMs = ms;
  }
  return lastText;
}

/** The inverse of `isoTime`. */
export function msOfTime(text: string): UnixMs {
  return text === lastText ? lastMs : Date.parse(text);
}

export function isoTimeOrNull(ms: UnixMs | null): string | null {
  return ms === null ? null : isoTime(ms);
}

/** In ms; null: none. A definition stored by an older engine may contain any value. */
export function timeLimit(given: unknown): number | null {
  return Number.isInteger(given) && (given as number) >= 0 ? (given as number) : null;
}

/** The form of `isoTime` sorts like the times. */
export function laterOf(a: string, b: string): string {
  return a >= b ? a : b;
}
