/** In the place of what is not there yet: why it could not be read, where that is so. */

import { ErrorBox } from '../../components/error-box.tsx';
import { Place } from '../../components/later.tsx';

export function Awaited(props: {
  /** Undefined: nothing is asked for yet. */
  readonly query: { readonly error: unknown; readonly refetch: () => unknown } | undefined;
  /** Of the place that is kept, in pixels; absent for parts that may have nothing to show. */
  readonly height?: number;
}) {
  const { query, height } = props;
  if (query?.error) return <ErrorBox error={query.error} onRetry={() => void query.refetch()} />;
  return height === undefined ? null : <Place height={height} />;
}
