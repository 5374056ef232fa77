/**
 * try_catch (docs/reference/blocks.md). The catch list runs when the try list failed, and decides the result; both it
 * and the finally list see the error as data._error. The finally list always runs, even when the block is cut off, and
 * only its own failure changes the result. A retry of the instance continues in the list that failed and never runs a
 * try list again whose catch list has begun.
 */

import type { TryCatchBlock } from '../../../schema/blocks.js';
import {
  CANCELLED,
  CATCH_LIST,
  COMPLETED,
  type DoneCode,
  FAILED,
  FINALLY_LIST,
  TRY_LIST,
  type TryCatchRecord,
} from '../../../schema/execution.js';
import { cutInside, endCut, isBeingCut, keepOpen } from '../cutting.js';
import type { Evaluation } from '../evaluation.js';
import { hasFailedIn, isDone, isListDone, onlyFailsAgain, owesInChildren } from '../owed.js';
import { rangeOf } from '../paths.js';
import type { NodePlace, Plan, PlannedExecution } from '../plan-nodes.js';
import { reopenList, repeatList } from '../runs-again.js';
import { catchError } from '../scopes.js';
import { composite } from './kind.js';
import { afterChild, startList } from './list.js';

export type TryCatchNode = NodePlace & { readonly type: 'try_catch' };

export const tryCatch = composite<TryCatchBlock, TryCatchNode, TryCatchRecord>({
  isKept: true,
  compile: () => ({}),
  lists: (block) => [block.try_block, block.catch_block, block.finally_block ?? []],
  seesError: (branch) => branch !== TRY_LIST,
  cleansUp: (branch) => branch === FINALLY_LIST,
  handlesFailure: ({ m }, branch) => branch === TRY_LIST && m !== undefined,
  owes: (run, node, kept) => kept.z === 1 || (kept.m !== undefined && owesCatch(run, node, kept)),
  hasNotCleanedUp: (run, node, record) => record.z === 1 || owesFailedCatch(run, node, record),
  runsOwed: (record, branch) => branch === CATCH_LIST && runsOwed(record),
  onlyCleansUp: ({ m }, branch) => branch === TRY_LIST && m !== undefined,
  enter(run, node) {
    const kept = run.takeKept(node) as TryCatchRecord | undefined;
    const record = kept === undefined ? newRecord(run) : resumed(run, node, kept);
    run.open(node, record);
    runList(run, node, record);
  },
  childDone(run, node, record, child, code) {
    if (record.p === TRY_LIST && record.m !== undefined) {
      // A child of the try list has cleaned up; nothing else of that list runs after its catch list has begun.
      record.p = CATCH_LIST;
      runList(run, node, record);
      return;
    }
    const result = afterChild(run, node, child, code);
    if (result === 'open') return;
    if (record.p === FINALLY_LIST) endFinally(run, node, record, result);
    else if (record.p === TRY_LIST && result === FAILED) startCatch(run, node, record, child);
    else if (
      result === FAILED &&
      isBeingCut(run, node, record) &&
      !onlyFailsAgain(run, child.index, true)
    ) {
      run.noteCleanupFailure(node, record);
    } else startFinally(run, node, record, result);
  },
  runsList: (record, branch) => record.p === branch,
  /** The finally list is protected, even if it has yet to run, and so is a catch list that a retry runs again. */
  cut(run, node, record, by) {
    // A finally list does not time out with its block.
    delete record.d;
    if (record.p === FINALLY_LIST || runsOwed(record)) return true;
    if (cutInside(run, node, record, by)) return true;
    if (owesCutCatch(run, node, record)) return keepOpen(run, node, record);
    if (!startList(run, node, FINALLY_LIST)) return endCut(run, node, record);
    record.p = FINALLY_LIST;
    record.f = CANCELLED;
    delete record.x;
    return true;
  },
  childCut(run, node, record) {
    delete record.x;
    if (owesCutCatch(run, node, record)) run.noteCleanupFailure(node, record);
    else startFinally(run, node, record, CANCELLED);
  },
  cleanUpAgain(run, node, record) {
    if (owesFailedCatch(run, node, record) && isListDone(run, node.lists[FINALLY_LIST]!)) {
      repeatList(run, node, FINALLY_LIST);
      record.p = CATCH_LIST;
      delete record.y;
    }
    if (record.p === CATCH_LIST && run.owesInside(node)) {
      // The list runs again once the blocks in it have cleaned up (`endLate`).
      record.z = 1;
      record.j = CANCELLED;
    } else runListAgain(run, node, record);
  },
  endLate(run, node, record, code) {
    if (record.z !== 1) run.end(node, code, record.y);
    else if (record.j !== undefined) {
      delete record.z;
      delete record.j;
      runListAgain(run, node, record);
    }
    // Else the block's own clean-up has failed once more, and waits for a retry.
  },
  awaits: (record, branch) => (record.x === 1 ? branch === FINALLY_LIST : branch >= record.p),
});

/** Whether a catch list that failed before the finally list is owed, although the block is cut off. */
function owesFailedCatch(
  run: PlannedExecution,
  node: TryCatchNode,
  record: TryCatchRecord,
): boolean {
  return hasFailedCatch(record) && owesCatch(run, node, record) && isProtected(run, node);
}

/** The same of a catch list that is cut off after something in it has failed. */
function owesCutCatch(run: PlannedExecution, node: TryCatchNode, { p }: TryCatchRecord): boolean {
  if (p !== CATCH_LIST) return false;
  return hasFailedIn(run, node.lists[CATCH_LIST]!) && isProtected(run, node);
}

/** Whether the signal `cancel` would not cut off a part of the catch list, or does not cut off the whole. */
function isProtected({ plan, execution }: PlannedExecution, node: TryCatchNode): boolean {
  if (execution.x === 1 && isInScope(plan, node)) return true;
  return plan.nodes
    .slice(...rangeOf(plan, node.lists[CATCH_LIST]!))
    .some(
      (inner) =>
        inner.type === 'cancellation_scope' || (inner.type === 'step' && !inner.isCancellable),
    );
}

/** Whether a catch list is run again after its failure, while the block is being cut off. */
const runsOwed = ({ p, f }: TryCatchRecord): boolean => p === CATCH_LIST && f === FAILED;

function isInScope({ nodes }: Plan, { parent }: NodePlace): boolean {
  for (let around = nodes[parent]; around !== undefined; around = nodes[around.parent]) {
    if (around.type === 'cancellation_scope') return true;
  }
  return false;
}

const hasFailedCatch = ({ p, f }: TryCatchRecord) => p === FINALLY_LIST && f === FAILED;

/** Whether a retry has more to do in the catch list than to fail again. */
export function owesCatch(run: PlannedExecution, node: NodePlace, record: TryCatchRecord): boolean {
  const next = node.lists[CATCH_LIST]!.find((index) => !isDone(run.execution, index));
  return next !== undefined && !onlyFailsAgain(run, next, hasFailedCatch(record));
}

function newRecord(run: Evaluation): TryCatchRecord {
  return { b: run.offset, p: TRY_LIST, f: COMPLETED };
}

/**
 * Where a retry continues: in a finally list that failed, or that was stopped after lists without a failure; else in
 * the list that failed or was cut off, after which the finally list runs again. Clean-up in children of the try list
 * comes before the catch list.
 */
function resumed(run: Evaluation, node: TryCatchNode, kept: TryCatchRecord): TryCatchRecord {
  const { p, f, m, y, z } = kept;
  const caught = m === undefined ? {} : { m };
  const isOwed = owesInChildren(run, node.lists[TRY_LIST]!);
  const begin = isOwed ? TRY_LIST : CATCH_LIST;
  if (p !== FINALLY_LIST) return { ...newRecord(run), p: m === undefined ? p : begin, ...caught };
  const hasFailed = z === 1 && !isListDone(run, node.lists[FINALLY_LIST]!);
  const isCleanUp = f === COMPLETED || (f === FAILED && hasFailed);
  if (isCleanUp) return { ...newRecord(run), p, f, ...caught, ...(y && { y }) };
  repeatList(run, node, FINALLY_LIST);
  return { ...newRecord(run), p: m === undefined ? TRY_LIST : begin, ...caught };
}

function runListAgain(run: Evaluation, node: TryCatchNode, record: TryCatchRecord): void {
  if (record.p === CATCH_LIST) record.f = FAILED;
  reopenList(run, node, record.p);
  runList(run, node, record);
}

/** Continues the current list with its first block that is not done. */
function runList(run: Evaluation, node: TryCatchNode, record: TryCatchRecord): void {
  if (startList(run, node, record.p)) return;
  if (record.p === FINALLY_LIST) run.end(node, record.f, record.y);
  else startFinally(run, node, record, COMPLETED);
}

function startCatch(
  run: Evaluation,
  node: TryCatchNode,
  record: TryCatchRecord,
  failed: NodePlace,
): void {
  const { block_id, ...why } = run.cause ?? run.unrecorded(failed);
  const error = { failed_blocks: [failed.id], source: 'try_catch', block_id: node.id };
  catchError(run, record, { ...error, failed_block_id: block_id, ...why });
  record.p = CATCH_LIST;
  runList(run, node, record);
}

/** @param result of the lists before the finally list */
function startFinally(
  run: Evaluation,
  node: TryCatchNode,
  record: TryCatchRecord,
  result: DoneCode,
): void {
  record.p = FINALLY_LIST;
  record.f = result;
  if (result === FAILED && run.cause !== undefined) record.y = run.cause;
  if (!startList(run, node, FINALLY_LIST)) run.end(node, result, record.y);
}

function endFinally(run: Evaluation, node: TryCatchNode, record: TryCatchRecord, result: DoneCode) {
  const isCut = isBeingCut(run, node, record);
  if (result === FAILED && !isCut) {
    record.z = 1;
    run.finish(node, FAILED);
  } else if (result === FAILED) run.noteCleanupFailure(node, record);
  else if (isCut && owesFailedCatch(run, node, record)) {
    run.cause = record.y;
    run.noteCleanupFailure(node, record);
  } else run.end(node, ended(run, node, record), record.y);
}

/**
 * A block that was cancelled with its instance and has cleaned up is complete, except in a catch list, which a retry may
 * run again. Any other block ends as its lists decided.
 */
function ended(run: Evaluation, node: TryCatchNode, { f }: TryCatchRecord): DoneCode {
  const { x, y } = run.execution;
  const isComplete = f === CANCELLED && x === 1 && y === undefined && !isCatching(run, node);
  return isComplete ? COMPLETED : f;
}

/** Whether the innermost list around the node that cleans up, or is undone, is a catch list. */
function isCatching({ plan }: PlannedExecution, node: NodePlace): boolean {
  for (let { parent, branch } = node; parent >= 0; { parent, branch } = plan.nodes[parent]!) {
    const around = plan.nodes[parent]!;
    if (around.type === 'saga' || around.kind.cleansUp(branch)) return false;
    if (around.type === 'try_catch' && branch === CATCH_LIST) return true;
  }
  return false;
}
