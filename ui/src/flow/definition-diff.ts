/**
 * Compares two definitions: merges their outlines (removed blocks stay at their old position), classifies every block
 * and lists the changes. Blocks are matched by id. Pure.
 */

import type { SemanticDiff } from 'durable-workflow-engine-client';
import type { Slot } from './kinds.ts';
import { type Definition, type Outline, type OutlineBlock, outlineOf } from './outline.ts';

export const CHANGE_KINDS = ['added', 'removed', 'changed', 'moved'] as const;
export type ChangeKind = (typeof CHANGE_KINDS)[number];

export interface MemberChange {
  /** Such as `handler` or `params.body.amount`. */
  readonly member: string;
  /** As JSON; undefined if absent. */
  readonly before: string | undefined;
  readonly after: string | undefined;
}

export interface Change {
  /** Path in the merged outline. */
  readonly path: string;
  readonly kind: ChangeKind;
  /** Previous position of a moved block, which may have changed as well. */
  readonly from: string | undefined;
  readonly members: readonly MemberChange[];
  /** The server's remarks about it. */
  readonly notes: readonly { readonly severity: string; readonly summary: string }[];
}

export interface DefinitionChanges {
  readonly merged: Outline;
  /** In the order of the merged outline. */
  readonly changes: readonly Change[];
  /** The server's remarks about the sequence as a whole. */
  readonly notes: Change['notes'];
}

/** @param said the semantic diff by the server, whose summaries are attached to the changes */
export function definitionChanges(
  before: Definition,
  after: Definition,
  said?: SemanticDiff,
): DefinitionChanges {
  const [old, next] = [outlineOf(before), outlineOf(after)];
  const merged = mergedOutline(old, next);
  const notes = new Map<string, { severity: string; summary: string }[]>();
  for (const { block_id = '', severity, summary } of said?.entries ?? []) {
    const list = notes.get(block_id) ?? [];
    notes.set(block_id, list);
    list.push({ severity, summary });
  }
  const changes: Change[] = [];
  for (const block of merged.byPath.values()) {
    const change = changeOf(block, old, next);
    if (change !== undefined) changes.push({ ...change, notes: notes.get(block.id) ?? [] });
  }
  return { merged, changes, notes: notes.get('') ?? [] };
}

function changeOf(
  block: OutlineBlock,
  old: Outline,
  next: Outline,
): Omit<Change, 'notes'> | undefined {
  const { path } = block;
  const was = counterpart(block, old);
  const is = counterpart(block, next);
  if (was === undefined) return { path, kind: 'added', from: undefined, members: [] };
  if (is === undefined) return { path, kind: 'removed', from: was.path, members: [] };
  const members = memberChanges(was, is);
  if (hasMoved(was, is, old, next)) return { path, kind: 'moved', from: was.path, members };
  return members.length === 0 ? undefined : { path, kind: 'changed', from: undefined, members };
}

/** Hooks have their own namespace, since a block may have the name of a hook. */
function counterpart(block: OutlineBlock, outline: Outline): OutlineBlock | undefined {
  const path = isHook(block) ? block.path : outline.pathOf.get(block.id);
  return path === undefined ? undefined : outline.byPath.get(path);
}

const isHook = ({ path }: OutlineBlock) => path.startsWith('@');

/** Whether it is in another list, or in another order relative to the blocks that stayed beside it. */
function hasMoved(was: OutlineBlock, is: OutlineBlock, old: Outline, next: Outline): boolean {
  if (idOfParent(was, old) !== idOfParent(is, next)) return true;
  const [oldSlot, slot] = [slotOf(was, old), slotOf(is, next)];
  if (!isSameSlot(oldSlot, slot)) return true;
  return movedIn(oldSlot, slot).has(is.id);
}

function idOfParent({ parent }: OutlineBlock, { byPath }: Outline): string | undefined {
  return parent === null ? undefined : byPath.get(parent)?.id;
}

interface Place {
  readonly key: string;
  readonly label: string;
  readonly list: readonly OutlineBlock[];
}

function slotOf(block: OutlineBlock, outline: Outline): Place {
  const around = block.parent === null ? undefined : outline.byPath.get(block.parent);
  if (around === undefined) return { key: '', label: '', list: outline.blocks };
  const slot = around.slots.find(({ blocks }) => blocks.includes(block))!;
  return { key: slot.key, label: slot.label, list: slot.blocks };
}

/** Branches are numbered, so their contents identify them better than their position. */
function isSameSlot(was: Place, is: Place): boolean {
  return was.key === is.key || (isNumbered(is.key) && sharesMost(was.list, is.list));
}

const isNumbered = (key: string) => /^branch \d+$/.test(key);

function sharesMost(was: readonly OutlineBlock[], is: readonly OutlineBlock[]): boolean {
  const ids = new Set(was.map(({ id }) => id));
  return 2 * is.filter(({ id }) => ids.has(id)).length > was.length;
}

const moves = new WeakMap<readonly OutlineBlock[], [unknown, ReadonlySet<string>]>();

/** The blocks outside the longest subsequence that kept its order. */
function movedIn(was: Place, is: Place): ReadonlySet<string> {
  const known = moves.get(is.list);
  if (known !== undefined && known[0] === was.list) return known[1];
  const places = new Map(was.list.map(({ id }, i) => [id, i]));
  const both = is.list.filter(({ id }) => places.has(id));
  const kept = new Set(longestRise(both.map(({ id }) => places.get(id)!)));
  const moved = new Set(both.filter((_, i) => !kept.has(i)).map(({ id }) => id));
  moves.set(is.list, [was.list, moved]);
  return moved;
}

/** The indexes of a longest increasing subsequence. */
function longestRise(numbers: readonly number[]): number[] {
  const ends: number[] = [];
  const before: number[] = [];
  for (const [i, number] of numbers.entries()) {
    let [low, high] = [0, ends.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (numbers[ends[middle]!]! < number) low = middle + 1;
      else high = middle;
    }
    before[i] = low === 0 ? -1 : ends[low - 1]!;
    ends[low] = i;
  }
  const rise: number[] = [];
  for (let i = ends.at(-1) ?? -1; i >= 0; i = before[i]!) rise.push(i);
  return rise.reverse();
}

// ---------------------------------------------------------------- members

/** Lists of blocks are compared block by block. */
const LISTS: ReadonlySet<string> = new Set([
  'branches',
  'try_block',
  'catch_block',
  'finally_block',
  'body',
  'blocks',
  'default',
  'action',
  'compensation',
]);

function memberChanges(was: OutlineBlock, is: OutlineBlock): MemberChange[] {
  if (was.source === undefined || is.source === undefined) return [];
  const [before, after] = [ownMembers(was), ownMembers(is)];
  const members = new Set([...before.keys(), ...after.keys()]);
  return [...members]
    .filter((member) => before.get(member) !== after.get(member))
    .map((member) => ({ member, before: before.get(member), after: after.get(member) }));
}

/** Every member by its path, as JSON. Null counts as absent. */
function ownMembers({ source }: OutlineBlock): ReadonlyMap<string, string> {
  const members = new Map<string, string>();
  const walk = (value: unknown, way: string, isOfBlock: boolean) => {
    if (value === null || value === undefined) return;
    if (typeof value !== 'object' || Object.keys(value).length === 0) {
      members.set(way, JSON.stringify(value));
      return;
    }
    for (const [key, inner] of Object.entries(value)) {
      if (isOfBlock && LISTS.has(key)) continue;
      const isPart = isOfBlock && (PARTS.has(key) || PARTS.has(way));
      const name = Array.isArray(value) ? `[${nameOf(inner, key)}]` : way === '' ? key : `.${key}`;
      walk(inner, way + name, isPart || (isOfBlock && Array.isArray(value)));
    }
  };
  walk(source, '', true);
  return members;
}

/** Routes, variants and saga steps are matched by name or condition, so that a new one does not shift the others. */
function nameOf(part: unknown, index: string): string {
  if (typeof part !== 'object' || part === null) return index;
  const { id, name, condition } = part as Readonly<Record<string, unknown>>;
  const known = [id, name, condition].find((word) => typeof word === 'string');
  return known === undefined ? index : String(known);
}

/** Lists whose members contain lists of blocks. */
const PARTS: ReadonlySet<string> = new Set(['routes', 'variants', 'steps']);

// ---------------------------------------------------------------- one outline of two

function mergedOutline(old: Outline, next: Outline): Outline {
  const byPath = new Map<string, OutlineBlock>();
  const pathOf = new Map<string, string>();
  /** Removed blocks keep those of their children that are removed, too. */
  const keepRemoved = (block: OutlineBlock, parent: string | null, depth: number): OutlineBlock =>
    placed(block, parent, depth, (slot, path) =>
      slot.blocks.filter(isRemoved).map((inner) => keepRemoved(inner, path, depth + 1)),
    );
  const isRemoved = (block: OutlineBlock) => counterpart(block, next) === undefined;
  const merge = (
    was: readonly OutlineBlock[],
    is: readonly OutlineBlock[],
    parent: string | null,
    depth: number,
  ): OutlineBlock[] => {
    const list = is.map((block) => mergeBlock(block, parent, depth));
    for (const [i, block] of was.entries()) {
      if (!isRemoved(block)) continue;
      // After the nearest preceding block that still exists.
      const ids = was.slice(0, i).map(({ id }) => id);
      const behind = list.findLastIndex(({ id }) => ids.includes(id));
      list.splice(behind + 1, 0, keepRemoved(block, parent, depth));
    }
    return list;
  };
  const mergeBlock = (block: OutlineBlock, parent: string | null, depth: number): OutlineBlock => {
    const was = counterpart(block, old);
    const merged = placed(block, parent, depth, (slot, path) =>
      merge(counterSlot(slot, block, was)?.blocks ?? [], slot.blocks, path, depth + 1),
    );
    const gone = (was?.slots ?? []).filter(
      (slot) =>
        !block.slots.some((kept) => counterSlot(kept, block, was) === slot) &&
        slot.blocks.some(isRemoved),
    );
    const removed = gone.map((slot) => ({
      ...slot,
      key: `removed ${slot.key}`,
      blocks: slot.blocks
        .filter(isRemoved)
        .map((inner) => keepRemoved(inner, merged.path, depth + 1)),
    }));
    return withSlots(merged, [...merged.slots, ...removed]);
  };
  const blocks = merge(old.blocks, next.blocks, null, 0);
  const hooks = merge(old.hooks, next.hooks, null, 0);
  const note = (block: OutlineBlock) => {
    byPath.set(block.path, block);
    if (!isHook(block)) pathOf.set(block.id, block.path);
    for (const slot of block.slots) slot.blocks.forEach(note);
  };
  blocks.forEach(note);
  hooks.forEach(note);
  return { blocks, hooks, byPath, pathOf };
}

/** The slot of the older block that a slot of the newer one continues. */
function counterSlot(
  slot: Slot<OutlineBlock>,
  { slots }: OutlineBlock,
  was: OutlineBlock | undefined,
): Slot<OutlineBlock> | undefined {
  if (was === undefined) return undefined;
  if (!isNumbered(slot.key)) return was.slots.find(({ key }) => key === slot.key);
  const shared = was.slots.find(({ blocks }) => sharesMost(blocks, slot.blocks));
  if (shared !== undefined) return shared;
  const sameNumber = was.slots.find(({ key }) => key === slot.key);
  const isTaken = slots.some(
    (other) => sameNumber !== undefined && sharesMost(sameNumber.blocks, other.blocks),
  );
  return isTaken ? undefined : sameNumber;
}

function placed(
  block: OutlineBlock,
  parent: string | null,
  depth: number,
  listOf: (slot: Slot<OutlineBlock>, path: string) => OutlineBlock[],
): OutlineBlock {
  const path = parent === null ? block.path.split('/').at(-1)! : `${parent}/${block.id}`;
  const slots = block.slots.map((slot) => ({ ...slot, blocks: listOf(slot, path) }));
  return withSlots({ ...block, path, parent, depth }, slots);
}

function withSlots(block: OutlineBlock, slots: readonly Slot<OutlineBlock>[]): OutlineBlock {
  const blocks = slots.flatMap((slot) => slot.blocks);
  return { ...block, slots, size: blocks.reduce((sum, { size }) => sum + 1 + size, 0) };
}
