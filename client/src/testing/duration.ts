/** Durations as text: a number with a unit, or ISO 8601 without years and months, whose lengths differ. */

const UNITS: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
};
const PLAIN = /^(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)$/;
const ISO = /^P(?=.)(?:(\d+)W)?(?:(\d+)D)?(?:T(?=.)(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?$/;
const ISO_UNITS = [7 * 86_400_000, 86_400_000, 3_600_000, 60_000, 1_000];

/** @throws TypeError unless it is a duration of whole milliseconds */
export function durationMs(duration: number | string): number {
  const ms = typeof duration === 'number' ? duration : msOf(duration.trim());
  if (ms !== undefined && Number.isSafeInteger(ms) && ms >= 0) return ms;
  const known = "milliseconds, or text such as '90s', '15m', '2h', '3d', '500ms' or 'P1DT12H'";
  throw new TypeError(`${JSON.stringify(duration)} is not a duration: ${known}`);
}

function msOf(text: string): number | undefined {
  const [, amount, unit] = PLAIN.exec(text) ?? [];
  if (amount !== undefined && unit !== undefined) return Math.round(Number(amount) * UNITS[unit]!);
  const iso = ISO.exec(text);
  if (iso === null) return undefined;
  return Math.round(ISO_UNITS.reduce((sum, ms, at) => sum + ms * Number(iso[at + 1] ?? 0), 0));
}
