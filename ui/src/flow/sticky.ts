/** Which titles of open groups stay at the top of a graph while it is scrolled. Pure. */

import { type Box, type Drawing, HEADER_HEIGHT } from './layout.ts';

/** More would hide what they are about. */
const NESTED_MAX = 3;
const HEIGHT = 32;

interface StickyHead extends Box {
  readonly path: string;
}

/**
 * In the coordinates of the drawing; the head of an inner group is below that of the group around it.
 * @param seen what the viewport shows
 */
export function stickyHeads({ nodes }: Drawing, seen: Box): readonly StickyHead[] {
  const levels = new Map<string, number>();
  return nodes.flatMap((node) => {
    const { path, block, x, width } = node;
    if (!node.isOpen) return [];
    const level = block.parent === null ? 0 : (levels.get(block.parent) ?? 0);
    const y = seen.y + level * HEIGHT;
    const bottom = node.y + node.height;
    const isAbove = node.y < y && bottom > y + HEADER_HEIGHT;
    const isAside = x > seen.x + seen.width || x + width < seen.x;
    if (!isAbove || isAside || level >= NESTED_MAX) return [];
    levels.set(path, level + 1);
    return [{ path, x, y, width, height: HEIGHT }];
  });
}
