/** A placeholder for data that is loading, or the error if it could not be loaded. */

import { ErrorBox } from '../../components/error-box.tsx';
import { Place } from '../../components/later.tsx';

export function Awaited(props: {
  /** Undefined: nothing was requested yet. */
  readonly query: { readonly error: unknown; readonly refetch: () => unknown } | undefined;
  /** Height to reserve, in pixels; undefined for parts that may be empty. */
  readonly height?: number;
}) {
  const { query, height } = props;
  if (query?.error) return <ErrorBox error={query.error} onRetry={() => void query.refetch()} />;
  return height === undefined ? null : <Place height={height} />;
}
