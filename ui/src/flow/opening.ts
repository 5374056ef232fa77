/**
 * What is seen of a drawing when it opens: as much of its width as can still be read, and within that the block that
 * one looks for. The middle of a wide drawing may be empty. Pure.
 */

import type { Drawing, DrawnNode } from './layout.ts';

export const READABLE_ZOOM = 0.55;
/** Around the drawing, and around a block that is brought into view. */
export const MARGIN = 20;
/** Of a large group its head is what has to be seen. */
const HEAD = { width: 400, height: 120 } as const;

export interface View {
  readonly x: number;
  readonly y: number;
  readonly zoom: number;
}

export interface Room {
  readonly width: number;
  readonly height: number;
}

/**
 * @param isCurrent whether a block is what the run is at, or what a comparison is about
 * @param selected beats all others
 */
export function openingOf(
  drawing: Drawing,
  room: Room,
  isCurrent: (path: string) => boolean,
  selected: string | null,
): View {
  const fitting = (room.width - 2 * MARGIN) / drawing.width;
  const zoom = Math.max(READABLE_ZOOM, Math.min(1, fitting));
  const node = firstOf(drawing, isCurrent, selected);
  if (node === undefined) return { x: MARGIN, y: MARGIN, zoom };
  const middle = (node.x + node.width / 2) * zoom;
  const width = Math.min(node.width, HEAD.width) * zoom;
  const bottom = (node.y + Math.min(node.height, HEAD.height)) * zoom;
  const end = room.height - MARGIN - drawing.height * zoom;
  return {
    x: shiftOf(drawing.width * zoom, room.width, middle, width),
    y: bottom + 2 * MARGIN <= room.height ? MARGIN : Math.max(end, room.height / 2 - bottom),
    zoom,
  };
}

/** A block of its own rather than a group around others, whose middle may be empty. */
function firstOf(
  { nodes }: Drawing,
  isCurrent: (path: string) => boolean,
  selected: string | null,
): DrawnNode | undefined {
  const leaves = nodes.filter(({ isOpen }) => !isOpen);
  return (
    nodes.find(({ path }) => path === selected) ??
    leaves.find(({ path }) => isCurrent(path)) ??
    leaves[0] ??
    nodes[0]
  );
}

/** In the middle where all of it has room, else with the block in the middle, as far as the drawing reaches. */
function shiftOf(length: number, room: number, middle: number, size: number): number {
  if (length + 2 * MARGIN <= room) return (room - length) / 2;
  const wanted = room / 2 - middle;
  const least = room - MARGIN - length;
  const shift = Math.min(MARGIN, Math.max(least, wanted));
  // Of what is wider than the room its left end is seen.
  return size > room ? MARGIN - (middle - size / 2) : shift;
}
