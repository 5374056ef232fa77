/** Instants and durations, updated live, with the exact instant as a tooltip. */

import { elapsedMs, formatDuration, formatInstant, formatRelative } from '../lib/format.ts';
import { useKnownNow, useNow } from '../lib/now.ts';

/** How long ago, or how long until. @param props.at ISO 8601; a missing value is shown as a dash */
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
 * The time from one instant to another, or to now as far as that is known.
 * @param props.until upper limit: when it ends by itself
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
