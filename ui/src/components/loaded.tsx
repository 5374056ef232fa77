/** What a query found, or that it is under way, or why it failed. Its place is kept, so that nothing jumps. */

import type { UseQueryResult } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { isAway } from '../api/engine-error.ts';
import { useLiveState } from '../api/live.tsx';
import { ErrorBox, messageOf } from './error-box.tsx';
import styles from './loaded.module.css';
import { Time } from './time.tsx';

export function Loaded<T>(props: {
  readonly query: UseQueryResult<T>;
  /** How high the place is until there is something, in pixels. */
  readonly height?: number;
  readonly children: (data: T) => ReactNode;
}) {
  const { query, height = 160, children } = props;
  // What was read before stays, also when reading it again fails.
  if (query.data !== undefined) {
    return (
      <>
        <NotReadAgain query={query} />
        {children(query.data)}
      </>
    );
  }
  if (query.error) return <ErrorBox error={query.error} onRetry={() => void query.refetch()} />;
  return (
    <div className={styles.place} style={{ minHeight: height }} aria-busy>
      <span className="hidden-text">Loading</span>
    </div>
  );
}

/** Says that what is shown is old, and why, where it is. */
export function NotReadAgain({ query }: { readonly query: UseQueryResult<unknown> }) {
  const live = useLiveState();
  const { error, dataUpdatedAt } = query;
  // Then the bar above says so for the whole page.
  if (!query.isRefetchError || (live === 'lost' && isAway(error))) return null;
  return (
    <p className={styles.old} role="alert">
      This was read <Time at={new Date(dataUpdatedAt).toISOString()} />, and could not be read
      again: {messageOf(error)}
    </p>
  );
}
