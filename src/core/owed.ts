/**
 * What a retry of a failed instance has to clean up before anything else: compensations and finally lists that
 * failed, in blocks and in children (docs/reference/blocks.md#money).
 */

import { COMPLETED, type Execution, SKIPPED } from '../../schema/execution.js';
import type { NodePlace, Plan } from './plan-nodes.js';

interface Life {
  readonly plan: Plan;
  readonly execution: Execution;
}

/** Whether a retry of the failed instance has something to clean up. */
export function owesCleanUp({ plan, execution }: Life): boolean {
  if (execution.a !== undefined || execution.j?.f !== undefined) return true;
  return plan.roots.some((root) => owesWithin({ plan, execution }, plan.nodes[root]!));
}

/** The same of a block, at any depth; what completed in it owes nothing. */
export function owesWithin(life: Life, node: NodePlace): boolean {
  const { plan, execution } = life;
  const [code, , , done] = execution.d[node.index] ?? [];
  if (code === COMPLETED || code === SKIPPED) return false;
  const kept = done ?? execution.k?.[node.index];
  if (kept !== undefined && node.kind.owes(life, node, kept)) return true;
  return node.lists.some((list) => list.some((index) => owesWithin(life, plan.nodes[index]!)));
}

/** Of a list that a retry may go on with: whether a child in it, at any depth, is to clean up. */
export function hasOwingChild(life: Life, list: readonly number[]): boolean {
  const { plan, execution } = life;
  const last = list.at(-1);
  if (last === undefined) return false;
  return plan.nodes.slice(list[0], plan.nodes[last]!.end).some((node) => {
    const kept = execution.d[node.index]?.[3] ?? execution.k?.[node.index];
    return node.kind.isLeaf && kept !== undefined && node.kind.owes(life, node, kept);
  });
}

/**
 * Whether the block stands in a list of which only what is to be cleaned up runs. Lists that clean up, or see to
 * an error, run whole.
 */
export function isCleanedUp({ plan, execution }: Life, node: NodePlace): boolean {
  for (let { parent, branch } = node; parent >= 0; { parent, branch } = plan.nodes[parent]!) {
    const { kind } = plan.nodes[parent]!;
    if (kind.seesError(branch)) return false;
    const record = execution.o[parent];
    if (record !== undefined && kind.onlyCleansUp(record, branch)) return true;
  }
  return false;
}

/** A leaf beside what is to be cleaned up, which ends there without having begun. */
export function isLeftAlone(life: Life, node: NodePlace): boolean {
  const { k } = life.execution;
  // Nothing of that is there before the first retry.
  if (k === undefined || !node.kind.isLeaf || !isCleanedUp(life, node)) return false;
  const kept = k[node.index];
  return kept === undefined || !node.kind.owes(life, node, kept);
}
