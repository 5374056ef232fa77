/** What a query found, or that it is under way, or why it failed. Its place is kept, so that nothing jumps. */

import type { UseQueryResult } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { ErrorBox } from './error-box.tsx';
import styles from './loaded.module.css';

export function Loaded<T>(props: {
  readonly query: UseQueryResult<T>;
  /** How high the place is until there is something, in pixels. */
  readonly height?: number;
  readonly children: (data: T) => ReactNode;
}) {
  const { query, height = 160, children } = props;
  // What was read before stays, also when reading it again fails: the bar above says that the engine is away.
  if (query.data !== undefined) return children(query.data);
  if (query.error) return <ErrorBox error={query.error} onRetry={() => void query.refetch()} />;
  return (
    <div className={styles.place} style={{ minHeight: height }} aria-busy>
      <span className="hidden-text">Loading</span>
    </div>
  );
}
