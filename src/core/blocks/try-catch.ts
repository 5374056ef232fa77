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
import { cutInside, endCut, isBeingCut } from '../cutting.js';
import type { Evaluation } from '../evaluation.js';
import { isDone, owesInList } from '../owed.js';
import type { NodePlace, PlannedExecution } from '../plan-nodes.js';
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
  owes: (run, node, { m, z }) => z === 1 || (m !== undefined && owesCatch(run, node)),
  hasNotCleanedUp: (_run, _node, { z }) => z === 1,
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
    else if (result === FAILED && !throwsAgain(child) && isBeingCut(run, node, record)) {
      run.noteCleanupFailure(node, record);
    } else startFinally(run, node, record, result);
  },
  runsList: (record, branch) => record.p === branch,
  /** The finally list is protected, even if it has yet to run. */
  cut(run, node, record, by) {
    // A finally list does not time out with its block.
    delete record.d;
    if (record.p === FINALLY_LIST || cutInside(run, node, record, by)) return true;
    if (!startList(run, node, FINALLY_LIST)) return endCut(run, node, record);
    record.p = FINALLY_LIST;
    record.f = CANCELLED;
    delete record.x;
    return true;
  },
  childCut(run, node, record) {
    delete record.x;
    // Steps with `cancellable: false` continued in the catch list, and one has failed.
    if (record.p === CATCH_LIST && hasStepFailed(run, node, CATCH_LIST) && owesCatch(run, node)) {
      run.noteCleanupFailure(node, record);
    } else startFinally(run, node, record, CANCELLED);
  },
  cleanUpAgain(run, node, { p }) {
    reopenList(run, node, p);
    startList(run, node, p);
  },
  endLate(run, node, record, code) {
    // With `z`, the block's own finally list has failed clean-up, too.
    if (record.z !== 1) run.end(node, code, record.y);
  },
  awaits: (record, branch) => (record.x === 1 ? branch === FINALLY_LIST : branch >= record.p),
});

function hasStepFailed({ execution, plan }: Evaluation, node: NodePlace, list: number): boolean {
  return node.lists[list]!.some(
    (index) => execution.d[index]?.[0] === FAILED && plan.nodes[index]!.kind.isLeaf,
  );
}

/** Whether a retry has more to do in the catch list than to fail again. */
function owesCatch({ execution, plan }: PlannedExecution, node: TryCatchNode): boolean {
  const next = node.lists[CATCH_LIST]!.find((index) => !isDone(execution, index));
  return next !== undefined && !throwsAgain(plan.nodes[next]!);
}

/** A catch list that has reached `fail` is done, and only passes on the failure. */
const throwsAgain = (node: NodePlace) => (node as { readonly handler?: string }).handler === 'fail';

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
  const isOwed = owesInList(run, node.lists[TRY_LIST]!, 'children');
  const begin = isOwed ? TRY_LIST : CATCH_LIST;
  if (p !== FINALLY_LIST) return { ...newRecord(run), p: m === undefined ? p : begin, ...caught };
  const isCleanUp = f === COMPLETED || (f === FAILED && z === 1);
  if (isCleanUp) return { ...newRecord(run), p, f, ...caught, ...(y && { y }) };
  repeatList(run, node, FINALLY_LIST);
  return { ...newRecord(run), p: m === undefined ? TRY_LIST : begin, ...caught };
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
  if (result !== FAILED) run.end(node, ended(run, record), record.y);
  else if (isBeingCut(run, node, record)) run.noteCleanupFailure(node, record);
  else {
    record.z = 1;
    run.finish(node, FAILED);
  }
}

/** A block that was cancelled with its instance and has cleaned up is complete; any other ends as its lists decided. */
function ended({ execution: { x, y } }: Evaluation, { f }: TryCatchRecord): DoneCode {
  return f === CANCELLED && x === 1 && y === undefined ? COMPLETED : f;
}
