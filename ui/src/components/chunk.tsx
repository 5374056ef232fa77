/** Renders long lists in chunks: laying out ten thousand rows at once blocks a browser for seconds. */

import { type ReactNode, useState } from 'react';
import { formatCount } from '../lib/format.ts';
import { Button } from './button.tsx';

export const CHUNK = 500;

/**
 * @param total how many rows there are
 * @param needed how many have to be shown, such as up to a selected row
 * @returns how many are shown, and the control that shows more; nothing if all are shown
 */
export function useChunk(
  total: number,
  needed = 0,
): readonly [shown: number, more: ReactNode | undefined] {
  const [asked, ask] = useState(CHUNK);
  const shown = Math.min(total, Math.max(asked, needed));
  if (shown === total) return [shown, undefined];
  return [
    shown,
    <p key="more">
      <Button onClick={() => ask(shown + CHUNK)}>
        Show {formatCount(Math.min(CHUNK, total - shown))} more
      </Button>{' '}
      <span className="dim small">
        {formatCount(shown)} of {formatCount(total)}
      </span>
    </p>,
  ];
}
