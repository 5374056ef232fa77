/** Instants and durations, live, with the exact instant on hover and for copying. */

import { elapsedMs, formatDuration, formatInstant, formatRelative } from '../lib/format.ts';
import { useKnownNow, useNow } from '../lib/now.ts';

/** How long ago it was, or how long until it is. @param props.at ISO 8601; nothing is shown as a dash */
export function Time({ at }: { readonly at: string | null | undefined }) {
  const now = useNow();
  if (!at) return <span className="dim">–</span>;
  const date = new Date(at);
  return (
    <time dateTime={at} title={formatInstant(date)} className="numbers whole">
      {formatRelative(date, now)}
    </time>
  );
}

/**
 * From one instant to another, or to now as far as that is known.
 * @param props.until when it is over by itself: no longer than that
 */
export function Elapsed(props: {
  readonly from: string;
  readonly to?: string | undefined;
  readonly until?: string | null;
}) {
  const now = useKnownNow();
  const from = new Date(props.from);
  const to = props.to === undefined ? undefined : Date.parse(props.to);
  const until = props.until ? Date.parse(props.until) : undefined;
  return (
    <span title={`since ${formatInstant(from)}`} className="numbers whole">
      {formatDuration(elapsedMs(from.getTime(), now, { to, until }))}
    </span>
  );
}
