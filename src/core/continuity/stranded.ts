/** Whether an instance can go over to a version in which it cannot go on at the same place. */

import type { Execution, StepRecord } from '../execution.js';
import type { Plan } from '../plan-nodes.js';
import { clashOf } from '../remap.js';

/**
 * Why it cannot go over at all: a block is open whose work would be lost. Within a loop the passes
 * could not be told apart, and a worker's task or a child would come back to nothing. Everything else begins anew
 * and steps over what has an output.
 */
export function strandedBy(execution: Execution, from: Plan, to: Plan): string | undefined {
  const clash = clashOf(execution, from, to);
  if (clash === undefined) return undefined;
  for (const [index, record] of Object.entries(execution.o)) {
    const node = from.nodes[Number(index)];
    const { p } = record as StepRecord;
    const isElsewhere = node?.kind.isLeaf === true && (p === 'task' || p === 'child');
    if (isElsewhere || node?.kind.repeats !== 'never') return clash;
  }
  return undefined;
}
