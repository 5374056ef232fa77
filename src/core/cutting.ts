/**
 * Cutting off what is open: the losers of a race, and everything when the instance is cancelled or
 * stopped. What is protected (docs/reference/blocks.md) its kind knows; it goes on in blocks that
 * start nothing else.
 */

import { CANCELLED, FAILED, type OpenRecord, type StepRecord } from '../../schema/execution.js';
import type { Evaluation } from './evaluation.js';
import type { NodePlace } from './plan-nodes.js';
import type { Withdrawal } from './progress.js';

export type CutBy = 'signal' | 'race';

/**
 * Cuts off an open node. Returns whether protected work goes on in it. The parent is not told now,
 * but when that work has ended.
 */
export function cut(run: Evaluation, node: NodePlace, by: CutBy): boolean {
  const record = run.execution.o[node.index]!;
  // What could not be cleaned up has been cut off before, and stays open for a retry.
  if (record.z === 1 || record.j !== undefined) return false;
  return node.kind.cut(run, node, record, by);
}

/** Nothing goes on in the node. It ends, unless something inside of it is still to be cleaned up. */
export function endCut(run: Evaluation, node: NodePlace, record: OpenRecord): false {
  reopenOwed(run, node, record);
  if (run.owesInside(node)) {
    delete record.d;
    record.j = CANCELLED;
  } else run.close(node, CANCELLED);
  return false;
}

/**
 * What had failed to clean up in the node before anybody cut it off, while other branches or items went on: nobody is
 * told of that failure any more, so that it is open for a retry from now on.
 */
export function reopenOwed(run: Evaluation, node: NodePlace, record: OpenRecord): boolean {
  let hasOwed = false;
  for (const [branch, list] of node.lists.entries()) {
    if (node.kind.forgives(record, branch)) continue;
    for (const index of list) {
      if (reopenDone(run, run.plan.nodes[index]!)) hasOwed = true;
    }
  }
  return hasOwed;
}

/** The same when the node ends without completing, and something around it has gone on. */
export function takeOverOwed(run: Evaluation, node: NodePlace, record: OpenRecord): void {
  if (isBeingCut(run, node, record)) reopenOwed(run, node, record);
}

function reopenDone(run: Evaluation, node: NodePlace): boolean {
  const { execution } = run;
  const [code, began = 0, , kept] = execution.d[node.index] ?? [];
  if (code !== FAILED || node.kind.isLeaf) return false;
  const { x: _x, d: _d, o: _o, ...record } = kept ?? { b: began };
  const isOwn = kept !== undefined && node.kind.hasNotCleanedUp(run, node, kept);
  if (!isOwn && !reopenOwed(run, node, record)) return false;
  if (isOwn) {
    record.z = 1;
    execution.a ??= { f: record.y ?? run.unrecorded(node) };
  } else record.j = FAILED;
  delete execution.d[node.index];
  execution.o[node.index] = record;
  return true;
}

/** What most kinds do to be cut off: they end, unless something inside is protected. */
export function cutOff(run: Evaluation, node: NodePlace, record: OpenRecord, by: CutBy): boolean {
  node.kind.withdraw(run, node, record);
  return cutInside(run, node, record, by) || endCut(run, node, record);
}

/**
 * Cuts off everything open below. Returns whether protected work goes on there; the node is then one
 * that is being cut off, and each end of such work comes to `childCut` of its kind.
 */
export function cutInside(
  run: Evaluation,
  node: NodePlace,
  record: OpenRecord,
  by: CutBy,
): boolean {
  let isProtected = false;
  for (const list of node.lists) {
    for (const index of list) {
      if (run.execution.o[index] === undefined) continue;
      if (cut(run, run.plan.nodes[index]!, by)) isProtected = true;
    }
  }
  if (isProtected) record.x = 1;
  return isProtected;
}

/**
 * Whether the open node ends because its own time is over, or something around it was cut off. The signal does not
 * cut off what is in a scope, but nobody would see either what fails there.
 */
export function isBeingCut(run: Evaluation, node: NodePlace, record: OpenRecord): boolean {
  const { execution, plan } = run;
  if (record.o === 1) return true;
  for (let { parent, branch } = node; parent >= 0; { parent, branch } = plan.nodes[parent]!) {
    const above = execution.o[parent]!;
    const { kind } = plan.nodes[parent]!;
    // Or the block around it has gone on without it.
    if (above.x === 1 || above.j !== undefined || !kind.runsList(above, branch)) return true;
    // Whose failure that block sees to.
    if (kind.cleansUp(branch)) return false;
  }
  return execution.x === 1;
}

/** Whether something goes on in the block; what could not be cleaned up does not. */
export function hasOpenInside({ execution }: Evaluation, { lists }: NodePlace): boolean {
  return lists.some((list) =>
    list.some((index) => {
      const record = execution.o[index];
      return record !== undefined && record.z === undefined && record.j === undefined;
    }),
  );
}

/** Takes a try back from whoever is at it. One that was dispatched in this turn never happens. */
export function withdraw(
  run: Evaluation,
  node: NodePlace,
  record: StepRecord,
  reason: Withdrawal['reason'],
): void {
  run.endEffect(node, record, 'lost');
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
  for (const node of open) node.kind.withdraw(run, node, run.execution.o[node.index]!);
  for (const node of open) run.close(node, CANCELLED);
  delete run.execution.a;
  run.dropQueue();
}
