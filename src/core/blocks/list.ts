/**
 * The one rule of every list of blocks: one after the other, and the first that fails or is
 * cancelled ends the list (docs/reference/blocks.md). What is not reached has no entry.
 */

import { CANCELLED, COMPLETED, type DoneCode, FAILED } from '../../../schema/execution.js';
import type { Evaluation } from '../evaluation.js';
import type { NodePlace } from '../plan-nodes.js';

/**
 * Queues the first block at or after `position` that is not done; after a retry of the instance
 * some are. Returns whether there was one.
 */
export function startAt(run: Evaluation, list: readonly number[], position: number): boolean {
  for (let i = position; i < list.length; i += 1) {
    const index = list[i]!;
    if (run.execution.d[index] !== undefined) continue;
    run.push(index);
    return true;
  }
  return false;
}

/** Goes on after a child: `'open'`, or how its list ended. */
export function afterChild(
  run: Evaluation,
  list: readonly number[],
  child: NodePlace,
  code: DoneCode,
): 'open' | typeof COMPLETED | typeof FAILED | typeof CANCELLED {
  if (code === FAILED || code === CANCELLED) return code;
  return startAt(run, list, child.position + 1) ? 'open' : COMPLETED;
}
