/**
 * try_catch (docs/reference/blocks.md). The catch list runs when the try list failed, and decides
 * the result; the finally list always runs, also when the block is cut off, and only its own
 * failure changes the result. The catch list and the finally list see what was caught as data._error.
 * A retry of the instance goes on in the list that failed: no try list runs behind its catch list.
 */

import type { TryCatchBlock } from '../../../schema/blocks.js';
import {
  CANCELLED,
  CATCH_LIST,
  COMPLETED,
  type DoneCode,
  FAILED,
  FINALLY_LIST,
  SKIPPED,
  TRY_LIST,
  type TryCatchRecord,
} from '../../../schema/execution.js';
import { catchError } from '../caught.js';
import { cutInside, endCut, isBeingCut } from '../cutting.js';
import type { Evaluation } from '../evaluation.js';
import { hasOwingChild } from '../owed.js';
import type { NodePlace } from '../plan-nodes.js';
import { reopenList, repeatList } from '../runs-again.js';
import { composite } from './kind.js';
import { afterChild, startAt } from './list.js';

export interface TryCatchNode extends NodePlace {
  readonly type: 'try_catch';
}

export const tryCatch = composite<TryCatchBlock, TryCatchNode, TryCatchRecord>({
  isKept: true,
  compile: () => ({}),
  lists: (block) => [block.try_block, block.catch_block, block.finally_block ?? []],
  seesError: (branch) => branch !== TRY_LIST,
  cleansUp: (branch) => branch === FINALLY_LIST,
  forgives: ({ m }, branch) => branch === TRY_LIST && m !== undefined,
  owes: (run, node, { m, z }) => z === 1 || (m !== undefined && owesCatch(run, node)),
  hasNotCleanedUp: (_run, _node, { z }) => z === 1,
  onlyCleansUp: ({ m }, branch) => branch === TRY_LIST && m !== undefined,
  enter(run, node) {
    const kept = run.takeKept(node) as TryCatchRecord | undefined;
    const record = kept === undefined ? newRecord(run) : resumed(run, node, kept);
    run.open(node, record);
    goOn(run, node, record);
  },
  childDone(run, node, record, child, code) {
    if (record.p === TRY_LIST && record.m !== undefined) {
      // A child of it has cleaned up, and nothing else of it runs behind its catch list.
      record.p = CATCH_LIST;
      goOn(run, node, record);
      return;
    }
    const result = afterChild(run, node.lists[record.p]!, child, code);
    if (result === 'open') return;
    if (record.p === FINALLY_LIST) endFinally(run, node, record, result);
    else if (record.p === TRY_LIST && result === FAILED) startCatch(run, node, record, child);
    else if (result === FAILED && !throwsAgain(child) && isBeingCut(run, node, record)) {
      run.noteCleanupFailure(node, record);
    } else startFinally(run, node, record, result);
  },
  runsList: (record, branch) => record.p === branch,
  /** The finally list is protected, also while it has yet to run. */
  cut(run, node, record, by) {
    // Its time is of no interest any more.
    delete record.d;
    if (record.p === FINALLY_LIST || cutInside(run, node, record, by)) return true;
    if (!startAt(run, node.lists[FINALLY_LIST]!, 0)) return endCut(run, node, record);
    record.p = FINALLY_LIST;
    record.f = CANCELLED;
    delete record.x;
    return true;
  },
  childCut(run, node, record) {
    delete record.x;
    // What `cancellable: false` has kept going there.
    if (record.p === CATCH_LIST && hasStepFailed(run, node, CATCH_LIST) && owesCatch(run, node)) {
      run.noteCleanupFailure(node, record);
    } else startFinally(run, node, record, CANCELLED);
  },
  cleanUpAgain(run, node, { p }) {
    reopenList(run, node, p);
    startAt(run, node.lists[p]!, 0);
  },
  endLate(run, node, record, code) {
    // Its own finally list is owed, too.
    if (record.z !== 1) end(run, node, record, code);
  },
  awaits: (record, branch) => (record.x === 1 ? branch === FINALLY_LIST : branch >= record.p),
});

function hasStepFailed({ execution, plan }: Evaluation, node: NodePlace, list: number): boolean {
  return node.lists[list]!.some(
    (index) => execution.d[index]?.[0] === FAILED && plan.nodes[index]!.kind.isLeaf,
  );
}

/** Whether a retry has more to do in the catch list than to hand the failure on. */
function owesCatch(
  { execution, plan }: Pick<Evaluation, 'plan' | 'execution'>,
  node: TryCatchNode,
): boolean {
  const next = node.lists[CATCH_LIST]!.find((index) => {
    const code = execution.d[index]?.[0];
    return code !== COMPLETED && code !== SKIPPED;
  });
  return next !== undefined && !throwsAgain(plan.nodes[next]!);
}

/** A catch list that has come to `fail` is done with what it had to do, and hands on that something failed. */
function throwsAgain(node: NodePlace): boolean {
  return (node as { readonly handler?: string }).handler === 'fail';
}

function newRecord(run: Evaluation): TryCatchRecord {
  return { b: run.offset, p: TRY_LIST, f: COMPLETED };
}

/**
 * Where a retry goes on: in a finally list that failed, or that was stopped behind lists which went well; else
 * in the list that failed or was cut off, and the finally list is to run behind that again. What children of the
 * try list have to clean up comes before its catch list.
 */
function resumed(run: Evaluation, node: TryCatchNode, kept: TryCatchRecord): TryCatchRecord {
  const { p, f, m, y, z } = kept;
  const caught = m === undefined ? {} : { m };
  const begin = hasOwingChild(run, node.lists[TRY_LIST]!) ? TRY_LIST : CATCH_LIST;
  if (p !== FINALLY_LIST) return { ...newRecord(run), p: m === undefined ? p : begin, ...caught };
  const isCleanUp = f === COMPLETED || (f === FAILED && z === 1);
  if (isCleanUp) return { ...newRecord(run), p, f, ...caught, ...(y && { y }) };
  repeatList(run, node, FINALLY_LIST);
  return { ...newRecord(run), p: m === undefined ? TRY_LIST : begin, ...caught };
}

/** With what is not done of its list. */
function goOn(run: Evaluation, node: TryCatchNode, record: TryCatchRecord): void {
  if (startAt(run, node.lists[record.p]!, 0)) return;
  if (record.p === FINALLY_LIST) end(run, node, record, record.f);
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
  goOn(run, node, record);
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

function endFinally(
  run: Evaluation,
  node: TryCatchNode,
  record: TryCatchRecord,
  result: DoneCode,
): void {
  if (result !== FAILED) {
    end(run, node, record, ended(run, record));
    return;
  }
  if (isBeingCut(run, node, record)) {
    run.noteCleanupFailure(node, record);
    return;
  }
  record.z = 1;
  run.finish(node, FAILED);
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
