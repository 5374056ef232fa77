/**
 * Shows the data of a query, its loading state, or its error. The space is reserved, so that the layout does not jump.
 */

import type { UseQueryResult } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { isUnavailable } from '../api/engine-error.ts';
import { useLiveState } from '../api/live.tsx';
import { ErrorBox, messageOf } from './error-box.tsx';
import styles from './loaded.module.css';
import { Time } from './time.tsx';

export function Loaded<T>(props: {
  readonly query: UseQueryResult<T>;
  /** Height to reserve while loading, in pixels. */
  readonly height?: number;
  readonly children: (data: T) => ReactNode;
}) {
  const { query, height = 160, children } = props;
  // Data that was read before stays, also when rereading it fails.
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

/** Reports that the data shown is stale, and why. */
export function NotReadAgain({ query }: { readonly query: UseQueryResult<unknown> }) {
  const live = useLiveState();
  const { error, dataUpdatedAt } = query;
  // The banner above reports it for the whole page.
  if (!query.isRefetchError || (live === 'lost' && isUnavailable(error))) return null;
  return (
    <p className={styles.old} role="alert">
      Last updated <Time at={new Date(dataUpdatedAt).toISOString()} />. The latest update failed:{' '}
      {messageOf(error)}
    </p>
  );
}
