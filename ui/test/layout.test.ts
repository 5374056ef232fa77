/** Drawings are places of boxes: what must hold of them whatever the definition is. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Block } from 'durable-workflow-engine-client';
import fc from 'fast-check';
import {
  type Box,
  type Drawing,
  drawingOf,
  isGroup,
  LEAF,
  OPEN_BLOCKS_MAX,
  openAtFirst,
  SLOTS_PER_ROW_MAX,
} from '../src/flow/layout.ts';
import { openingOf } from '../src/flow/opening.ts';
import { type Outline, type OutlineBlock, outlineOf } from '../src/flow/outline.ts';
import { bigDefinition, EVERY_KIND, step } from './flow-samples.ts';

/** Blocks of every kind, nested at random; ids are given afterwards, since they are unique. */
const anyBlocks = fc.letrec<{ block: Block; list: Block[] }>((tie) => {
  const lists = (minLength: number, maxLength: number) =>
    fc.array(tie('list'), { minLength, maxLength });
  return {
    list: fc.array(tie('block'), { maxLength: 3 }),
    block: fc.oneof(
      { depthSize: 'small', withCrossShrink: true },
      fc.constant(step('')),
      fc.constant({ type: 'sub_sequence', id: '', sequence_name: 'other' } as Block),
      lists(1, 9).map((branches): Block => ({ type: 'parallel', id: '', branches })),
      lists(1, 3).map((branches): Block => ({ type: 'race', id: '', branches })),
      lists(0, 3).map(
        (all): Block => ({
          type: 'router',
          id: '',
          routes: all.map((blocks, i) => ({ condition: `data.a == ${i}`, blocks })),
          default: all[0] ?? null,
        }),
      ),
      lists(2, 4).map(
        (all): Block => ({
          type: 'ab_split',
          id: '',
          variants: all.map((blocks, i) => ({ name: `v${i}`, weight: i, blocks })),
        }),
      ),
      fc.tuple(tie('list'), tie('list'), fc.option(tie('list'))).map(
        ([try_block, catch_block, finally_block]): Block => ({
          ...{ type: 'try_catch', id: '', try_block, catch_block, finally_block },
        }),
      ),
      lists(0, 3).map(
        (all): Block => ({
          type: 'saga',
          id: '',
          steps: all.map((action, i) => ({
            id: `s${i}`,
            action,
            compensation: i > 0 ? action : null,
          })),
        }),
      ),
      tie('list').map((body): Block => ({ type: 'loop', id: '', condition: 'data.more', body })),
      tie('list').map(
        (body): Block => ({ type: 'for_each', id: '', collection: 'data.all', body }),
      ),
      tie('list').map((blocks): Block => ({ type: 'cancellation_scope', id: '', blocks })),
    ),
  };
}).list;

const anyOutline = anyBlocks.map((blocks) => {
  let count = 0;
  const named = JSON.parse(JSON.stringify(blocks), (_key, value) => {
    if (value?.type === undefined) return value;
    count += 1;
    return { ...value, id: `b${count}` };
  }) as Block[];
  return outlineOf({ blocks: named });
});

const groupsOf = ({ byPath }: Outline) => [...byPath.values()].filter(isGroup);

/** An outline, and some of its groups open. */
const anyView = fc.tuple(anyOutline, fc.infiniteStream(fc.boolean())).map(([outline, choices]) => {
  const open = groupsOf(outline).filter(() => choices.next().value);
  return { outline, open: new Set(open.map(({ path }) => path)) };
});

const allOpen = (outline: Outline) => new Set(groupsOf(outline).map(({ path }) => path));

function isInside(inner: Box, outer: Box): boolean {
  const slack = 0.001;
  return (
    inner.x >= outer.x - slack &&
    inner.y >= outer.y - slack &&
    inner.x + inner.width <= outer.x + outer.width + slack &&
    inner.y + inner.height <= outer.y + outer.height + slack
  );
}

function overlap(a: Box, b: Box): boolean {
  const slack = 0.001;
  return (
    a.x + a.width > b.x + slack &&
    b.x + b.width > a.x + slack &&
    a.y + a.height > b.y + slack &&
    b.y + b.height > a.y + slack
  );
}

/** A test of any outline with any of its groups open. */
function always(title: string, hold: (outline: Outline, open: Set<string>) => void): void {
  test(title, () => {
    fc.assert(fc.property(anyView, ({ outline, open }) => hold(outline, open)));
  });
}

const byPathOf = ({ nodes }: Drawing) => new Map(nodes.map((node) => [node.path, node]));

always('no two blocks overlap unless one is around the other', (outline, open) => {
  const { nodes } = drawingOf(outline, open);
  for (const [i, a] of nodes.entries()) {
    for (const b of nodes.slice(i + 1)) {
      const isNested = b.path.startsWith(`${a.path}/`);
      assert.ok(isNested || !overlap(a, b), `${a.path} and ${b.path}`);
    }
  }
});

always(
  'a block lies within the group and the slot around it, and all within the drawing',
  (outline, open) => {
    const drawing = drawingOf(outline, open);
    const byPath = byPathOf(drawing);
    for (const node of drawing.nodes) {
      const { parent } = node.block;
      assert.ok(isInside(node, parent === null ? { x: 0, y: 0, ...drawing } : byPath.get(parent)!));
      for (const slot of node.slots) {
        assert.ok(isInside(slot, node), `a slot of ${node.path}`);
        for (const path of slot.paths) assert.ok(isInside(byPath.get(path)!, slot), path);
      }
    }
  },
);

always('slots of a group do not overlap', (outline, open) => {
  for (const { slots } of drawingOf(outline, open).nodes) {
    for (const [i, slot] of slots.entries()) {
      assert.ok(slots.slice(i + 1).every((other) => !overlap(slot, other)));
    }
  }
});

always(
  'blocks of a list follow one another from top to bottom, in their order',
  (outline, open) => {
    const byPath = byPathOf(drawingOf(outline, open));
    const inOrder = (list: readonly OutlineBlock[]) => {
      for (const [i, block] of list.entries()) {
        const next = byPath.get(list[i + 1]?.path ?? '');
        const node = byPath.get(block.path);
        if (next !== undefined && node !== undefined) {
          assert.ok(node.y + node.height < next.y);
          assert.equal(node.x + node.width / 2, next.x + next.width / 2);
        }
        for (const { blocks } of block.slots) inOrder(blocks);
      }
    };
    inOrder(outline.blocks);
  },
);

always(
  'all blocks are drawn when all groups are open, and none inside of a closed one',
  (outline, open) => {
    assert.equal(drawingOf(outline, allOpen(outline)).nodes.length, outline.byPath.size);
    for (const { block } of drawingOf(outline, open).nodes) {
      assert.ok(block.parent === null || open.has(block.parent));
    }
  },
);

test('what is inside comes behind what is around it, in the order of the definition', () => {
  fc.assert(
    fc.property(anyOutline, (outline) => {
      const { nodes } = drawingOf(outline, allOpen(outline));
      assert.deepEqual(
        nodes.map(({ path }) => path),
        [...outline.byPath.keys()],
      );
    }),
  );
});

always('lines go down and across, never up, and end within the drawing', (outline, open) => {
  const drawing = drawingOf(outline, open);
  for (const { points } of drawing.edges) {
    for (const [i, [x, y]] of points.entries()) {
      assert.ok(x >= 0 && x <= drawing.width && y >= 0 && y <= drawing.height);
      const [nextX, nextY] = points[i + 1] ?? [x, y];
      assert.ok(nextX === x ? nextY >= y : nextY === y);
    }
  }
});

test('the same blocks lie in the same places, whatever is known of their run', () => {
  const again = outlineOf(structuredClone(EVERY_KIND));
  const drawing = drawingOf(outlineOf(EVERY_KIND), allOpen(again));
  const places = ({ nodes, edges }: Drawing) => [
    nodes.map(({ path, x, y, width, height, slots }) => ({ path, x, y, width, height, slots })),
    edges,
  ];
  assert.deepEqual(places(drawingOf(again, allOpen(again))), places(drawing));
});

test('opening a group moves nothing before it', () => {
  const outline = outlineOf(EVERY_KIND);
  const open = allOpen(outline);
  open.delete('poll');
  const [closed, opened] = [drawingOf(outline, open), drawingOf(outline, allOpen(outline))];
  const before = closed.nodes.findIndex(({ path }) => path === 'poll');
  assert.deepEqual(
    closed.nodes.slice(0, before).map(({ x, y }) => [x, y]),
    opened.nodes.slice(0, before).map(({ x, y }) => [x, y]),
  );
});

test('hundreds of branches go into rows', () => {
  const branches = Array.from({ length: 256 }, (_, i) => [step(`s${i}`)]);
  const outline = outlineOf({ blocks: [{ type: 'parallel', id: 'all', branches }] });
  const { nodes, width } = drawingOf(outline, new Set(['all']));
  assert.equal(nodes[0]!.slots.length, 256);
  assert.ok(width < SLOTS_PER_ROW_MAX * (LEAF.width + 60));
});

test('a small definition begins with all groups open, a big one with as many as can be read', () => {
  const small = outlineOf(EVERY_KIND);
  assert.deepEqual(openAtFirst(small), allOpen(small));
  const big = outlineOf(bigDefinition(1_000));
  const { nodes } = drawingOf(big, openAtFirst(big));
  assert.ok(nodes.length <= OPEN_BLOCKS_MAX && nodes.length >= big.blocks.length);
  // Where the root list alone is longer, all of it is shown, and nothing is open.
  const long = outlineOf(bigDefinition(2_000));
  assert.equal(openAtFirst(long).size, 0);
  assert.equal(drawingOf(long, openAtFirst(long)).nodes.length, long.blocks.length);
});

test('two thousand blocks are laid out without being noticed', (t) => {
  const definition = bigDefinition(2_000);
  const open = allOpen(outlineOf(definition));
  const times = Array.from({ length: 9 }, () => {
    const from = process.cpuUsage();
    drawingOf(outlineOf(definition), open);
    const { user, system } = process.cpuUsage(from);
    return (user + system) / 1_000;
  }).sort((a, b) => a - b);
  t.diagnostic(`${open.size} groups, median ${times[4]!.toFixed(1)} ms of a processor`);
  // Ten times what is promised: a busy machine is not a slow layout.
  assert.ok(times[4]! < 500);
});

/** Slots within slots, of which the middle ones are short: the middle of the drawing is empty. */
const WIDE = outlineOf({
  blocks: [
    {
      type: 'parallel',
      id: 'all',
      branches: Array.from({ length: 6 }, (_, slot) =>
        slot === 0 || slot === 5
          ? Array.from({ length: 30 }, (_each, at) => step(`s${slot}_${at}`))
          : [{ type: 'parallel', id: `p${slot}`, branches: Array.from({ length: 6 }, () => []) }],
      ),
    },
  ],
});

for (const [name, outline, current, selected, expected] of [
  ['its first block', WIDE, '', null, 'all/s0_0'],
  ['the block that the run is at', WIDE, 'all/s5_20', null, 'all/s5_20'],
  ['the selected block', WIDE, 'all/s5_20', 'all/s0_29', 'all/s0_29'],
  ['the selected block of a small one', outlineOf(EVERY_KIND), '', 'charge', 'charge'],
] as const) {
  test(`a drawing opens at ${name}`, () => {
    const drawing = drawingOf(outline, new Set(['all']));
    for (const room of [
      { width: 991, height: 538 },
      { width: 400, height: 300 },
    ]) {
      const view = openingOf(drawing, room, (path) => path === current, selected);
      const node = drawing.nodes.find(({ path }) => path === expected)!;
      const [left, top] = [node.x * view.zoom + view.x, node.y * view.zoom + view.y];
      const [right, bottom] = [left + node.width * view.zoom, top + node.height * view.zoom];
      const isSeen = left >= 0 && top >= 0 && right <= room.width && bottom <= room.height;
      assert.ok(isSeen, JSON.stringify({ view, left, top, right, bottom, room }));
    }
  });
}
