/** Paths and iterations of blocks in a running instance, and the nodes that they name. */

import type { Execution, ForEachRecord, OpenRecord } from '../../schema/execution.js';
import type { NodePlace, Plan, PlanNode } from './plan-nodes.js';

/** The current iteration of a loop, or the item in a slot of a for_each, counted from 0. */
export function iterationAt(record: OpenRecord | undefined, slot: number): number {
  const { i, s } = (record ?? {}) as Partial<ForEachRecord>;
  return (s === undefined ? i : s[slot]) ?? 0;
}

/** The ids of the blocks around the node and its own, with the current iterations, such as `orders[2]/charge`. */
export function pathOf({ nodes }: Plan, { o }: Execution, node: NodePlace): string {
  let path = node.id;
  let below = node;
  for (let around = nodes[node.parent]; around !== undefined; around = nodes[around.parent]) {
    const isLoop = around.kind.repeats !== 'never';
    const iteration = isLoop ? `[${iterationAt(o[around.index], below.branch)}]` : '';
    path = `${around.id}${iteration}/${path}`;
    below = around;
  }
  return path;
}

/** The counters of the loops around the node, such as `2.0`; '' outside of loops. */
export function iterationOf({ o }: Execution, { loops, slots }: NodePlace): string {
  if (loops.length === 0) return '';
  return loops.map((index, at) => iterationAt(o[index], slots[at]!)).join('.');
}

/** The node of a block in an iteration; undefined when there is no such block, or the iteration is not running. */
export function nodeAt(plan: Plan, execution: Execution, blockId: string, iteration: string) {
  const first = plan.nodes[plan.indexOf.get(blockId) ?? -1];
  if (first === undefined || first.concurrentLoops.length === 0) return first;
  const iterations = iteration.split('.').map(Number);
  return copyOf(plan, first, (loop) => {
    const { s } = recordOf(execution, loop.index);
    return s === undefined ? 0 : s.indexOf(iterations[loop.loops.length] ?? -1);
  });
}

/** The record of a for_each that is open, or is kept for a retry. */
export function recordOf({ o, d, k }: Execution, index: number): Partial<ForEachRecord> {
  return o[index] ?? k?.[index] ?? d[index]?.[3] ?? {};
}

/** The copy of a node in certain slots of the concurrent loops around it. */
export function copyOf(
  plan: Plan,
  first: PlanNode,
  slotIn: (loop: PlanNode) => number,
): PlanNode | undefined {
  const above = plan.nodes[first.parent];
  if (above === undefined || first.concurrentLoops.length === 0) return first;
  const around = copyOf(plan, above, slotIn);
  if (around === undefined) return undefined;
  const isConcurrent = first.concurrentLoops.includes(above.index);
  const list = around.lists[isConcurrent ? slotIn(around) : first.branch];
  return plan.nodes[list?.[first.position] ?? -1];
}

/** The range of node indexes of a list, with the blocks inside. */
export function rangeOf({ nodes }: Plan, list: readonly number[]): readonly [number, number] {
  const last = list.at(-1);
  return last === undefined ? [0, 0] : [list[0]!, nodes[last]!.end];
}

/** The ids of the blocks whose nodes are in a range of indexes. */
export function blocksBetween({ nodes }: Plan, from: number, to = nodes.length): string[] {
  return nodes.slice(from, to).flatMap(({ id, index, first }) => (index === first ? [id] : []));
}

/** The execution with ended blocks still open, for the paths and iterations inside of them. */
export function withEnded(execution: Execution): Execution {
  const o: Execution['o'] = { ...execution.k, ...execution.o };
  for (const [index, [, , , kept]] of Object.entries(execution.d)) {
    if (kept !== undefined) o[Number(index)] ??= kept;
  }
  return { ...execution, o };
}
