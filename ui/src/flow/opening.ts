/**
 * The initial viewport of a diagram: as much of its width as stays readable, with the most relevant block in view, or the
 * top left. Pure.
 */

import type { Drawing, DrawnNode } from './layout.ts';

export const READABLE_ZOOM = 0.55;
/** Around the diagram, and around a block that is scrolled into view. */
export const MARGIN = 20;
/** Of a large group, the header has to be visible. */
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
 * @param isCurrent whether a run is at this block, or a comparison is about it
 * @param selected takes precedence over all others
 */
export function openingOf(
  drawing: Drawing,
  room: Room,
  isCurrent: (path: string) => boolean,
  selected: string | null,
): View {
  const fitting = (room.width - 2 * MARGIN) / drawing.width;
  const zoom = Math.max(READABLE_ZOOM, Math.min(1, fitting));
  const node = relevantIn(drawing, isCurrent, selected);
  if (node === undefined) {
    // The first block is in the middle of a wide diagram.
    const first = drawing.nodes.find(({ isOpen }) => !isOpen);
    const right = ((first?.x ?? 0) + (first?.width ?? 0)) * zoom;
    return { x: Math.min(MARGIN, room.width - MARGIN - right), y: MARGIN, zoom };
  }
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

/** Prefers a single block to a group, whose middle may be empty. */
function relevantIn(
  { nodes }: Drawing,
  isCurrent: (path: string) => boolean,
  selected: string | null,
): DrawnNode | undefined {
  return (
    nodes.find(({ path }) => path === selected) ??
    nodes.find(({ path, isOpen }) => !isOpen && isCurrent(path))
  );
}

/** Centred if everything fits, else with the block in the middle, within the bounds of the diagram. */
function shiftOf(length: number, room: number, middle: number, size: number): number {
  if (length + 2 * MARGIN <= room) return (room - length) / 2;
  const wanted = room / 2 - middle;
  const least = room - MARGIN - length;
  const shift = Math.min(MARGIN, Math.max(least, wanted));
  // The left end of what is wider than the viewport.
  return size > room ? MARGIN - (middle - size / 2) : shift;
}
