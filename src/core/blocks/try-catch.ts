/**
 * try_catch (02 §3.4). The catch list runs when the try list failed, and decides the result; the
 * finally list always runs, also when the block is cut off, and only its own failure changes the
 * result. What the catch list may look at is context.data._error.
 */

import type { Evaluation } from '../evaluation.js';
import {
  CANCELLED,
  CATCH_LIST,
  COMPLETED,
  type DoneCode,
  FAILED,
  FINALLY_LIST,
  TRY_LIST,
  type TryCatchRecord,
} from '../execution.js';
import type { TryCatchNode } from '../plan-nodes.js';
import type { BlockKind } from './kind.js';
import { afterChild, startAt } from './list.js';

export const tryCatch: BlockKind<TryCatchNode, TryCatchRecord> = {
  isKept: false,
  enter(run, node) {
    const record: TryCatchRecord = { b: run.offset, p: TRY_LIST, f: COMPLETED };
    run.open(node, record);
    if (!startAt(run, node.lists[TRY_LIST]!, 0)) startFinally(run, node, record, COMPLETED);
  },
  again() {},
  childDone(run, node, record, child, code) {
    const result = afterChild(run, node.lists[record.p]!, child, code);
    if (result === 'open') return;
    if (record.p === FINALLY_LIST) run.finish(node, result === FAILED ? FAILED : resultOf(record));
    else if (record.p === CATCH_LIST || result !== FAILED) startFinally(run, node, record, result);
    else startCatch(run, node, record, child.id);
  },
  runsList: (record, branch) => record.p === branch,
};

function startCatch(
  run: Evaluation,
  node: TryCatchNode,
  record: TryCatchRecord,
  failedBlock: string,
): void {
  const error = { failed_blocks: [failedBlock], source: 'try_catch', block_id: node.id };
  run.mergeData({ _error: error });
  record.p = CATCH_LIST;
  // An empty catch list swallows the failure.
  if (!startAt(run, node.lists[CATCH_LIST]!, 0)) startFinally(run, node, record, COMPLETED);
}

/** Goes on to the finally list; `result` is that of the lists before it. */
export function startFinally(
  run: Evaluation,
  node: TryCatchNode,
  record: TryCatchRecord,
  result: DoneCode,
): void {
  record.p = FINALLY_LIST;
  record.f = result;
  if (!startAt(run, node.lists[FINALLY_LIST]!, 0)) run.finish(node, resultOf(record));
}

/** A block that was cancelled and has cleaned up is complete; what cut it off knows the rest. */
function resultOf(record: TryCatchRecord): DoneCode {
  return record.f === CANCELLED ? COMPLETED : record.f;
}
