/** Runs the blocks of a list in order, until one fails or is cancelled. Blocks that are not reached have no entry. */

import {
  type CANCELLED,
  COMPLETED,
  type DoneCode,
  type FAILED,
} from '../../../schema/execution.js';
import type { Evaluation } from '../evaluation.js';
import { isFailure } from '../owed.js';
import type { NodePlace } from '../plan-nodes.js';

/** Queues the first block from `position` on that is not done; returns whether there was one. */
export function startAt(run: Evaluation, list: readonly number[], position: number): boolean {
  for (let i = position; i < list.length; i += 1) {
    const index = list[i]!;
    if (run.execution.d[index] !== undefined) continue;
    run.push(index);
    return true;
  }
  return false;
}

export function startList(run: Evaluation, node: NodePlace, branch: number): boolean {
  return startAt(run, node.lists[branch]!, 0);
}

export type ListEnd = typeof COMPLETED | typeof FAILED | typeof CANCELLED;

/** Continues the list after a child: `'open'`, or how the list ended. */
export function afterChild(run: Evaluation, node: NodePlace, child: NodePlace, code: DoneCode) {
  if (isFailure(code)) return code;
  return startAt(run, node.lists[child.branch]!, child.position + 1) ? 'open' : COMPLETED;
}
