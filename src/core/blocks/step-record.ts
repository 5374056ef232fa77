/** The records of open steps and their changes of phase. */

import type { StepPhase, StepRecord } from '../../../schema/execution.js';
import type { Evaluation } from '../evaluation.js';
import type { StepNode } from './step-plan.js';

/** Undefined: the step is not open yet. */
export type MaybeOpen = StepRecord | undefined;

/** Opens the step in the phase, or moves the open step there. @param until the end of the phase, in Unix ms */
export function enterPhase(
  run: Evaluation,
  node: StepNode,
  record: MaybeOpen,
  phase: StepPhase,
  number: number,
  until?: number,
): void {
  const next = recordOf(run, node, record, phase, number);
  if (until !== undefined) next.w = until;
  run.putLeaf(node, next);
}

/** The record in the new phase. The noted effect stays with its try, the deadline with the step. */
export function recordOf(
  run: Evaluation,
  node: StepNode,
  before: MaybeOpen,
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

/** Queues an open step, to be attempted as soon as the instance may run. */
export function makeReady(run: Evaluation, node: StepNode, record: StepRecord): void {
  enterPhase(run, node, record, 'ready', record.a);
  run.push(node.index);
}
