/**
 * A definition as a tree of blocks with named slots, from which all diagrams and lists are built. `kinds.ts` knows the
 * structure of each kind. Pure.
 */

import type { Block, TreeNode } from 'durable-workflow-engine-client';
import {
  type Arrangement,
  arrangementOf,
  isRepeating,
  type Look,
  lookNamed,
  lookOf,
  partsOf,
  type Slot,
} from './kinds.ts';

/** A stored sequence, or the contents of an editor. */
export interface Definition {
  readonly blocks: readonly Block[];
  readonly on_failure?: readonly HookStep[] | null | undefined;
  readonly on_cancel?: readonly HookStep[] | null | undefined;
}

/** The part of a hook that is drawn. */
export interface HookStep {
  readonly id: string;
  readonly handler: string;
}

export interface OutlineBlock {
  /** The ids from the outermost block to it, as in `orders/charge`. */
  readonly path: string;
  readonly id: string;
  readonly look: Look;
  /** A handler, condition or sequence, in a few words. */
  readonly detail: string;
  readonly arrangement: Arrangement;
  readonly slots: readonly Slot<OutlineBlock>[];
  /** Number of blocks inside, at any depth. */
  readonly size: number;
  readonly depth: number;
  /** Paths of the loops around it, the outermost first. */
  readonly repeats: readonly string[];
  /** Paths of the blocks whose runs an iteration counts: those loops, and sagas, which a retry can run again. */
  readonly counted: readonly string[];
  readonly parent: string | null;
  /** Injected into this instance only; only its id and kind are known. */
  readonly isInjected: boolean;
  /** Undefined for hooks as a group and for injected blocks. */
  readonly source: Block | undefined;
}

export interface Outline {
  /** The root list: stored blocks, then injected ones. */
  readonly blocks: readonly OutlineBlock[];
  /** `on_failure` and `on_cancel`, as groups. */
  readonly hooks: readonly OutlineBlock[];
  /** All blocks in document order, hooks last. */
  readonly byPath: ReadonlyMap<string, OutlineBlock>;
  /** Paths by block id, unique in a sequence; excludes hooks. */
  readonly pathOf: ReadonlyMap<string, string>;
}

export const HOOK_TITLES = { on_failure: 'after a failure', on_cancel: 'after a cancel' } as const;

/** @param tree of an instance: blocks in it that the definition does not have were injected */
export function outlineOf(definition: Definition, tree: readonly TreeNode[] = []): Outline {
  const stored = outlinesOf(definition.blocks, ROOT);
  const pathOf = new Map<string, string>();
  const byPath = new Map<string, OutlineBlock>();
  const note = (block: OutlineBlock) => {
    byPath.set(block.path, block);
    if (!block.path.startsWith(HOOKS)) pathOf.set(block.id, block.path);
    for (const slot of block.slots) slot.blocks.forEach(note);
  };
  stored.forEach(note);
  const injected = injectedOf(tree, pathOf);
  injected.forEach(note);
  const hooks = (['on_failure', 'on_cancel'] as const).flatMap((list) =>
    hooksOf(list, definition[list] ?? []),
  );
  hooks.forEach(note);
  return { blocks: [...stored, ...injected], hooks, byPath, pathOf };
}

/** The position of a list. */
interface Place {
  readonly parent: string | null;
  readonly depth: number;
  readonly repeats: readonly string[];
  readonly counted: readonly string[];
}

const ROOT: Place = { parent: null, depth: 0, repeats: [], counted: [] };

function insideOf(path: string, look: Look, { depth, repeats, counted }: Place): Place {
  const isLoop = isRepeating(look);
  return {
    parent: path,
    depth: depth + 1,
    repeats: isLoop ? [...repeats, path] : repeats,
    counted: isLoop || look === 'saga' ? [...counted, path] : counted,
  };
}

/** Block ids do not contain this character, so no block has such a path. */
const HOOKS = '@';

function outlinesOf(blocks: readonly Block[], place: Place): OutlineBlock[] {
  return blocks.map((block) => {
    const path = place.parent === null ? block.id : `${place.parent}/${block.id}`;
    const look = lookOf(block);
    const inside = insideOf(path, look, place);
    const { detail, slots: lists = [] } = partsOf(block);
    const slots = lists.map((slot) => ({ ...slot, blocks: outlinesOf(slot.blocks, inside) }));
    return {
      path,
      id: block.id,
      look,
      detail,
      arrangement: arrangementOf(look),
      slots,
      size: sizeOf(slots),
      ...place,
      isInjected: false,
      source: block,
    };
  });
}

function sizeOf(slots: readonly Slot<OutlineBlock>[]): number {
  return slots.reduce(
    (sum, { blocks }) => blocks.reduce((inner, { size }) => inner + 1 + size, sum),
    0,
  );
}

function hooksOf(
  list: keyof typeof HOOK_TITLES,
  steps: readonly HookStep[],
): readonly OutlineBlock[] {
  if (steps.length === 0) return [];
  const path = `${HOOKS}${list}`;
  const blocks = outlinesOf(
    steps.map((step) => ({ ...step, type: 'step' }) as Block),
    insideOf(path, 'hooks', ROOT),
  );
  return [
    {
      ...bare(list, path, ROOT),
      look: 'hooks',
      detail: HOOK_TITLES[list],
      slots: [{ key: 'body', label: 'body', row: 0, isFallback: false, blocks }],
      size: blocks.length,
    },
  ];
}

function bare(id: string, path: string, place: Place) {
  return {
    ...{ path, id, look: 'step' as Look, detail: '', arrangement: 'body' as Arrangement },
    ...{ slots: [], size: 0, isInjected: false, source: undefined },
    ...place,
  };
}

/** In the order of the tree, which lists every block after its parents. */
function injectedOf(
  tree: readonly TreeNode[],
  stored: ReadonlyMap<string, string>,
): readonly OutlineBlock[] {
  const inner = new Map<string | null, TreeNode[]>();
  for (const node of tree) {
    if (stored.has(node.block_id)) continue;
    const siblings = inner.get(node.parent_id);
    if (siblings === undefined) inner.set(node.parent_id, [node]);
    else siblings.push(node);
  }
  const build = (node: TreeNode, place: Place): OutlineBlock => {
    const path = place.parent === null ? node.block_id : `${place.parent}/${node.block_id}`;
    const look = lookNamed(node.block_type);
    const inside = insideOf(path, look, place);
    const children = inner.get(node.id) ?? [];
    const lists = [...new Set(children.map(({ branch_index }) => branch_index ?? 0))];
    const slots = lists.map((list) => ({
      key: `${list}`,
      label: `list ${list + 1}`,
      row: 0,
      isFallback: false,
      blocks: children
        .filter(({ branch_index }) => (branch_index ?? 0) === list)
        .map((child) => build(child, inside)),
    }));
    return {
      ...bare(node.block_id, path, place),
      look,
      arrangement: slots.length > 1 ? 'fork' : 'body',
      slots,
      size: sizeOf(slots),
      isInjected: true,
    };
  };
  return (inner.get(null) ?? []).map((node) => build(node, ROOT));
}
