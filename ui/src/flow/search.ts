/** Finds blocks by id, handler or kind. Pure. */

import { lookName } from './kinds.ts';
import type { Outline } from './outline.ts';

/** Paths in document order; none for an empty text. */
export function pathsFound({ byPath }: Outline, text: string): readonly string[] {
  const wanted = text.trim().toLowerCase();
  if (wanted === '') return [];
  return [...byPath.values()]
    .filter(({ id, detail, look }) =>
      [id, detail, lookName(look)].some((part) => part.toLowerCase().includes(wanted)),
    )
    .map(({ path }) => path);
}

/** The next or previous of `count` results, around the ends. @param at undefined: none yet */
export function nextFound(at: number | undefined, count: number, step: 1 | -1): number {
  if (at === undefined) return step === 1 ? 0 : count - 1;
  return (at + step + count) % count;
}
