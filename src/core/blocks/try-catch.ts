/**
 * try_catch (docs/reference/blocks.md). The catch list runs when the try list failed, and decides
 * the result; the finally list always runs, also when the block is cut off, and only its own
 * failure changes the result. What the catch list may look at is context.data._error.
 */

import type { TryCatchBlock } from '../../../schema/blocks.js';
import { cutInside } from '../cutting.js';
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
import type { NodePlace } from '../plan-nodes.js';
import { composite } from './kind.js';
import { afterChild, startAt } from './list.js';

export interface TryCatchNode extends NodePlace {
  readonly type: 'try_catch';
}

export const tryCatch = composite<TryCatchBlock, TryCatchNode, TryCatchRecord>({
  compile: () => ({}),
  lists: (block) => [block.try_block, block.catch_block, block.finally_block ?? []],
  enter(run, node) {
    const record: TryCatchRecord = { b: run.offset, p: TRY_LIST, f: COMPLETED };
    run.open(node, record);
    if (!startAt(run, node.lists[TRY_LIST]!, 0)) startFinally(run, node, record, COMPLETED);
  },
  childDone(run, node, record, child, code) {
    const result = afterChild(run, node.lists[record.p]!, child, code);
    if (result === 'open') return;
    if (record.p === FINALLY_LIST) {
      if (result === FAILED) run.finish(node, FAILED);
      else end(run, node, record, ended(run, record));
    } else if (record.p === CATCH_LIST || result !== FAILED)
      startFinally(run, node, record, result);
    else startCatch(run, node, record, child);
  },
  runsList: (record, branch) => record.p === branch,
  /** The finally list is protected, also while it has yet to run. */
  cut(run, node, record, by) {
    // Its time is of no interest any more.
    delete record.d;
    if (record.p === FINALLY_LIST || cutInside(run, node, record, by)) return true;
    if (!startAt(run, node.lists[FINALLY_LIST]!, 0)) {
      run.close(node, CANCELLED);
      return false;
    }
    record.p = FINALLY_LIST;
    record.f = CANCELLED;
    delete record.x;
    return true;
  },
  childCut(run, node, record) {
    delete record.x;
    startFinally(run, node, record, CANCELLED);
  },
  awaits: (record, branch) => (record.x === 1 ? branch === FINALLY_LIST : branch >= record.p),
});

function startCatch(
  run: Evaluation,
  node: TryCatchNode,
  record: TryCatchRecord,
  failed: NodePlace,
): void {
  const { block_id, ...why } = run.cause ?? run.unrecorded(failed);
  const error = { failed_blocks: [failed.id], source: 'try_catch', block_id: node.id };
  run.mergeOwn(node, { _error: { ...error, failed_block_id: block_id, ...why } });
  record.p = CATCH_LIST;
  // An empty catch list swallows the failure.
  if (!startAt(run, node.lists[CATCH_LIST]!, 0)) startFinally(run, node, record, COMPLETED);
}

/** Goes on to the finally list; `result` is that of the lists before it. */
function startFinally(
  run: Evaluation,
  node: TryCatchNode,
  record: TryCatchRecord,
  result: DoneCode,
): void {
  record.p = FINALLY_LIST;
  record.f = result;
  if (result === FAILED && run.cause !== undefined) record.y = run.cause;
  if (!startAt(run, node.lists[FINALLY_LIST]!, 0)) end(run, node, record, result);
}

function end(run: Evaluation, node: NodePlace, record: TryCatchRecord, code: DoneCode): void {
  if (code === FAILED) run.fail(node, record.y);
  else run.finish(node, code);
}

/**
 * How the block ended when its finally list went well. One that was cancelled with its instance and
 * has cleaned up is complete; a loser, or one whose instance timed out, is cancelled, and begins again in
 * a retry.
 */
function ended({ execution: { x, y } }: Evaluation, { f }: TryCatchRecord): DoneCode {
  return f === CANCELLED && x === 1 && y === undefined ? COMPLETED : f;
}
