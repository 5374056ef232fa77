/**
 * The tree of an instance as `GET /instances/{id}/tree` shows it. The execution has entries for
 * nodes that were reached only; what the others are follows from what is around them.
 */

import type { DoneCode, Execution, StepRecord } from './execution.js';
import { hashedUuid } from './ids.js';
import type { Plan, PlanNode } from './plan-nodes.js';
import type { NodeState } from './states.js';
import { isoTimeOrNull } from './time.js';

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
}

const STATES: Readonly<Record<DoneCode, NodeState>> = [
  'completed',
  'failed',
  'cancelled',
  'skipped',
];

/** All nodes in pre-order, step-only sequences included; ids are always the same. */
export function treeOf(plan: Plan, execution: Execution, instanceId: string): TreeNode[] {
  const ids = plan.nodes.map((node) => hashedUuid(`tree:${instanceId}:${node.id}`));
  const states: NodeState[] = [];
  const listEnds = new Map<string, NodeState>();
  return plan.nodes.map((node, index) => {
    const parent = plan.nodes[node.parent];
    const state = stateOf(node, execution) ?? unreached(node, parent, execution, states, listEnds);
    states.push(state);
    const list = `${node.parent}/${node.branch}`;
    // A root that a caller has resumed behind does not end its list.
    const isLeft = parent === undefined && index < (execution.s ?? 0);
    if (state === 'failed' && !isLeft) listEnds.set(list, 'skipped');
    else if (state === 'cancelled' && !isLeft && !listEnds.has(list)) {
      listEnds.set(list, 'cancelled');
    }
    return {
      id: ids[index]!,
      instance_id: instanceId,
      block_id: node.id,
      parent_id: ids[node.parent] ?? null,
      block_type: node.type,
      branch_index: parent === undefined || parent.lists.length < 2 ? null : node.branch,
      state,
      ...childOf(node, execution),
      ...times(node, execution),
    };
  });
}

/** The state of a node that was reached; undefined for the others. */
function stateOf(node: PlanNode, execution: Execution): NodeState | undefined {
  const done = execution.d[node.index];
  if (done !== undefined) return STATES[done[0]];
  const record = execution.o[node.index];
  return record === undefined ? undefined : node.kind.openState(record);
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
