/** Instants and durations, live, with the exact instant on hover and for copying. */

import { formatDuration, formatInstant, formatRelative } from '../lib/format.ts';
import { useNow } from '../lib/now.ts';

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

/** From one instant to another, or to now. */
export function Elapsed(props: { readonly from: string; readonly to?: string | undefined }) {
  const now = useNow();
  const from = new Date(props.from);
  const to = props.to === undefined ? now : new Date(props.to).getTime();
  return (
    <span title={`since ${formatInstant(from)}`} className="numbers whole">
      {formatDuration(Math.max(to - from.getTime(), 0))}
    </span>
  );
}
