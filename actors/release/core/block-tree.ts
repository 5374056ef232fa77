/** The blocks of a definition by id, and the corresponding lists of two versions of a block. Pure. */

import type { TProperties } from '@sinclair/typebox';
import {
  type AbSplitBlock,
  type Block,
  kindName,
  membersOf,
  type RouterBlock,
  type SagaBlock,
} from '../../../schema/blocks.js';
import { clip } from '../../../src/base/bounds.js';
import { kindOf } from '../../../src/core/blocks/kinds.js';

export interface PlacedBlock {
  readonly block: Block;
  /** Schemas of the members of its kind. */
  readonly members: TProperties;
  readonly lists: readonly (readonly Block[])[];
  readonly parent: Block | undefined;
  /** Index in the parent's `lists`. */
  readonly list: number;
}

/** Blocks by id, in pre-order. */
export type BlockTree = ReadonlyMap<string, PlacedBlock>;

export function treeOf(roots: readonly Block[]): BlockTree {
  const tree = new Map<string, PlacedBlock>();
  const add = (blocks: readonly Block[], parent: Block | undefined, list: number) => {
    for (const block of blocks) {
      const lists = kindOf(block).lists(block);
      tree.set(block.id, { block, members: membersOf(block.type), lists, parent, list });
      for (const [number, inner] of lists.entries()) add(inner, block, number);
    }
  };
  add(roots, undefined, 0);
  return tree;
}

/** Readable place of a block: `branch 2 of parallel p`. */
export function placeName({ parent, list }: PlacedBlock): string {
  return parent === undefined ? 'the root list' : `${listName(parent, list)} of ${nameOf(parent)}`;
}

export function nameOf(block: Block): string {
  return `${kindName(block)} ${block.id}`;
}

const TRY_CATCH_LISTS = ['the try list', 'the catch list', 'the finally list'] as const;

function listName(block: Block, list: number): string {
  switch (block.type) {
    case 'parallel':
    case 'race':
      return `branch ${list + 1}`;
    case 'router':
      return list < conditionsOf(block).length ? `route ${list + 1}` : 'the default list';
    case 'try_catch':
      return TRY_CATCH_LISTS[list] ?? 'a list';
    case 'saga':
      return `the ${list % 2 === 0 ? 'action' : 'compensation'} of step ${clip(stepsOf(block)[list >> 1] ?? '')}`;
    case 'ab_split':
    case 'a_b_split':
      return `variant ${clip(block.variants[list]?.name ?? '')}`;
    default:
      return 'the body';
  }
}

export function isSplit(block: Block): block is AbSplitBlock {
  return kindName(block) === 'ab_split';
}

const stepsOf = ({ steps }: SagaBlock) => steps.map(({ id }) => id);

export function conditionsOf(block: RouterBlock): string[] {
  return (block.routes ?? []).map(({ condition }) => condition);
}

/**
 * For each list of `after`, the index of the corresponding list of `before`; -1 for a new list. Routes are matched by
 * condition and branches by their blocks, so that inserting one does not move the blocks of others.
 * @param before has the same id and type as `after`
 */
export function continuedLists(before: Block, after: Block, baseline: BlockTree): number[] {
  if (before.type === 'router' && after.type === 'router') return continuedRoutes(before, after);
  if (after.type === 'parallel' || after.type === 'race') {
    return continuedBranches(after.branches, after.id, baseline);
  }
  if (before.type === 'saga' && after.type === 'saga') {
    const old = stepsOf(before);
    // The two lists of a step follow its id.
    return stepsOf(after).flatMap((id) => {
      const step = old.indexOf(id);
      return step < 0 ? [-1, -1] : [2 * step, 2 * step + 1];
    });
  }
  if (isSplit(before) && isSplit(after)) {
    const old = before.variants.map(({ name }) => name);
    return after.variants.map(({ name }) => old.indexOf(name));
  }
  return kindOf(after)
    .lists(after)
    .map((_, list) => list);
}

/** The lists of a router are its routes, then its default. */
function continuedRoutes(before: RouterBlock, after: RouterBlock): number[] {
  const old = conditionsOf(before);
  const free = new Map<string, number[]>();
  // Backwards, so that the first of equal conditions is popped first.
  for (let i = old.length - 1; i >= 0; i -= 1) {
    const routes = free.get(old[i]!);
    if (routes === undefined) free.set(old[i]!, [i]);
    else routes.push(i);
  }
  const continued = conditionsOf(after).map((condition) => free.get(condition)?.pop() ?? -1);
  const taken = new Set(continued);
  // A route whose condition was edited in place.
  const routes = continued.map((route, i) =>
    route < 0 && i < old.length && !taken.has(i) ? i : route,
  );
  return [...routes, old.length];
}

/** Each branch continues the one with which it has the most blocks in common. */
function continuedBranches(
  branches: readonly (readonly Block[])[],
  id: string,
  baseline: BlockTree,
): number[] {
  const continued = branches.map(() => -1);
  const taken = new Set<number>();
  const pairs = branches.flatMap((blocks, branch) => sharesOf(blocks, branch, id, baseline));
  // The sort is stable: among equal shares, the first branch wins.
  pairs.sort((a, b) => b.blocks - a.blocks);
  for (const { branch, old } of pairs) {
    if (continued[branch] !== -1 || taken.has(old)) continue;
    continued[branch] = old;
    taken.add(old);
  }
  return continued;
}

function sharesOf(blocks: readonly Block[], branch: number, id: string, baseline: BlockTree) {
  const shares = new Map<
    number,
    { readonly branch: number; readonly old: number; blocks: number }
  >();
  for (const block of blocks) {
    const before = baseline.get(block.id);
    if (before?.parent?.id !== id) continue;
    const share = shares.get(before.list) ?? { branch, old: before.list, blocks: 0 };
    share.blocks += 1;
    shares.set(before.list, share);
  }
  return [...shares.values()].sort((a, b) => a.old - b.old);
}
