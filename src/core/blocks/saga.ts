/**
 * saga (docs/reference/blocks.md): its actions run in order. When one fails, or the block is cut off, what
 * completed is compensated, the last first, whatever becomes of each compensation. A retry of the instance
 * goes on with what is left of the actions, of what a failed action has to clean up inside, or of the
 * compensations; behind compensations that are done all of it runs again, as another pass with rows and keys of its own.
 */

import type { SagaBlock } from '../../../schema/blocks.js';
import {
  CANCELLED,
  COMPLETED,
  type DoneCode,
  FAILED,
  type SagaRecord,
  SKIPPED,
} from '../../../schema/execution.js';
import type { Failure } from '../../../schema/failure.js';
import type { JsonObject } from '../../base/json.js';
import { catchError } from '../caught.js';
import { type CutBy, cutInside, endCut, hasOpenInside, isBeingCut } from '../cutting.js';
import type { Evaluation } from '../evaluation.js';
import { failureMessage } from '../failures.js';
import type { NodePlace } from '../plan-nodes.js';
import { reopenList } from '../runs-again.js';
import { composite } from './kind.js';
import { afterChild, startAt } from './list.js';

/** Lists: the action of the first step, its compensation, the action of the second step, and so on. */
export interface SagaNode extends NodePlace {
  readonly type: 'saga';
  /** The ids of the steps. */
  readonly steps: readonly string[];
}

const actionOf = (step: number) => 2 * step;
const compensationOf = (step: number) => 2 * step + 1;
const stepOf = (list: number) => list >> 1;
const isCompensation = (list: number) => list % 2 === 1;

export const saga = composite<SagaBlock, SagaNode, SagaRecord>({
  repeats: 'passes',
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
    else if (isCompensation(record.l) || !startAt(run, node.lists[record.l]!, 0)) {
      compensate(run, node, record, record.n);
    }
  },
  childDone(run, node, record, child, code) {
    if (record.f !== undefined && !isCompensation(record.l)) {
      cleanedUp(run, node, record, child, code);
      return;
    }
    const result = afterChild(run, node.lists[record.l]!, child, code);
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
  /** Compensations are protected, also while they have yet to run; its time is of no interest any more. */
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
  /** An action may have completed with that. */
  endLate(run, node, record) {
    delete record.j;
    delete record.z;
    compensate(run, node, record, -1);
  },
  awaits(record, branch) {
    if (isCompensation(record.l)) return isCompensation(branch) && branch <= record.l;
    if (isCompensation(branch)) return true;
    return record.f === undefined ? record.x !== 1 && branch >= record.l : branch === record.l;
  },
});

function newRun(run: Evaluation, pass: number): SagaRecord {
  return { b: run.offset, i: pass, l: 0 };
}

/** After a retry of the instance: the run that was under way, or another one. */
function resumed(run: Evaluation, node: SagaNode, kept: SagaRecord): SagaRecord {
  const { i, l, f, n, m } = kept;
  if (f === undefined || n === undefined) return { ...newRun(run, i), l };
  const failed = actionOf(n + 1);
  const isCleaningUp = f === FAILED && owesInside(run, node.lists[failed] ?? []);
  if (isCleaningUp || owesCompensation(run, node, n)) {
    // It is not being cut off any more.
    const y = kept.y ?? run.failureAt(node, 'failed_by_request', 'the saga was cut off');
    const at = isCleaningUp ? failed : compensationOf(n);
    return { ...newRun(run, i), l: at, f: FAILED, n, y, ...(m && { m }) };
  }
  run.reset(node);
  return newRun(run, i + 1);
}

function hasNotCompensated(
  run: Pick<Evaluation, 'execution'>,
  node: SagaNode,
  { f, n }: SagaRecord,
): boolean {
  return f !== undefined && owesCompensation(run, node, n!);
}

/** Whether what completed up to the step is not taken back yet. */
function owesCompensation(
  run: Pick<Evaluation, 'execution'>,
  node: SagaNode,
  upTo: number,
): boolean {
  return node.steps.some(
    (_, step) =>
      step <= upTo &&
      hasCompleted(run, node.lists[actionOf(step)]!) &&
      !hasCompleted(run, node.lists[compensationOf(step)]!),
  );
}

/** Whether blocks in the list, at any depth, are to clean up what failed in a retry. */
function owesInside(run: Evaluation, list: readonly number[]): boolean {
  const { execution, plan } = run;
  if (execution.k === undefined || list.length === 0) return false;
  const { end } = plan.nodes[list.at(-1)!]!;
  return Object.entries(execution.k).some(([key, kept]) => {
    const node = plan.nodes[Number(key)]!;
    return node.index >= list[0]! && node.index < end && node.kind.owes(run, node, kept);
  });
}

/** Its action, or that of the next step that has blocks to run. */
function startStep(run: Evaluation, node: SagaNode, record: SagaRecord, step: number): void {
  for (let next = step; next < node.steps.length; next += 1) {
    record.l = actionOf(next);
    if (startAt(run, node.lists[record.l]!, 0)) return;
  }
  run.finish(node, COMPLETED);
}

/** The block of a failed action that a retry has gone on with is done: nothing of the action runs behind it. */
function cleanedUp(
  run: Evaluation,
  node: SagaNode,
  record: SagaRecord,
  child: NodePlace,
  code: DoneCode,
): void {
  if (code === FAILED || code === CANCELLED) noteFailed(run, node, record, child);
  const step = stepOf(record.l);
  undo(run, node, record, FAILED, hasCompleted(run, node.lists[record.l]!) ? step : step - 1);
}

function noteFailed(run: Evaluation, node: SagaNode, record: SagaRecord, failed: NodePlace): void {
  record.y = run.cause ?? run.unrecorded(failed);
  const { block_id, ...why } = record.y;
  const failed_step = node.steps[stepOf(record.l)]!;
  const error = { failed_step, source: 'saga', block_id: node.id, failed_block_id: block_id };
  catchError(run, record, { ...error, ...why });
}

/** What compensations see when no action has failed. */
function cutError(run: Evaluation, node: SagaNode, { y }: SagaRecord, by: CutBy): JsonObject {
  const isWhole = by === 'signal';
  const why = y ?? (isWhole ? run.execution.y : undefined);
  const message = why?.message ?? (isWhole ? 'the instance was cancelled' : 'the saga was cut off');
  return { failed_step: null, source: 'saga', block_id: node.id, code: 'cancelled', message };
}

/** The block comes to this when what completed up to the step is compensated. */
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

/** Goes on with the compensations from that of `step` on, backwards; then the block is done. */
function compensate(run: Evaluation, node: SagaNode, record: SagaRecord, step: number): void {
  if (startCompensation(run, node, record, step) || startLate(run, node, record)) return;
  const failed = node.steps.filter((_, i) => hasFailed(run, node.lists[compensationOf(i)]!));
  const why = withCompensations(record.y, failed);
  noteEnd(run, node, failed);
  if (failed.length > 0 && isBeingCut(run, node, record)) {
    run.noteCleanupFailure(node, record);
    return;
  }
  if (record.f === CANCELLED) run.finish(node, CANCELLED);
  else run.fail(node, why);
}

function startCompensation(
  run: Evaluation,
  node: SagaNode,
  record: SagaRecord,
  from: number,
): boolean {
  for (let step = from; step >= 0; step -= 1) {
    if (!hasCompleted(run, node.lists[actionOf(step)]!)) continue;
    if (!startAt(run, node.lists[compensationOf(step)]!, 0)) continue;
    record.l = compensationOf(step);
    return true;
  }
  return false;
}

/** The compensation of an action that has completed late, with what was cleaned up in it. */
function startLate(run: Evaluation, node: SagaNode, record: SagaRecord): boolean {
  const step = node.steps.findLastIndex(
    (_, i) =>
      i <= record.n! &&
      hasCompleted(run, node.lists[actionOf(i)]!) &&
      node.lists[compensationOf(i)]!.length > 0 &&
      !hasRun(run, node.lists[compensationOf(i)]!),
  );
  return step >= 0 && startCompensation(run, node, record, step);
}

/** Also when the block was cut off behind its last block, which was protected. */
function hasCompleted(
  { execution }: Pick<Evaluation, 'execution'>,
  list: readonly number[],
): boolean {
  return list.every((index) => {
    const code = execution.d[index]?.[0];
    return code === COMPLETED || code === SKIPPED;
  });
}

function hasFailed({ execution }: Evaluation, list: readonly number[]): boolean {
  return list.some((index) => {
    const code = execution.d[index]?.[0];
    return code === FAILED || code === CANCELLED;
  });
}

/** The reason remains that of the action (docs/reference/blocks.md). */
function withCompensations(
  why: Failure | undefined,
  failed: readonly string[],
): Failure | undefined {
  if (why === undefined || failed.length === 0) return why;
  const message = `${why.message}; compensations failed, too: ${failed.join(', ')}`;
  return { ...why, message: failureMessage(message) };
}

/** What became of the compensations, if there were any. */
function noteEnd(run: Evaluation, node: SagaNode, failed: readonly string[]): void {
  const tried = node.steps.filter((_, i) => hasRun(run, node.lists[compensationOf(i)]!));
  if (tried.length === 0) return;
  const compensated = tried.filter((id) => !failed.includes(id));
  const details = { compensated, compensations_failed: [...failed] };
  run.audit.push({ eventType: 'saga_compensated', blockId: node.id, details });
}

function hasRun({ execution }: Evaluation, list: readonly number[]): boolean {
  return list.some((index) => execution.d[index] !== undefined);
}
