/**
 * A definition as a tree of blocks with named slots, from which all diagrams and lists are built: the only place that
 * knows the structure of each kind of block (docs/blocks.md). Pure.
 */

import type { Block, StepBlock, TreeNode } from 'durable-workflow-engine-client';
import { formatDuration } from '../lib/format.ts';

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

/** How a block is drawn. Steps that wait for a person, a timer or an event have their own look. */
export const LOOKS = [
  'step',
  'http_request',
  'approval',
  'sleep',
  'wait_for_event',
  'sub_sequence',
  'parallel',
  'race',
  'router',
  'ab_split',
  'try_catch',
  'saga',
  'loop',
  'for_each',
  'cancellation_scope',
  'hooks',
  'unknown',
] as const;
export type Look = (typeof LOOKS)[number];

/**
 * How the slots of a block are arranged.
 * - `body`: one list, without a name.
 * - `fork`: side by side; one or all of them run.
 * - `rows`: rows of slots, run one after the other.
 */
export type Arrangement = 'body' | 'fork' | 'rows';

export interface Lane {
  /** Stable when other slots are inserted before it. */
  readonly key: string;
  readonly label: string;
  /** The row of `rows` it is in. */
  readonly row: number;
  /** Runs only after a failure. */
  readonly isFallback: boolean;
  readonly blocks: readonly OutlineBlock[];
}

export interface OutlineBlock {
  /** The ids from the outermost block to it, as in `orders/charge`. */
  readonly path: string;
  readonly id: string;
  readonly look: Look;
  /** A handler, condition or sequence, in a few words. */
  readonly detail: string;
  readonly arrangement: Arrangement;
  readonly lanes: readonly Lane[];
  /** Number of blocks inside, at any depth. */
  readonly size: number;
  readonly depth: number;
  /** Paths of the loops around it, the outermost first. */
  readonly repeats: readonly string[];
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
    for (const lane of block.lanes) lane.blocks.forEach(note);
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
}

const ROOT: Place = { parent: null, depth: 0, repeats: [] };

/** Block ids do not contain this character, so no block has such a path. */
const HOOKS = '@';

function outlinesOf(blocks: readonly Block[], place: Place): OutlineBlock[] {
  return blocks.map((block) => {
    const path = place.parent === null ? block.id : `${place.parent}/${block.id}`;
    const isRepeating = block.type === 'loop' || block.type === 'for_each';
    const inside = {
      parent: path,
      depth: place.depth + 1,
      repeats: isRepeating ? [...place.repeats, path] : place.repeats,
    };
    const parts = partsOf(block);
    const lanes = parts.lanes.map(({ blocks: list, ...lane }) => ({
      ...lane,
      blocks: outlinesOf(list, inside),
    }));
    return {
      path,
      id: block.id,
      look: lookOf(block),
      detail: parts.detail,
      arrangement: parts.arrangement ?? 'body',
      lanes,
      size: sizeOf(lanes),
      depth: place.depth,
      repeats: place.repeats,
      parent: place.parent,
      isInjected: false,
      source: block,
    };
  });
}

function sizeOf(lanes: readonly Lane[]): number {
  return lanes.reduce(
    (sum, { blocks }) => blocks.reduce((inner, { size }) => inner + 1 + size, sum),
    0,
  );
}

interface Parts {
  readonly detail: string;
  readonly arrangement?: Arrangement;
  readonly lanes: readonly (Omit<Lane, 'blocks'> & { readonly blocks: readonly Block[] })[];
}

function partsOf(block: Block): Parts {
  switch (block.type) {
    case 'step':
      return { detail: stepDetail(block), lanes: [] };
    case 'sub_sequence':
      return {
        detail: `${block.sequence_name}${block.version == null ? '' : ` v${block.version}`}`,
        lanes: [],
      };
    case 'parallel':
      return {
        detail: 'runs all branches',
        arrangement: 'fork',
        lanes: block.branches.map((list, i) => lane(`branch ${i + 1}`, list)),
      };
    case 'race':
      return {
        detail:
          block.semantics === 'first_to_succeed'
            ? 'the first branch to succeed wins'
            : 'the first branch to finish wins',
        arrangement: 'fork',
        lanes: block.branches.map((list, i) => lane(`branch ${i + 1}`, list)),
      };
    case 'router':
      return {
        detail: 'runs the first matching route',
        arrangement: 'fork',
        lanes: [
          ...(block.routes ?? []).map(({ condition, blocks }, i) => ({
            ...lane(condition, blocks),
            // Two routes may have the same condition, and then the later one is never taken.
            key: `${block.routes!.findIndex((route) => route.condition === condition) === i ? '' : i}if ${condition}`,
          })),
          ...(block.default == null ? [] : [{ ...lane('else', block.default), key: 'else' }]),
        ],
      };
    case 'ab_split':
    case 'a_b_split': {
      const sum = block.variants.reduce((all, { weight }) => all + weight, 0);
      return {
        detail: 'picks one variant by weight',
        arrangement: 'fork',
        lanes: block.variants.map(({ name, weight, blocks }) => ({
          ...lane(`${name} · ${percent(weight, sum)}`, blocks),
          key: name,
        })),
      };
    }
    case 'try_catch':
      return {
        detail: 'catch runs only if try fails',
        arrangement: 'rows',
        lanes: [
          lane('try', block.try_block),
          { ...lane('catch', block.catch_block), isFallback: true },
          ...(block.finally_block == null
            ? []
            : [{ ...lane('finally', block.finally_block), row: 1 }]),
        ],
      };
    case 'saga':
      return {
        detail: 'compensates completed steps on failure',
        arrangement: 'rows',
        lanes: block.steps.flatMap(({ id, action, compensation }, row) => [
          { ...lane(id, asList(action)), row },
          ...(compensation == null
            ? []
            : [{ ...lane(`undo ${id}`, asList(compensation)), row, isFallback: true }]),
        ]),
      };
    case 'loop':
      return { detail: `while ${block.condition}`, lanes: [lane('body', block.body)] };
    case 'for_each':
      return {
        detail: `${block.item_var ?? 'item'} of ${block.collection}`,
        lanes: [lane('body', block.body)],
      };
    case 'cancellation_scope':
      return { detail: 'protected from cancellation', lanes: [lane('body', block.blocks)] };
    default:
      // A newer server may have kinds that this page does not know.
      return { detail: (block as { type: string }).type, lanes: [] };
  }
}

/** The request, event or duration says more than the name of the handler. */
function stepDetail({ handler, params, wait_for_input }: StepBlock): string {
  if (wait_for_input != null) return wait_for_input.prompt || handler;
  const { method = 'GET', url, name, duration_ms } = (params ?? {}) as Record<string, unknown>;
  if (handler === 'http_request' && typeof url === 'string') return `${method} ${url}`;
  if (handler === 'wait_for_event' && typeof name === 'string') return name;
  if (handler === 'sleep' && typeof duration_ms === 'number') return formatDuration(duration_ms);
  return handler;
}

function lane(label: string, blocks: readonly Block[]) {
  return { key: label, label, row: 0, isFallback: false, blocks };
}

function asList(blocks: Block | readonly Block[]): readonly Block[] {
  return Array.isArray(blocks) ? blocks : [blocks as Block];
}

function percent(weight: number, sum: number): string {
  return sum === 0 ? '0 %' : `${Math.round((weight / sum) * 1_000) / 10} %`;
}

function lookOf(block: Block): Look {
  if (block.type === 'a_b_split') return 'ab_split';
  if (block.type !== 'step') return lookNamed(block.type);
  if (block.wait_for_input != null) return 'approval';
  const own = ['http_request', 'sleep', 'wait_for_event'] as const;
  return own.find((handler) => handler === block.handler) ?? 'step';
}

function lookNamed(type: string): Look {
  return LOOKS.find((look) => look === type) ?? 'unknown';
}

function hooksOf(
  list: keyof typeof HOOK_TITLES,
  steps: readonly HookStep[],
): readonly OutlineBlock[] {
  if (steps.length === 0) return [];
  const path = `${HOOKS}${list}`;
  const blocks = outlinesOf(
    steps.map((step) => ({ ...step, type: 'step' }) as Block),
    { parent: path, depth: 1, repeats: [] },
  );
  return [
    {
      ...bare(list, path, ROOT),
      look: 'hooks',
      detail: HOOK_TITLES[list],
      lanes: [{ key: 'body', label: 'body', row: 0, isFallback: false, blocks }],
      size: blocks.length,
    },
  ];
}

function bare(id: string, path: string, place: Place) {
  return {
    ...{ path, id, look: 'step' as Look, detail: '', arrangement: 'body' as Arrangement },
    ...{ lanes: [], size: 0, depth: place.depth, repeats: place.repeats, parent: place.parent },
    ...{ isInjected: false, source: undefined },
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
    const look = lookNamed(node.block_type === 'a_b_split' ? 'ab_split' : node.block_type);
    const isRepeating = look === 'loop' || look === 'for_each';
    const inside = {
      parent: path,
      depth: place.depth + 1,
      repeats: isRepeating ? [...place.repeats, path] : place.repeats,
    };
    const children = inner.get(node.id) ?? [];
    const lists = [...new Set(children.map(({ branch_index }) => branch_index ?? 0))];
    const lanes = lists.map((list) => ({
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
      arrangement: lanes.length > 1 ? 'fork' : 'body',
      lanes,
      size: sizeOf(lanes),
      isInjected: true,
    };
  };
  return (inner.get(null) ?? []).map((node) => build(node, ROOT));
}
