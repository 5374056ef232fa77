/** Builds the tree of an instance. The states of blocks that were not reached follow from the enclosing blocks. */

import type {
  Execution,
  ForEachRecord,
  LoopRecord,
  OpenRecord,
  StepRecord,
} from '../../schema/execution.js';
import type { TreeNode } from '../../schema/instance.js';
import { type NodeState, words } from '../../schema/states.js';
import { hashedUuid } from '../base/ids.js';
import { isoTimeOrNull } from '../base/time.js';
import { recordOf } from './paths.js';
import type { Plan, PlanNode } from './plan-nodes.js';

/** Selects a part of the tree; `depth` counts the levels below the first one. */
export interface TreePart {
  readonly block_id?: string | undefined;
  readonly depth?: number | undefined;
}

/** By `DoneCode`. */
const STATES = ['completed', 'failed', 'cancelled', 'skipped'] as const;

/** All blocks in pre-order; node ids are stable. */
export function treeOf(plan: Plan, execution: Execution, instanceId: string): TreeNode[] {
  const sights = shownNodes(plan, execution);
  const ids = new Map<number, string>();
  return plan.nodes.flatMap((node) => {
    if (node.index !== node.first) return [];
    const parent = plan.nodes[node.parent];
    const { state, from } = sights[node.index]!;
    const id = hashedUuid(`tree:${instanceId}:${node.id}`);
    const hasLists = parent?.kind.repeats === 'never' && parent.lists.length > 1;
    ids.set(node.index, id);
    const shown: TreeNode = {
      id,
      instance_id: instanceId,
      block_id: node.id,
      parent_id: ids.get(node.parent) ?? null,
      block_type: node.type,
      branch_index: hasLists ? node.branch : null,
      state,
      ...childOf(from, execution),
      ...times(from, execution),
    };
    const items = node.kind.repeats === 'items' ? itemCounts(execution.o[from.index]) : undefined;
    if (items !== undefined) shown.items = items;
    const open = node.kind.repeats === 'iterations' ? execution.o[from.index] : undefined;
    if (open !== undefined) shown.iteration = (open as LoopRecord).i;
    const count = execution.c?.[node.index];
    if (count !== undefined) shown.output_count = count;
    return [shown];
  });
}

/** A part of the tree, in its order; undefined when there is no such block. */
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

function itemCounts(record: OpenRecord | undefined): TreeNode['items'] {
  if (record === undefined) return undefined;
  const { n: total, i, e, s, m = 0, f = 0 } = record as ForEachRecord;
  if (s === undefined) return { total, running: e === 1 ? 0 : 1, ended: i };
  return { total, running: i - m - f, ended: m + f };
}

interface ShownNode {
  readonly state: NodeState;
  readonly from: PlanNode;
}

/** When the nodes of a block have several states, the first of these is shown. */
const PRECEDENCE = words('running waiting failed pending completed cancelled skipped');

/** By the first node of each block. Slots with an item take precedence over those without. */
function shownNodes(plan: Plan, execution: Execution): ShownNode[] {
  const states: NodeState[] = [];
  const listEnds = new Map<string, NodeState>();
  const sights: ShownNode[] = [];
  const isAtItem: boolean[] = [];
  for (const node of plan.nodes) {
    const parent = plan.nodes[node.parent];
    const state = stateOf(node, execution) ?? unreached(node, parent, execution, states, listEnds);
    states.push(state);
    const list = `${node.parent}/${node.branch}`;
    // A root before the one that a caller resumed from does not end its list.
    const isLeft = parent === undefined && node.index < (execution.s ?? 0);
    if (state === 'failed' && !isLeft) listEnds.set(list, 'skipped');
    else if (state === 'cancelled' && !isLeft && !listEnds.has(list)) {
      listEnds.set(list, 'cancelled');
    }
    isAtItem.push(isInFlight(node, parent, execution, isAtItem));
    const known = sights[node.first];
    if (known === undefined || precedes({ state, from: node }, known, isAtItem)) {
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
  if (s !== undefined) return (s[node.branch] ?? -1) >= 0;
  return node.branch === 0 || !node.concurrentLoops.includes(parent.index);
}

function precedes(sight: ShownNode, known: ShownNode, isAtItem: readonly boolean[]): boolean {
  const [counts, before] = [isAtItem[sight.from.index], isAtItem[known.from.index]];
  if (counts !== before) return counts === true;
  return PRECEDENCE.indexOf(sight.state) < PRECEDENCE.indexOf(known.state);
}

/** The state of a node that was reached; undefined for the others. */
function stateOf(node: PlanNode, execution: Execution): NodeState | undefined {
  const done = execution.d[node.index];
  if (done !== undefined) return STATES[done[0]];
  const record = execution.o[node.index];
  if (record === undefined) return undefined;
  // A block that is open after the end has failed to clean up.
  return execution.a !== undefined && execution.e !== undefined
    ? 'failed'
    : node.kind.openState(record);
}

/** After a failure in a list: skipped, or cancelled if cut off. Otherwise pending while it may still be reached. */
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

function times(node: PlanNode, { t, o, d }: Execution) {
  const done = d[node.index];
  const began = done?.[1] ?? o[node.index]?.b;
  if (t === null || began === undefined) return { started_at: null, completed_at: null };
  const ended = done === undefined ? null : t + done[1] + done[2];
  return { started_at: isoTimeOrNull(t + began), completed_at: isoTimeOrNull(ended) };
}
