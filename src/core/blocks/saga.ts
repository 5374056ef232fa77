/**
 * saga (docs/reference/blocks.md): runs its actions in order. When one fails, or the block is cut off, completed
 * actions are compensated in reverse order, whether or not single compensations fail. A retry of the instance continues
 * with the remaining actions, the failed clean-up of an action, or the remaining compensations. When all compensations
 * are done, a retry runs the whole saga again as another iteration, with new rows and idempotency keys.
 */

import type { SagaBlock } from '../../../schema/blocks.js';
import {
  CANCELLED,
  COMPLETED,
  type DoneCode,
  FAILED,
  type SagaRecord,
} from '../../../schema/execution.js';
import type { Failure } from '../../../schema/failure.js';
import type { JsonObject } from '../../base/json.js';
import { type CutBy, cutInside, endCut, hasOpenInside, isBeingCut } from '../cutting.js';
import type { Evaluation } from '../evaluation.js';
import { failureMessage } from '../failures.js';
import { isFailure, isListDone, owesWithin } from '../owed.js';
import type { NodePlace, PlannedExecution } from '../plan-nodes.js';
import { reopenList } from '../runs-again.js';
import { catchError } from '../scopes.js';
import { composite } from './kind.js';
import { afterChild, startList } from './list.js';

/** Lists: the action of the first step, its compensation, the action of the second step, and so on. */
export interface SagaNode extends NodePlace {
  readonly type: 'saga';
  readonly steps: readonly string[];
}

const actionOf = (step: number) => 2 * step;
const compensationOf = (step: number) => 2 * step + 1;
const stepOf = (list: number) => list >> 1;
const isCompensation = (list: number) => list % 2 === 1;

export const saga = composite<SagaBlock, SagaNode, SagaRecord>({
  repeats: 'iterations',
  isKept: true,
  compile: ({ steps }) => ({ steps: steps.map(({ id }) => id) }),
  lists: ({ steps }) =>
    steps.flatMap(({ action, compensation }) => [[action].flat(), [compensation ?? []].flat()]),
  seesError: isCompensation,
  cleansUp: isCompensation,
  owes: hasNotCompensated,
  hasNotCleanedUp: hasNotCompensated,
  onlyCleansUp: ({ f }, branch) => f !== undefined && !isCompensation(branch),
  names({ steps }) {
    if (!Array.isArray(steps)) return [];
    return steps.flatMap((step: Partial<SagaBlock['steps'][number]> | null, i) =>
      typeof step?.id === 'string' ? [{ path: `steps[${i}].id`, id: step.id }] : [],
    );
  },
  enter(run, node) {
    const kept = run.takeKept(node) as SagaRecord | undefined;
    const record = kept === undefined ? newRun(run, 0) : resumed(run, node, kept);
    run.open(node, record);
    if (record.n === undefined) startStep(run, node, record, stepOf(record.l));
    else if (isCompensation(record.l) || !startList(run, node, record.l)) {
      compensate(run, node, record, record.n);
    }
  },
  childDone(run, node, record, child, code) {
    if (record.f !== undefined && !isCompensation(record.l)) {
      cleanedUp(run, node, record, child, code);
      return;
    }
    const result = afterChild(run, node, child, code);
    if (result === 'open') return;
    const step = stepOf(record.l);
    if (isCompensation(record.l)) compensate(run, node, record, step - 1);
    else if (result === COMPLETED) startStep(run, node, record, step + 1);
    else {
      noteFailed(run, node, record, child);
      undo(run, node, record, FAILED, step - 1);
    }
  },
  runsList: (record, branch) => record.l === branch,
  /** Compensations are protected, even those that have yet to run, and no longer time out. */
  cut(run, node, record, by) {
    delete record.d;
    if (isCompensation(record.l)) return true;
    record.m = cutError(run, node, record, by);
    if (cutInside(run, node, record, by)) return true;
    record.f = CANCELLED;
    record.n = stepOf(record.l);
    return startCompensation(run, node, record, record.n) || endCut(run, node, record);
  },
  childCut(run, node, record) {
    if (hasOpenInside(run, node)) return;
    delete record.x;
    undo(run, node, record, CANCELLED, stepOf(record.l));
  },
  cleanUpAgain(run, node, record) {
    for (const i of node.steps.keys()) reopenList(run, node, compensationOf(i));
    compensate(run, node, record, record.n!);
  },
  /** The clean-up may have completed an action, also the failed one, which then has to be compensated. */
  endLate(run, node, record) {
    delete record.j;
    delete record.z;
    const failed = record.n! + 1;
    const hasCompleted =
      failed < node.steps.length && isListDone(run, node.lists[actionOf(failed)]!);
    if (hasCompleted) record.n = failed;
    compensate(run, node, record, -1);
  },
  awaits(record, branch) {
    if (isCompensation(record.l)) return isCompensation(branch) && branch <= record.l;
    if (isCompensation(branch)) return true;
    return record.f === undefined ? record.x !== 1 && branch >= record.l : branch === record.l;
  },
});

function newRun(run: Evaluation, iteration: number): SagaRecord {
  return { b: run.offset, i: iteration, l: 0 };
}

/** The record after a retry of the instance: the interrupted run, or the next one. */
function resumed(run: Evaluation, node: SagaNode, kept: SagaRecord): SagaRecord {
  const { i, l, f, n, m } = kept;
  if (f === undefined || n === undefined) return { ...newRun(run, i), l };
  const failed = actionOf(n + 1);
  const isCleaningUp = f === FAILED && owesInside(run, node.lists[failed] ?? []);
  if (isCleaningUp || owesCompensation(run, node, n)) {
    // The kept record may stem from a saga that was being cut off, which no longer applies.
    const y = kept.y ?? run.failureAt(node, 'failed_by_request', 'the saga was cut off');
    const at = isCleaningUp ? failed : compensationOf(n);
    return { ...newRun(run, i), l: at, f: FAILED, n, y, ...(m && { m }) };
  }
  run.reset(node);
  return newRun(run, i + 1);
}

const owesInside = (run: PlannedExecution, list: readonly number[]): boolean =>
  list.some((index) => owesWithin(run, run.plan.nodes[index]!));

function hasNotCompensated(run: PlannedExecution, node: SagaNode, { f, n }: SagaRecord): boolean {
  return f !== undefined && owesCompensation(run, node, n!);
}

/** Whether a completed action up to this step is not yet compensated. */
function owesCompensation(run: PlannedExecution, node: SagaNode, upTo: number): boolean {
  return node.steps.some(
    (_, step) =>
      step <= upTo &&
      isListDone(run, node.lists[actionOf(step)]!) &&
      !isListDone(run, node.lists[compensationOf(step)]!),
  );
}

/** Starts the action of this step, or of the next step whose action is not done. */
function startStep(run: Evaluation, node: SagaNode, record: SagaRecord, step: number): void {
  for (let next = step; next < node.steps.length; next += 1) {
    record.l = actionOf(next);
    if (startList(run, node, record.l)) return;
  }
  run.finish(node, COMPLETED);
}

/** The failed action has repeated its clean-up; nothing else of the action runs. */
function cleanedUp(
  run: Evaluation,
  node: SagaNode,
  record: SagaRecord,
  child: NodePlace,
  code: DoneCode,
): void {
  if (isFailure(code)) noteFailed(run, node, record, child);
  const step = stepOf(record.l);
  undo(run, node, record, FAILED, isListDone(run, node.lists[record.l]!) ? step : step - 1);
}

function noteFailed(run: Evaluation, node: SagaNode, record: SagaRecord, failed: NodePlace): void {
  record.y = run.cause ?? run.unrecorded(failed);
  const { block_id, ...why } = record.y;
  const failed_step = node.steps[stepOf(record.l)]!;
  const error = { failed_step, source: 'saga', block_id: node.id, failed_block_id: block_id };
  catchError(run, record, { ...error, ...why });
}

/** `data._error` of the compensations when no action has failed. */
function cutError(run: Evaluation, node: SagaNode, { y }: SagaRecord, by: CutBy): JsonObject {
  const isWhole = by === 'signal';
  const why = y ?? (isWhole ? run.execution.y : undefined);
  const message = why?.message ?? (isWhole ? 'the instance was cancelled' : 'the saga was cut off');
  return { failed_step: null, source: 'saga', block_id: node.id, code: 'cancelled', message };
}

/** Compensates the completed actions up to this step; the block then ends with `code`. */
function undo(
  run: Evaluation,
  node: SagaNode,
  record: SagaRecord,
  code: typeof FAILED | typeof CANCELLED,
  step: number,
): void {
  record.f = code;
  record.n = step;
  compensate(run, node, record, step);
}

/** Starts the next compensation from `step` backwards, or ends the block. */
function compensate(run: Evaluation, node: SagaNode, record: SagaRecord, step: number): void {
  if (startCompensation(run, node, record, step)) return;
  if (startCompensation(run, node, record, record.n!, 'late')) return;
  const compensationIs = (ended: (index: number) => boolean) =>
    node.steps.filter((_, i) => node.lists[compensationOf(i)]!.some(ended));
  const tried = compensationIs((index) => run.execution.d[index] !== undefined);
  const failed = compensationIs((index) => isFailure(run.execution.d[index]?.[0]));
  if (tried.length > 0) {
    const compensated = tried.filter((id) => !failed.includes(id));
    run.audit('saga_compensated', node, { compensated, compensations_failed: failed });
  }
  if (failed.length > 0 && isBeingCut(run, node, record)) run.noteCleanupFailure(node, record);
  else run.end(node, record.f ?? FAILED, withCompensations(record.y, failed));
}

/** @param which `late`: compensations of actions that completed late, by repeating their clean-up */
function startCompensation(
  run: Evaluation,
  node: SagaNode,
  record: SagaRecord,
  from: number,
  which: 'all' | 'late' = 'all',
): boolean {
  for (let step = from; step >= 0; step -= 1) {
    const list = compensationOf(step);
    const hasRun = node.lists[list]!.some((index) => run.execution.d[index] !== undefined);
    if (which === 'late' && hasRun) continue;
    if (!isListDone(run, node.lists[actionOf(step)]!) || !startList(run, node, list)) continue;
    record.l = list;
    return true;
  }
  return false;
}

/** The reason of the failure remains that of the action (docs/reference/blocks.md). */
function withCompensations(why: Failure | undefined, failed: readonly string[]) {
  if (why === undefined || failed.length === 0) return why;
  const message = `${why.message}; compensations failed, too: ${failed.join(', ')}`;
  return { ...why, message: failureMessage(message) };
}
