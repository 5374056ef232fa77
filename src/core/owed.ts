/** How blocks have ended, and the failed clean-up that a retry repeats first (docs/reference/blocks.md#money). */

import {
  CANCELLED,
  COMPLETED,
  type DoneCode,
  type Execution,
  FAILED,
  type ForEachRecord,
  type OpenRecord,
  SKIPPED,
} from '../../schema/execution.js';
import { rangeOf, recordOf } from './paths.js';
import type { NodePlace, PlanNode, PlannedExecution } from './plan-nodes.js';

/** A failed or cancelled block ends its list. */
export function isFailure(code: DoneCode | undefined): code is typeof FAILED | typeof CANCELLED {
  return code === FAILED || code === CANCELLED;
}

/** Whether the node has completed or was skipped: a retry steps over it. */
export function isDone({ d }: Pick<Execution, 'd'>, index: number): boolean {
  const code = d[index]?.[0];
  return code === COMPLETED || code === SKIPPED;
}

export function isListDone({ execution }: PlannedExecution, list: readonly number[]): boolean {
  return list.every((index) => isDone(execution, index));
}

/**
 * Whether a retry that continues in the block would do nothing but fail by `fail` again, at any depth: it has failed on
 * purpose, and completed whatever else it began. What a nested try_catch passes on has to be such a failure, too. A saga
 * has undone what it did.
 *
 * @param isReached the block was reached, so that its `when` was true
 */
export function onlyFailsAgain(run: PlannedExecution, index: number, isReached: boolean): boolean {
  const node = run.plan.nodes[index]!;
  const { kind } = node;
  if (node.type === 'saga' || (node.when !== undefined && !isReached)) return false;
  if (kind.isLeaf) return node.type === 'step' && node.handler === 'fail';
  let fails = false;
  for (const [branch, list] of listsLeft(run, node)) {
    const next = list.find((inner) => !isDone(run.execution, inner));
    if (next === undefined) continue;
    if (kind.cleansUp(branch)) return false;
    if (onlyFailsAgain(run, next, isReached)) fails = true;
    else if (node.type !== 'race' || !isIdle(run.plan.nodes[next]!)) return false;
  }
  return fails;
}

/** The lists of a failed block in which a retry may continue, by their numbers. */
function listsLeft({ execution }: PlannedExecution, { index, kind, lists }: NodePlace) {
  const record = recordOf(execution, index) as OpenRecord & Partial<ForEachRecord>;
  return [...lists.entries()].filter(([branch]) => {
    const isChosen = kind.order !== 'one' || kind.runsList(record, branch);
    return isChosen && (record.s?.[branch] ?? 0) >= 0;
  });
}

/** Whether a lost race has cut off nothing but a wait. */
const isIdle = (node: PlanNode): boolean => node.kind.isLeaf && !actsOutside(node);

/** Whether the block itself has effects outside of the instance, or asks a person. */
export function actsOutside(node: PlanNode): boolean {
  if (node.type === 'sub_sequence') return true;
  if (node.type !== 'step') return false;
  return node.mode === 'external' || node.mode === 'in_process' || node.gate !== undefined;
}

/**
 * Whether a block in the list, at any depth, has failed other than on purpose, and no list around it handles the
 * failure. What fails in lists that clean up is owed by their own blocks.
 */
export function hasFailedIn(run: PlannedExecution, list: readonly number[]): boolean {
  const { plan, execution } = run;
  return list.some((index) => {
    const [code, , , kept] = execution.d[index] ?? [];
    const record = execution.o[index] ?? kept;
    if (code === FAILED) return !onlyFailsAgain(run, index, true);
    // It has failed, or timed out, and only waits for what is owed inside.
    if (record?.j !== undefined && (record.j === FAILED || record.o === 1)) return true;
    if (isDone(execution, index)) return false;
    const { kind, lists } = plan.nodes[index]!;
    return lists.some((inner, branch) => {
      const isHandled = record !== undefined && kind.handlesFailure(record, branch);
      return !isHandled && !kind.cleansUp(branch) && hasFailedIn(run, inner);
    });
  });
}

/** Whether a retry of the failed instance has something to clean up. */
export function owesCleanUp({ plan, execution }: PlannedExecution): boolean {
  if (execution.a !== undefined || execution.j?.f !== undefined) return true;
  return plan.roots.some((root) => owesWithin({ plan, execution }, plan.nodes[root]!));
}

/** Whether a retry has clean-up to repeat in the block, at any depth. Completed blocks have none. */
export function owesWithin(run: PlannedExecution, node: NodePlace): boolean {
  const { plan, execution } = run;
  if (isDone(execution, node.index)) return false;
  const kept = execution.d[node.index]?.[3] ?? execution.k?.[node.index];
  if (kept !== undefined && node.kind.owes(run, node, kept)) return true;
  return node.lists.some((list) => list.some((index) => owesWithin(run, plan.nodes[index]!)));
}

/** Whether a child in the list, at any depth, has failed clean-up to repeat. */
export function owesInChildren(run: PlannedExecution, list: readonly number[]): boolean {
  const { plan, execution } = run;
  return plan.nodes.slice(...rangeOf(plan, list)).some((node) => {
    const kept = execution.d[node.index]?.[3] ?? execution.k?.[node.index];
    return kept !== undefined && node.kind.isLeaf && node.kind.owes(run, node, kept);
  });
}

/** Whether only clean-up runs in the enclosing list. Lists that clean up or see an error run as a whole. */
export function isCleanUpOnly({ plan, execution }: PlannedExecution, node: NodePlace): boolean {
  for (let { parent, branch } = node; parent >= 0; { parent, branch } = plan.nodes[parent]!) {
    const { kind } = plan.nodes[parent]!;
    if (kind.seesError(branch)) return false;
    const record = execution.o[parent];
    if (record !== undefined && kind.onlyCleansUp(record, branch)) return true;
  }
  return false;
}

/** Whether the leaf is cancelled without running, since only clean-up runs in its list. */
export function isOutsideCleanUp(run: PlannedExecution, node: NodePlace): boolean {
  const { k } = run.execution;
  // Fast path: set only by a retry.
  if (k === undefined || !node.kind.isLeaf || !isCleanUpOnly(run, node)) return false;
  const kept = k[node.index];
  return kept === undefined || !node.kind.owes(run, node, kept);
}
