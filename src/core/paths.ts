/** Where a block stands in a running instance, for people and for rows. */

import type { Execution, ForEachRecord, OpenRecord } from '../../schema/execution.js';
import type { NodePlace, Plan, PlanNode } from './plan-nodes.js';

/** The pass that a loop is at in one of its lists, or the item that a for_each is at, counted from 0. */
export function passOf(record: OpenRecord | undefined, slot: number): number {
  const { i, s } = (record ?? {}) as Partial<ForEachRecord>;
  return (s === undefined ? i : s[slot]) ?? 0;
}

/**
 * The ids from the outermost block to it, and of each loop the iteration that runs, counted from 0, as in
 * `orders[2]/charge`; while those loops are open.
 */
export function pathOf({ nodes }: Plan, { o }: Execution, node: NodePlace): string {
  let path = node.id;
  let below = node;
  for (let around = nodes[node.parent]; around !== undefined; around = nodes[around.parent]) {
    const isLoop = around.kind.repeats !== 'never';
    const pass = isLoop ? `[${passOf(o[around.index], below.branch)}]` : '';
    path = `${around.id}${pass}/${path}`;
    below = around;
  }
  return path;
}

/** The counters of the loops around the node: '' outside of loops, else such as `2.0`. */
export function iterationOf(
  { o }: Execution,
  { loops, slots }: Pick<NodePlace, 'loops' | 'slots'>,
): string {
  if (loops.length === 0) return '';
  return loops.map((index, at) => passOf(o[index], slots[at]!)).join('.');
}

/** Names one run of a loop, of all those there are while the loops around it go on. */
export function runKey(execution: Execution, node: NodePlace): string {
  return `${iterationOf(execution, node)}:${node.id}`;
}

/**
 * The node of a block at an iteration of the loops around it; undefined when the plan has no such block,
 * or no such iteration is under way.
 */
export function nodeAt(
  plan: Plan,
  execution: Execution,
  blockId: string,
  iteration: string,
): PlanNode | undefined {
  const first = plan.nodes[plan.indexOf.get(blockId) ?? -1];
  if (first === undefined || first.lanes.length === 0) return first;
  const passes = iteration.split('.').map(Number);
  return copyOf(plan, first, (lane) => {
    const { s } = recordOf(execution, lane.index);
    return s === undefined ? 0 : s.indexOf(passes[lane.loops.length] ?? -1);
  });
}

/** The record of a for_each that is open, or is kept for a retry. */
export function recordOf({ o, d, k }: Execution, index: number): Partial<ForEachRecord> {
  return o[index] ?? k?.[index] ?? d[index]?.[3] ?? {};
}

/** The node of a block in certain slots of the blocks around it that have several. */
export function copyOf(
  plan: Plan,
  first: PlanNode,
  slotIn: (lane: PlanNode) => number,
): PlanNode | undefined {
  const above = plan.nodes[first.parent];
  if (above === undefined || first.lanes.length === 0) return first;
  const around = copyOf(plan, above, slotIn);
  if (around === undefined) return undefined;
  const isLane = first.lanes.includes(above.index);
  const list = around.lists[isLane ? slotIn(around) : first.branch];
  return plan.nodes[list?.[first.position] ?? -1];
}

/** The ids of the blocks that have nodes from one index up to another. */
export function blocksBetween({ nodes }: Plan, from: number, to = nodes.length): string[] {
  return nodes.slice(from, to).flatMap(({ id, index, first }) => (index === first ? [id] : []));
}

/** As it stood when the blocks that have ended were open, for the paths and iterations inside of them. */
export function withEnded(execution: Execution): Execution {
  const o: Execution['o'] = { ...execution.k, ...execution.o };
  for (const [index, [, , , kept]] of Object.entries(execution.d)) {
    if (kept !== undefined) o[Number(index)] ??= kept;
  }
  return { ...execution, o };
}
