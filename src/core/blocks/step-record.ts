/** What an open step is at next. */

import type { StepPhase, StepRecord } from '../../../schema/execution.js';
import type { Evaluation } from '../evaluation.js';
import type { StepNode } from './step-plan.js';

/**
 * Opens the step in the phase, or moves the open one there.
 *
 * @param until when something is to happen, in Unix ms
 */
export function moveTo(
  run: Evaluation,
  node: StepNode,
  record: StepRecord | undefined,
  phase: StepPhase,
  number: number,
  until?: number,
): void {
  const next = recordOf(run, node, record, phase, number);
  if (until !== undefined) next.w = until;
  run.putLeaf(node, next);
}

/** What a step is at next; a request that was noted stays with its try, a deadline with the step. */
export function recordOf(
  run: Evaluation,
  node: StepNode,
  before: StepRecord | undefined,
  phase: StepPhase,
  number: number,
): StepRecord {
  const record: StepRecord = { b: before?.b ?? run.offset, p: phase, a: number };
  if (before?.u !== undefined && before.a === number) record.u = before.u;
  if (before?.k !== undefined) record.k = before.k;
  if (before === undefined) {
    if (node.deadlineMs !== null) record.h = run.env.now + node.deadlineMs;
  } else if (before.h !== undefined) record.h = before.h;
  return record;
}

/** Puts an open step into the queue, to be attempted as soon as something may run. */
export function makeReady(run: Evaluation, node: StepNode, record: StepRecord): void {
  moveTo(run, node, record, 'ready', record.a);
  run.push(node.index);
}
