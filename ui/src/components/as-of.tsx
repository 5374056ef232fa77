/** The instant that shown data is true of: the present while the engine reports changes, else that of the last read. */

import type { UseQueryResult } from '@tanstack/react-query';
import { useLiveState } from '../api/live.tsx';
import { formatClock } from '../lib/format.ts';
import { useKnownNow } from '../lib/now.ts';

/** @param props.isPolled the query is only read at intervals: reported changes say nothing about it */
export function AsOf(props: {
  readonly query: UseQueryResult<unknown>;
  readonly isPolled?: boolean;
}) {
  const { query, isPolled = false } = props;
  const live = useLiveState();
  const now = useKnownNow();
  // The rows of the previous query are shown, which say nothing about this one.
  if (query.isPlaceholderData) return <span className="dim small">loading…</span>;
  const isCurrent = live === 'live' && !query.isError && !isPolled;
  const at = isCurrent ? Math.max(now, query.dataUpdatedAt) : query.dataUpdatedAt;
  return (
    <span className="dim small numbers whole">as of {formatClock(new Date(at), Date.now())}</span>
  );
}
