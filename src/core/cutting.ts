/** Cuts off open blocks: the losers of a race, or all blocks in a cancel or stop, except work that their kinds protect. */

import { CANCELLED, FAILED, type OpenRecord, type StepRecord } from '../../schema/execution.js';
import type { Failure } from '../../schema/failure.js';
import type { Evaluation } from './evaluation.js';
import type { NodePlace } from './plan-nodes.js';
import type { Withdrawal } from './progress.js';

export type CutBy = 'signal' | 'race';

/** Cuts off an open node. Returns whether protected work continues; its end notifies the parent. */
export function cut(run: Evaluation, node: NodePlace, by: CutBy): boolean {
  const record = run.execution.o[node.index]!;
  // Already cut off, and open only because its clean-up failed.
  if (record.z === 1 || record.j !== undefined) return false;
  return node.kind.cut(run, node, record, by);
}

/** Keeps a node open for a retry, which repeats its failed clean-up. */
export function keepOpen(
  run: Evaluation,
  node: NodePlace,
  record: OpenRecord,
  cause: Failure | undefined = record.y,
): false {
  record.z = 1;
  run.execution.a ??= { f: cause ?? run.unrecorded(node) };
  return false;
}

/** Ends a node without protected work. It stays open if a retry has to repeat clean-up inside. */
export function endCut(run: Evaluation, node: NodePlace, record: OpenRecord): false {
  reopenOwed(run, node, record);
  if (run.owesInside(node)) {
    delete record.d;
    record.j = CANCELLED;
  } else run.close(node, CANCELLED);
  return false;
}

/** Reopens blocks whose clean-up failed before the node was cut off: otherwise the failure would not be reported. */
export function reopenOwed(run: Evaluation, node: NodePlace, record: OpenRecord): boolean {
  let hasOwed = false;
  for (const [branch, list] of node.lists.entries()) {
    if (node.kind.handlesFailure(record, branch)) continue;
    for (const index of list) {
      if (reopenDone(run, run.plan.nodes[index]!)) hasOwed = true;
    }
  }
  return hasOwed;
}

/** Reopens an ended block whose clean-up failed, or in which that of another block did. */
export function reopenDone(run: Evaluation, node: NodePlace): boolean {
  const { execution } = run;
  const [code, began = 0, , kept] = execution.d[node.index] ?? [];
  if (code !== FAILED || node.kind.isLeaf) return false;
  const { x: _x, d: _d, o: _o, ...record } = kept ?? { b: began };
  const isOwn = kept !== undefined && node.kind.hasNotCleanedUp(run, node, kept);
  if (!isOwn && !reopenOwed(run, node, record)) return false;
  if (isOwn) keepOpen(run, node, record);
  else record.j = FAILED;
  delete execution.d[node.index];
  execution.o[node.index] = record;
  return true;
}

/** The default of `BlockKind.cut`: the block ends unless it contains protected work. */
export function cutOff(run: Evaluation, node: NodePlace, record: OpenRecord, by: CutBy): boolean {
  node.kind.withdraw(run, node, record);
  return cutInside(run, node, record, by) || endCut(run, node, record);
}

/** Cuts off all open children. Returns whether protected work continues; its end calls `childCut`. */
export function cutInside(run: Evaluation, node: NodePlace, record: OpenRecord, by: CutBy) {
  let isProtected = false;
  for (const index of node.lists.flat()) {
    if (run.execution.o[index] === undefined) continue;
    if (cut(run, run.plan.nodes[index]!, by)) isProtected = true;
  }
  if (isProtected) record.x = 1;
  return isProtected;
}

/** Whether the node has timed out, or an enclosing block was cut off or has continued without it. */
export function isBeingCut(run: Evaluation, node: NodePlace, record: OpenRecord): boolean {
  const { execution, plan } = run;
  if (record.o === 1) return true;
  for (let { parent, branch } = node; parent >= 0; { parent, branch } = plan.nodes[parent]!) {
    const above = execution.o[parent]!;
    const { kind } = plan.nodes[parent]!;
    if (above.x === 1 || above.j !== undefined || !kind.runsList(above, branch)) return true;
    // The enclosing block handles the failure.
    if (kind.cleansUp(branch) || kind.runsOwed(above, branch)) return false;
  }
  return execution.x === 1;
}

/** Whether a block inside is running. Failed clean-up that waits for a retry does not count. */
export function hasOpenInside({ execution }: Evaluation, { lists }: NodePlace): boolean {
  return lists.flat().some((index) => {
    const record = execution.o[index];
    return record !== undefined && record.z === undefined && record.j === undefined;
  });
}

/** Withdraws a try. A try that was dispatched in this turn is dropped. */
export function withdraw(
  run: Evaluation,
  node: NodePlace,
  record: StepRecord,
  reason: Withdrawal['reason'] = 'cancelled',
): void {
  run.endEffect(node, record, 'lost');
  if (record.p !== 'run' && record.p !== 'task') return;
  const { dispatches, withdrawals } = run.progress;
  const step = run.tryOf(node, record.a);
  const planned = dispatches.findLastIndex((dispatch) => dispatch.node === node.index);
  const dispatch = dispatches[planned];
  const isPlanned = dispatch?.iteration === step.iteration && dispatch.attempt === step.attempt;
  if (isPlanned) dispatches.splice(planned, 1);
  else withdrawals.push({ ...step, blockId: node.id, external: record.p === 'task', reason });
}

/** Cancels every open node, protected or not, and drops the queue. */
export function cutAll(run: Evaluation): void {
  const open = Object.keys(run.execution.o).map((key) => run.plan.nodes[Number(key)]!);
  // Withdraw all tries first: their iterations are read from the loops that are still open.
  for (const node of open) node.kind.withdraw(run, node, run.execution.o[node.index]!);
  for (const node of open) run.close(node, CANCELLED);
  delete run.execution.a;
  run.dropQueue();
}
