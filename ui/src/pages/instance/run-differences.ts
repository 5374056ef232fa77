/** Compares two runs of a sequence, block by block. Pure. */

import type { BlockOutput, TreeNode } from 'durable-workflow-engine-client';
import type { Outline, OutlineBlock } from '../../flow/outline.ts';
import { jsonTextOf } from '../../lib/format.ts';

export interface RunData {
  readonly tree: readonly TreeNode[];
  readonly outputs: readonly BlockOutput[];
}

export interface BlockSide {
  readonly state: TreeNode['state'];
  readonly durationMs: number | undefined;
  /** The last one, as indented JSON. */
  readonly output: string | undefined;
}

export interface ComparedBlock {
  readonly path: string;
  readonly id: string;
  readonly depth: number;
  /** Undefined: the run does not have the block. */
  readonly good: BlockSide | undefined;
  readonly own: BlockSide | undefined;
  /** `values`: the outputs differ, but have the same members of the same types, as with other orders. */
  readonly difference: 'state' | 'shape' | 'values' | undefined;
  readonly isFirst: boolean;
}

/** In the order of the outline. The first difference is one of states or shapes, if there is any. */
export function comparedBlocks(
  outline: Outline,
  good: RunData,
  own: RunData,
): readonly ComparedBlock[] {
  const [goodSides, ownSides] = [sidesOf(good), sidesOf(own)];
  const rows = [...outline.byPath.values()].flatMap((block) => {
    const sides = { good: goodSides.get(block.id), own: ownSides.get(block.id) };
    if (isHook(block) || (sides.good === undefined && sides.own === undefined)) return [];
    const { path, id, depth } = block;
    return [{ path, id, depth, ...sides, difference: differenceOf(sides.good, sides.own) }];
  });
  const first =
    rows.find(({ difference }) => difference === 'state' || difference === 'shape') ??
    rows.find(({ difference }) => difference !== undefined);
  return rows.map((row) => ({ ...row, isFirst: row === first }));
}

const isHook = ({ path }: OutlineBlock) => path.startsWith('@');

function sidesOf({ tree, outputs }: RunData): ReadonlyMap<string, BlockSide> {
  const last = new Map(outputs.map(({ block_id, output }) => [block_id, output]));
  return new Map(
    tree.map(({ block_id, state, started_at, completed_at }) => [
      block_id,
      {
        state,
        durationMs:
          started_at === null || completed_at === null
            ? undefined
            : Date.parse(completed_at) - Date.parse(started_at),
        output: last.has(block_id) ? jsonTextOf(last.get(block_id)) : undefined,
      },
    ]),
  );
}

function differenceOf(
  good: BlockSide | undefined,
  own: BlockSide | undefined,
): ComparedBlock['difference'] {
  if (good?.state !== own?.state) return 'state';
  if (good?.output === own?.output) return undefined;
  const isAlike = shapeOf(good?.output) === shapeOf(own?.output);
  return isAlike ? 'values' : 'shape';
}

/** The members and types of a JSON text. Items of lists count once for each shape, since lengths vary with the data. */
function shapeOf(text: string | undefined): string {
  if (text === undefined) return 'none';
  const shape = (value: unknown): unknown => {
    if (Array.isArray(value)) return [...new Set(value.map((item) => JSON.stringify(shape(item))))];
    if (typeof value !== 'object' || value === null) return value === null ? 'null' : typeof value;
    const members = Object.entries(value).map(([name, member]) => [name, shape(member)] as const);
    return Object.fromEntries(members.sort(([a], [b]) => (a < b ? -1 : 1)));
  };
  return JSON.stringify(shape(JSON.parse(text)));
}
