/**
 * Cutting off what is open: the losers of a race, and everything when the instance is cancelled or
 * stopped. Protected work (02 §13) goes on in blocks that start nothing else: a finally list, also
 * one that has yet to run, and under the signal `cancel` a step that is not cancellable.
 */

import { startAt } from './blocks/list.js';
import { startFinally } from './blocks/try-catch.js';
import type { Evaluation } from './evaluation.js';
import {
  type BranchesRecord,
  CANCELLED,
  FINALLY_LIST,
  type OpenRecord,
  type StepRecord,
  type TryCatchRecord,
} from './execution.js';
import type { PlanNode, StepNode } from './plan-nodes.js';
import type { Withdrawal } from './progress.js';

export type CutBy = 'signal' | 'race';

/** Cuts off everything open below; returns how many children go on with protected work. */
export function cutChildren(run: Evaluation, node: PlanNode, by: CutBy): number {
  let left = 0;
  for (const list of node.lists) {
    for (const index of list) {
      if (run.execution.o[index] === undefined) continue;
      if (cut(run, run.plan.nodes[index]!, by)) left += 1;
    }
  }
  return left;
}

/**
 * Cuts off an open node. Returns whether protected work goes on in it. The parent is not told now,
 * but when that work has ended (`childCut`).
 */
export function cut(run: Evaluation, node: PlanNode, by: CutBy): boolean {
  const record = run.execution.o[node.index]!;
  if (node.type === 'step') {
    if (by === 'signal' && !node.isCancellable) return true;
    withdraw(run, node, record as StepRecord, 'cancelled');
    run.close(node, CANCELLED);
    return false;
  }
  if (node.type === 'try_catch' && (record as TryCatchRecord).p === FINALLY_LIST) return true;
  const left = cutChildren(run, node, by);
  if (left > 0) {
    record.x = 1;
    if (node.type === 'parallel' || node.type === 'race') (record as BranchesRecord).l = left;
    return true;
  }
  if (node.type === 'try_catch' && startAt(run, node.lists[FINALLY_LIST]!, 0)) {
    (record as TryCatchRecord).p = FINALLY_LIST;
    (record as TryCatchRecord).f = CANCELLED;
    delete record.x;
    return true;
  }
  run.close(node, CANCELLED);
  return false;
}

/** Protected work in a block that is being cut off has ended. */
export function childCut(run: Evaluation, node: PlanNode, record: OpenRecord): void {
  if (node.type === 'try_catch') {
    delete record.x;
    startFinally(run, node, record as TryCatchRecord, CANCELLED);
    return;
  }
  if (node.type === 'parallel' || node.type === 'race') {
    const branches = record as BranchesRecord;
    branches.l -= 1;
    if (branches.l === 0) run.finish(node, branches.r ?? CANCELLED);
    return;
  }
  run.finish(node, CANCELLED);
}

/** Takes a try back from whoever is at it. One that was dispatched in this turn never happens. */
export function withdraw(
  run: Evaluation,
  node: StepNode,
  record: StepRecord,
  reason: Withdrawal['reason'],
): void {
  if (record.p !== 'run' && record.p !== 'task') return;
  const step = run.tryOf(node, record.a);
  const planned = run.dispatches.findLastIndex((dispatch) => dispatch.node === node.index);
  const dispatch = run.dispatches[planned];
  if (dispatch?.iteration === step.iteration && dispatch.attempt === step.attempt) {
    run.dispatches.splice(planned, 1);
    return;
  }
  run.withdrawals.push({ ...step, blockId: node.id, external: record.p === 'task', reason });
}

/** Ends every open node as cancelled, protected or not, and forgets what was queued. */
export function cutAll(run: Evaluation): void {
  const open = Object.keys(run.execution.o).map((key) => run.plan.nodes[Number(key)]!);
  // All tries first: which iteration they are in is read off the loops that are still open.
  for (const node of open) {
    if (node.type !== 'step') continue;
    withdraw(run, node, run.execution.o[node.index] as StepRecord, 'cancelled');
  }
  for (const node of open) run.close(node, CANCELLED);
  run.dropQueue();
}
