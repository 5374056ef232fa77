/**
 * Computes the position of everything in a diagram. A definition is a tree of lists, so sizes are measured from the
 * inside out and positions assigned from the outside in: lists go down, slots side by side, blocks inside their parent.
 * The result depends only on the outline and the open groups, not on the state of a run. Pure; in pixels at zoom 1.
 */

import type { Slot } from './kinds.ts';
import type { Outline, OutlineBlock } from './outline.ts';

export const LEAF = { width: 224, height: 56 } as const;
/** Of blocks with statistics, which have a line more. */
export const TALL_LEAF = 76;
/** Height of the title of an open group. */
export const HEADER_HEIGHT = 48;
/** Room for the arrow between two blocks of a list. */
export const GAP_Y = 26;
const GAP_X = 16;
const PADDING = 14;
const SLOT_LABEL_HEIGHT = 24;
/** Of the edges that fork into slots and join again. */
const FORK_HEIGHT = 18;
const SLOT_PADDING = 12;
/** An open group has a button beside its name. */
const GROUP_WIDTH_MIN = LEAF.width + 40;
const EMPTY_SLOT = { width: 96, height: 20 } as const;
/** Further slots wrap into more rows, since a diagram is read from top to bottom. */
export const SLOTS_PER_ROW_MAX = 6;
/** Between the root list and the hooks. */
const HOOKS_GAP = 40;
/** Larger diagrams start with some groups closed. */
export const OPEN_BLOCKS_MAX = 150;

export interface Box {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

export interface DrawnSlot extends Box {
  readonly label: string;
  readonly isFallback: boolean;
  readonly isEmpty: boolean;
  /** Has a border of its own; other slots are separated by the edges that lead to them. */
  readonly isFramed: boolean;
  /** Paths of the blocks in it. */
  readonly paths: readonly string[];
}

export interface DrawnNode extends Box {
  readonly path: string;
  readonly block: OutlineBlock;
  /** Contains blocks, and can be opened and closed. */
  readonly isGroup: boolean;
  readonly isOpen: boolean;
  /** Of an open group with several slots, in coordinates of the whole diagram. */
  readonly slots: readonly DrawnSlot[];
}

/** An arrow, by its corner points. */
export interface DrawnEdge {
  readonly kind: 'next' | 'fork' | 'join';
  readonly points: readonly (readonly [x: number, y: number])[];
  /** Dimmed if none of these blocks was reached. Empty for the edge through an empty slot. */
  readonly leadsTo: readonly string[];
}

export interface Drawing {
  /** In document order: a block comes after the blocks around it. */
  readonly nodes: readonly DrawnNode[];
  readonly edges: readonly DrawnEdge[];
  readonly width: number;
  readonly height: number;
}

/** @param open paths of the groups whose contents are shown */
export function drawingOf(
  outline: Outline,
  open: ReadonlySet<string>,
  leafHeight: number = LEAF.height,
): Drawing {
  const sizes = new Map<string, Size>();
  const given = { open, leafHeight };
  const main = measureList(outline.blocks, given, sizes);
  const hooks = outline.hooks.map((block) => measure(block, given, sizes));
  const width = Math.max(main.width, ...hooks.map((size) => size.width));
  const pen: Pen = { open, sizes, nodes: [], edges: [] };
  placeList(outline.blocks, width / 2, 0, pen);
  let y = main.height;
  for (const [i, block] of outline.hooks.entries()) {
    y += HOOKS_GAP;
    place(block, width / 2, y, pen);
    y += hooks[i]!.height;
  }
  return { nodes: pen.nodes, edges: pen.edges, width, height: y };
}

/**
 * The groups that are open at first: all of them, or in a large definition the outer ones, as long as the diagram stays
 * readable.
 */
export function openAtFirst(outline: Outline, blocksMax = OPEN_BLOCKS_MAX): Set<string> {
  const open = new Set<string>();
  const level = [...outline.blocks, ...outline.hooks];
  let shown = level.length;
  // A group opens only after its parent, and small groups of a level before large ones.
  for (let queue = groupsIn(level); queue.length > 0; ) {
    const next: OutlineBlock[] = [];
    for (const block of queue) {
      const inside = block.slots.flatMap(({ blocks }) => blocks);
      if (shown + inside.length > blocksMax) continue;
      shown += inside.length;
      open.add(block.path);
      next.push(...groupsIn(inside));
    }
    queue = next;
  }
  return open;
}

/** The groups that are open when `depth` levels of blocks are shown: with 1 none of them. */
export function openToDepth({ byPath }: Outline, depth: number): Set<string> {
  const groups = [...byPath.values()].filter((block) => isGroup(block) && block.depth < depth - 1);
  return new Set(groups.map(({ path }) => path));
}

function groupsIn(blocks: readonly OutlineBlock[]): OutlineBlock[] {
  return blocks.filter(isGroup).sort((a, b) => childrenOf(a) - childrenOf(b));
}

function childrenOf({ slots }: OutlineBlock): number {
  return slots.reduce((sum, { blocks }) => sum + blocks.length, 0);
}

export function isGroup({ slots }: OutlineBlock): boolean {
  return slots.length > 0;
}

// ---------------------------------------------------------------- measuring

interface Given {
  readonly open: ReadonlySet<string>;
  readonly leafHeight: number;
}

interface Size {
  readonly width: number;
  readonly height: number;
}

function measure(block: OutlineBlock, given: Given, sizes: Map<string, Size>): Size {
  const isOpen = isGroup(block) && given.open.has(block.path);
  const size = isOpen ? measureGroup(block, given, sizes) : { ...LEAF, height: given.leafHeight };
  sizes.set(block.path, size);
  return size;
}

function measureList(
  blocks: readonly OutlineBlock[],
  given: Given,
  sizes: Map<string, Size>,
): Size {
  let [width, height] = [0, 0];
  for (const [i, block] of blocks.entries()) {
    const size = measure(block, given, sizes);
    width = Math.max(width, size.width);
    height += size.height + (i === 0 ? 0 : GAP_Y);
  }
  return { width, height };
}

function measureGroup(block: OutlineBlock, given: Given, sizes: Map<string, Size>): Size {
  const rows = rowsOf(block).map((row) => {
    const slots = row.map((slot) => slotSize(block, slot, given, sizes));
    return {
      width: slots.reduce((sum, { width }) => sum + width, GAP_X * (slots.length - 1)),
      height: Math.max(...slots.map(({ height }) => height)),
    };
  });
  const width = Math.max(GROUP_WIDTH_MIN, ...rows.map((row) => row.width));
  const height = rows.reduce((sum, row) => sum + row.height, GAP_X * (rows.length - 1));
  const forks = isForked(block) ? 2 * FORK_HEIGHT : 0;
  return {
    width: width + 2 * PADDING,
    height: HEADER_HEIGHT + forks + height + (isForked(block) ? 0 : PADDING),
  };
}

function slotSize(
  { arrangement, path }: OutlineBlock,
  slot: Slot<OutlineBlock>,
  given: Given,
  sizes: Map<string, Size>,
): Size {
  const list = slot.blocks.length === 0 ? EMPTY_SLOT : measureList(slot.blocks, given, sizes);
  if (arrangement === 'body') return list;
  const size = {
    width: list.width + 2 * SLOT_PADDING,
    height: list.height + SLOT_LABEL_HEIGHT + SLOT_PADDING,
  };
  sizes.set(slotKey(path, slot), size);
  return size;
}

/** Paths of blocks contain no line breaks. */
const slotKey = (path: string, { key }: Slot<OutlineBlock>) => `${path}\n${key}`;

/** Wrapped, so that hundreds of branches do not lie in one row. */
function rowsOf({ arrangement, slots }: OutlineBlock): Slot<OutlineBlock>[][] {
  if (arrangement !== 'rows') return wrapped(slots, SLOTS_PER_ROW_MAX);
  const rows: Slot<OutlineBlock>[][] = [];
  for (const slot of slots) {
    rows[slot.row] ??= [];
    rows[slot.row]!.push(slot);
  }
  return rows;
}

function wrapped(slots: readonly Slot<OutlineBlock>[], perRow: number): Slot<OutlineBlock>[][] {
  const rows = Math.ceil(slots.length / perRow);
  return Array.from({ length: rows }, (_, row) => slots.slice(row * perRow, (row + 1) * perRow));
}

/** Edges lead to and from slots only if they are in one row. */
function isForked({ arrangement, slots }: OutlineBlock): boolean {
  return arrangement === 'fork' && slots.length <= SLOTS_PER_ROW_MAX;
}

// ---------------------------------------------------------------- placing

interface Pen {
  readonly open: ReadonlySet<string>;
  readonly sizes: ReadonlyMap<string, Size>;
  readonly nodes: DrawnNode[];
  readonly edges: DrawnEdge[];
}

function placeList(blocks: readonly OutlineBlock[], middle: number, top: number, pen: Pen): void {
  let y = top;
  for (const [i, block] of blocks.entries()) {
    if (i > 0) {
      const points = [
        [middle, y],
        [middle, y + GAP_Y],
      ] as const;
      pen.edges.push({ kind: 'next', points, leadsTo: [block.path] });
      y += GAP_Y;
    }
    place(block, middle, y, pen);
    y += pen.sizes.get(block.path)!.height;
  }
}

function place(block: OutlineBlock, middle: number, y: number, pen: Pen): void {
  const { width, height } = pen.sizes.get(block.path)!;
  const x = middle - width / 2;
  const isOpen = isGroup(block) && pen.open.has(block.path);
  const slots: DrawnSlot[] = [];
  const box = { x, y, width, height };
  pen.nodes.push({ ...box, path: block.path, block, isGroup: isGroup(block), isOpen, slots });
  if (!isOpen) return;
  if (block.arrangement === 'body') {
    placeList(block.slots[0]!.blocks, middle, y + HEADER_HEIGHT, pen);
    return;
  }
  placeSlots(block, box, slots, pen);
  if (isForked(block)) connect(box, slots, pen);
}

function placeSlots(block: OutlineBlock, box: Box, drawn: DrawnSlot[], pen: Pen): void {
  let top = box.y + HEADER_HEIGHT + (isForked(block) ? FORK_HEIGHT : 0);
  for (const row of rowsOf(block)) {
    const sizes = row.map((slot) => pen.sizes.get(slotKey(block.path, slot))!);
    const height = Math.max(...sizes.map((size) => size.height));
    const inner = sizes.reduce((sum, size) => sum + size.width, GAP_X * (row.length - 1));
    // Shorter rows widen their frames, so that all rows end at the same edge.
    const room = box.width - 2 * PADDING - inner;
    const isFramed = !isForked(block);
    let left = box.x + PADDING + (isFramed ? 0 : room / 2);
    for (const [i, slot] of row.entries()) {
      const width = sizes[i]!.width + (isFramed ? room / row.length : 0);
      drawn.push({
        ...{ x: left, y: top, width, height },
        ...{ label: slot.label, isFallback: slot.isFallback, isFramed },
        isEmpty: slot.blocks.length === 0,
        paths: slot.blocks.map(({ path }) => path),
      });
      placeList(slot.blocks, left + width / 2, top + SLOT_LABEL_HEIGHT, pen);
      left += width + GAP_X;
    }
    top += height + GAP_X;
  }
}

/** Edges from the header to each slot, and from each slot to the bottom of the group. */
function connect(box: Box, slots: readonly DrawnSlot[], pen: Pen): void {
  const middle = box.x + box.width / 2;
  const bottom = box.y + box.height;
  for (const slot of slots) {
    const x = slot.x + slot.width / 2;
    const from = box.y + HEADER_HEIGHT;
    const last = slot.isEmpty ? slot.y + SLOT_LABEL_HEIGHT + EMPTY_SLOT.height : endOf(slot, pen);
    const leadsTo = slot.paths;
    pen.edges.push(
      { kind: 'fork', points: corners([middle, from - 2], [x, slot.y], from + 6), leadsTo },
      { kind: 'join', points: corners([x, last], [middle, bottom], bottom - 8), leadsTo },
    );
  }
}

/** The bottom of the last block of a slot: slots beside it may be longer. */
function endOf({ y, paths }: DrawnSlot, { sizes }: Pen): number {
  const heights = paths.map((path) => sizes.get(path)!.height);
  const start = y + SLOT_LABEL_HEIGHT + GAP_Y * (heights.length - 1);
  return heights.reduce((sum, height) => sum + height, start);
}

type Point = readonly [x: number, y: number];

/** Down, across at `y`, and down again. */
function corners(from: Point, to: Point, y: number): readonly Point[] {
  return from[0] === to[0] ? [from, to] : [from, [from[0], y], [to[0], y], to];
}
