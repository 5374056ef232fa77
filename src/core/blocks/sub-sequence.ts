/**
 * sub_sequence: runs another sequence as a child instance and waits for its end (docs/reference/blocks.md). Each time
 * that the block is reached it gets a new child, whose number is the try of the events about it. The record has the
 * child's id once `child.made` has reported it. A retry of the instance retries a child that has failed and waits for
 * it again; a child that was cancelled or removed since is replaced.
 */

import type { SubSequenceBlock } from '../../../schema/blocks.js';
import { COMPLETED, FAILED, type StepRecord } from '../../../schema/execution.js';
import type { FailureCode } from '../../../schema/failure.js';
import { childInstanceId } from '../../base/ids.js';
import type { JsonObject } from '../../base/json.js';
import type { BlockCompiler } from '../block-compiler.js';
import { timeOutBlock } from '../deadlines.js';
import type { Evaluation } from '../evaluation.js';
import { isCleanUpOnly } from '../owed.js';
import type { NodePlace, PlannedExecution } from '../plan-nodes.js';
import { renderTemplate } from '../template.js';
import { leaf } from './kind.js';

export interface SubSequenceNode extends NodePlace, Readonly<ReturnType<typeof compile>> {
  readonly type: 'sub_sequence';
}

function compile(block: SubSequenceBlock, compiler: BlockCompiler) {
  return {
    sequenceName: block.sequence_name,
    /** Null: the newest version at the start of the child. */
    version: block.version ?? null,
    input: compiler.template(block.input ?? {}, 'input'),
  };
}

export const subSequence = leaf<SubSequenceBlock, SubSequenceNode>({
  compile,
  outputRow: 'last',
  isKept: true,
  owes: (_run, _node, { z }) => z === 1,
  invalidWhen(run, node, message) {
    fail(run, node, 'expression_error', message);
  },
  enter(run, node) {
    const kept = run.takeKept(node) as StepRecord | undefined;
    const record: StepRecord = { b: run.offset, p: 'child', a: kept?.a ?? 0 };
    if (node.timeoutMs !== null) record.d = run.env.now + node.timeoutMs;
    if (kept?.c !== undefined) {
      run.putLeaf(node, { ...record, c: kept.c, k: kept.k! });
      const kind = retryOf(run, node);
      run.orderChild({ kind, child: kept.c, ...run.tryOf(node, record.a) });
    } else startNext(run, node, record);
  },
  due: timeOutBlock,
  handleEvent(run, node, record, event) {
    if (record.a !== event.attempt) return false;
    if (event.kind === 'child.made') {
      run.putLeaf(node, { ...record, c: event.child });
      return true;
    }
    if (event.kind !== 'child.ended') return false;
    if (event.end.kind === 'completed') {
      run.storeOutput(node, 0, event.end.output, null);
      run.finish(node, COMPLETED);
      return true;
    }
    const { note, owes, isGone, code, message, details } = event.end;
    // A repeated report of the failure before the retry.
    if (note !== undefined && note === record.k) return false;
    const { k: before, ...plain } = record;
    if (isGone === true && before !== undefined && !isCleanUpOnly(run, node)) {
      const { c: _gone, ...next } = plain;
      startNext(run, node, next);
      return true;
    }
    const failed: StepRecord = plain;
    if (note !== undefined) failed.k = note;
    if (owes === true) failed.z = 1;
    run.putLeaf(node, failed);
    fail(run, node, code, message, details);
    return true;
  },
  // The process that was creating the child has ended, or the event about the child's end may be lost.
  recover(run, node, record) {
    if (record.c === undefined) start(run, node, record);
    else run.orderChild({ kind: 'look', child: record.c, ...run.tryOf(node, record.a) });
  },
  withdraw(run, node, { a, c }) {
    const order = run.progress.children?.findIndex(
      ({ kind, ...at }) => kind === 'start' && at.node === node.index && at.attempt === a,
    );
    // A child that was requested in this turn is not created.
    if (order !== undefined && order >= 0) run.progress.children!.splice(order, 1);
    else run.orderChild({ kind: 'cancel', child: c, ...run.tryOf(node, a) });
  },
  openState: () => 'waiting',
});

/** How a failed child is retried. If this block only cleans up, its child only cleans up as well. */
export function retryOf(run: PlannedExecution, node: NodePlace) {
  return isCleanUpOnly(run, node) ? 'clean_up' : 'retry';
}

function startNext(run: Evaluation, node: SubSequenceNode, record: StepRecord): void {
  const { g: number = 0 } = run.execution;
  run.execution.g = number + 1;
  start(run, node, { ...record, a: number });
}

function start(run: Evaluation, node: SubSequenceNode, record: StepRecord): void {
  const rendered = renderTemplate(node.input, run.scopeOf(node));
  if (!rendered.ok) {
    fail(run, node, 'expression_error', rendered.message);
    return;
  }
  // Rendering keeps an object an object.
  const input = rendered.value as JsonObject;
  const step = run.tryOf(node, record.a);
  const { iteration, attempt } = step;
  run.putLeaf(node, record);
  run.charge(input);
  run.orderChild({
    kind: 'start',
    ...step,
    blockId: node.id,
    child: childInstanceId(run.snapshot.id, node.id, iteration, attempt),
    sequence: node.sequenceName,
    version: node.version,
    input,
  });
}

/** Unlike the error of a worker, this error has a row. */
function fail(
  run: Evaluation,
  node: SubSequenceNode,
  code: FailureCode,
  message: string,
  details?: JsonObject,
): void {
  const row: JsonObject = { __error__: true, retryable: false, message, code };
  if (details !== undefined) row.details = details;
  run.storeOutput(node, 0, row, '__error__');
  run.noteFailure(node, code, message);
  run.finish(node, FAILED);
}
