/**
 * The tree of an instance as `GET /instances/{id}/tree` shows it. The execution has entries for
 * nodes that were reached only; what the others are follows from what is around them.
 */

import type {
  DoneCode,
  Execution,
  ForEachRecord,
  LoopRecord,
  OpenRecord,
  StepRecord,
} from '../../schema/execution.js';
import type { NodeState } from '../../schema/states.js';
import { hashedUuid } from '../base/ids.js';
import { isoTimeOrNull } from '../base/time.js';
import { recordOf } from './paths.js';
import type { Plan, PlanNode } from './plan-nodes.js';

/** Wire shape (schema `TreeNode`). Times are RFC 3339. */
export interface TreeNode {
  id: string;
  instance_id: string;
  block_id: string;
  parent_id: string | null;
  block_type: PlanNode['type'];
  /** The branch or list of the parent; null in the root list and in bodies of loops. */
  branch_index: number | null;
  state: NodeState;
  /** The child instance of the block, the latest one; absent where there is none. */
  child_instance_id?: string;
  started_at: string | null;
  completed_at: string | null;
  /** Of a for_each that is open. */
  items?: ItemCounts;
  /** Of a loop that is open: its pass, counted from 0. */
  iteration?: number;
  /** Of a block in loops: rows of outputs that it has left over all passes. */
  output_count?: number;
}

/** What is asked for of a tree; `depth` counts the levels below the first ones. */
export interface TreePart {
  readonly block_id?: string | undefined;
  readonly depth?: number | undefined;
}

/** How far a for_each has come. */
export interface ItemCounts {
  total: number;
  running: number;
  /** In whatever way. */
  ended: number;
}

const STATES: Readonly<Record<DoneCode, NodeState>> = [
  'completed',
  'failed',
  'cancelled',
  'skipped',
];

/** All blocks in pre-order, step-only sequences included; ids are always the same. */
export function treeOf(plan: Plan, execution: Execution, instanceId: string): TreeNode[] {
  const sights = sightsOf(plan, execution);
  const ids = new Map<number, string>();
  return plan.nodes.flatMap((node) => {
    if (node.index !== node.first) return [];
    const parent = plan.nodes[node.parent];
    const { state, from } = sights[node.index]!;
    const id = hashedUuid(`tree:${instanceId}:${node.id}`);
    ids.set(node.index, id);
    const shown: TreeNode = {
      id,
      instance_id: instanceId,
      block_id: node.id,
      parent_id: ids.get(node.parent) ?? null,
      block_type: node.type,
      branch_index: hasOneList(parent) ? null : node.branch,
      state,
      ...childOf(from, execution),
      ...times(from, execution),
    };
    const items = node.kind.repeats === 'items' ? itemCounts(execution.o[from.index]) : undefined;
    if (items !== undefined) shown.items = items;
    const pass = node.kind.repeats === 'passes' ? execution.o[from.index] : undefined;
    if (pass !== undefined) shown.iteration = (pass as LoopRecord).i;
    const count = execution.c?.[node.index];
    if (count !== undefined) shown.output_count = count;
    return [shown];
  });
}

/**
 * A part of the tree, in its order.
 *
 * @returns undefined when there is no such block
 */
export function partOf(
  tree: readonly TreeNode[],
  { block_id, depth = Number.POSITIVE_INFINITY }: TreePart,
): TreeNode[] | undefined {
  const top = tree.find((node) => node.block_id === block_id);
  if (block_id !== undefined && top === undefined) return undefined;
  const levels = new Map<string, number>();
  return tree.filter(({ id, parent_id }) => {
    const above = parent_id === null ? undefined : levels.get(parent_id);
    const isFirst = top === undefined ? parent_id === null : id === top.id;
    const level = isFirst ? 0 : above === undefined ? undefined : above + 1;
    if (level !== undefined) levels.set(id, level);
    return level !== undefined && level <= depth;
  });
}

function hasOneList(parent: PlanNode | undefined): boolean {
  return parent === undefined || parent.kind.repeats !== 'never' || parent.lists.length < 2;
}

function itemCounts(record: OpenRecord | undefined): ItemCounts | undefined {
  if (record === undefined) return undefined;
  const { n: total, i, e, s, m = 0, f = 0 } = record as ForEachRecord;
  if (s === undefined) return { total, running: e === 1 ? 0 : 1, ended: i };
  return { total, running: i - m - f, ended: m + f };
}

/** What is shown of a block, and the node that shows it. */
interface Sight {
  readonly state: NodeState;
  readonly from: PlanNode;
}

/** The first that some item is at is what is shown of a block. */
const BY_WEIGHT: readonly NodeState[] = [
  'running',
  'waiting',
  'failed',
  'pending',
  'completed',
  'cancelled',
  'skipped',
];

/** By the first nodes of the blocks. Where items run side by side, those slots count that are at one. */
function sightsOf(plan: Plan, execution: Execution): Sight[] {
  const states: NodeState[] = [];
  const listEnds = new Map<string, NodeState>();
  const sights: Sight[] = [];
  const isAtItem: boolean[] = [];
  for (const node of plan.nodes) {
    const parent = plan.nodes[node.parent];
    const state = stateOf(node, execution) ?? unreached(node, parent, execution, states, listEnds);
    states.push(state);
    const list = `${node.parent}/${node.branch}`;
    // A root that a caller has resumed behind does not end its list.
    const isLeft = parent === undefined && node.index < (execution.s ?? 0);
    if (state === 'failed' && !isLeft) listEnds.set(list, 'skipped');
    else if (state === 'cancelled' && !isLeft && !listEnds.has(list)) {
      listEnds.set(list, 'cancelled');
    }
    isAtItem.push(isInFlight(node, parent, execution, isAtItem));
    const known = sights[node.first];
    if (known === undefined || outweighs({ state, from: node }, known, isAtItem)) {
      sights[node.first] = { state, from: node };
    }
  }
  return sights;
}

function isInFlight(
  node: PlanNode,
  parent: PlanNode | undefined,
  execution: Execution,
  isAtItem: readonly boolean[],
): boolean {
  if (parent === undefined) return true;
  if (isAtItem[parent.index] !== true) return false;
  const { s } = parent.kind.repeats === 'items' ? recordOf(execution, parent.index) : {};
  return s === undefined ? node.branch === 0 || !isLane(node, parent) : (s[node.branch] ?? -1) >= 0;
}

function isLane(node: PlanNode, parent: PlanNode): boolean {
  return node.lanes.includes(parent.index);
}

function outweighs(sight: Sight, known: Sight, isAtItem: readonly boolean[]): boolean {
  const [counts, before] = [isAtItem[sight.from.index], isAtItem[known.from.index]];
  if (counts !== before) return counts === true;
  return BY_WEIGHT.indexOf(sight.state) < BY_WEIGHT.indexOf(known.state);
}

/** The state of a node that was reached; undefined for the others. */
function stateOf(node: PlanNode, execution: Execution): NodeState | undefined {
  const done = execution.d[node.index];
  if (done !== undefined) return STATES[done[0]];
  const record = execution.o[node.index];
  if (record === undefined) return undefined;
  // It could not be cleaned up.
  return execution.a !== undefined && execution.e !== undefined
    ? 'failed'
    : node.kind.openState(record);
}

/**
 * Behind a failure in a list: skipped, or cancelled with what was cut off
 * (docs/reference/blocks.md). Elsewhere it is pending while the block around it may still come to
 * it.
 */
function unreached(
  node: PlanNode,
  parent: PlanNode | undefined,
  execution: Execution,
  states: readonly NodeState[],
  listEnds: ReadonlyMap<string, NodeState>,
): NodeState {
  const behind = listEnds.get(`${node.parent}/${node.branch}`);
  if (behind !== undefined) return behind;
  if (parent === undefined) {
    return execution.e === undefined && execution.x !== 1 ? 'pending' : 'cancelled';
  }
  const around = states[parent.index]!;
  if (around === 'pending' || around === 'skipped' || around === 'cancelled') return around;
  const record = execution.o[parent.index];
  if (record === undefined) return parent.kind.unreached;
  if (parent.kind.awaits(record, node.branch)) return 'pending';
  return record.x === 1 ? 'cancelled' : 'skipped';
}

function childOf({ index, kind }: PlanNode, { o, d }: Execution): { child_instance_id?: string } {
  if (!kind.isLeaf) return {};
  const { c } = (o[index] ?? d[index]?.[3] ?? {}) as Partial<StepRecord>;
  return c === undefined ? {} : { child_instance_id: c };
}

function times(
  node: PlanNode,
  { t, o, d }: Execution,
): { started_at: string | null; completed_at: string | null } {
  const done = d[node.index];
  const began = done?.[1] ?? o[node.index]?.b;
  if (t === null || began === undefined) return { started_at: null, completed_at: null };
  const ended = done === undefined ? null : t + done[1] + done[2];
  return { started_at: isoTimeOrNull(t + began), completed_at: isoTimeOrNull(ended) };
}
