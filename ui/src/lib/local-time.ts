/** Converts between instants and the values of local date-time fields, in the viewer's time zone. Pure. */

/** To the minute; empty for an invalid instant. */
export function localTimeOf(instant: string): string {
  const at = new Date(instant);
  if (Number.isNaN(at.getTime())) return '';
  return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

export function instantOf(localTime: string): string | undefined {
  const at = new Date(localTime);
  return Number.isNaN(at.getTime()) ? undefined : at.toISOString();
}

/** Such as `Europe/Berlin`. */
export function zoneHere(): string {
  return Intl.DateTimeFormat().resolvedOptions().timeZone;
}
