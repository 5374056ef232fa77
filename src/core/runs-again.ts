/**
 * What runs once more: blocks that failed or were cut off, when the instance is retried, and lists of blocks
 * that have run, which get other idempotency keys (docs/reference/steps.md).
 */

import { COMPLETED, SKIPPED } from '../../schema/execution.js';
import type { Evaluation } from './evaluation.js';
import { blocksBetween } from './paths.js';
import type { NodePlace } from './plan-nodes.js';

/** What failed or was cut off is pending again; what completed or was skipped stays. Indexes of nodes. */
export function reopen({ execution, plan }: Evaluation, from: number, to: number): void {
  for (let i = from; i < to; ) {
    const [code, , , kept] = execution.d[i] ?? [];
    if (code === COMPLETED || code === SKIPPED) {
      i = plan.nodes[i]!.end;
      continue;
    }
    if (code !== undefined) delete execution.d[i];
    // Of leaves a child is kept that can be retried.
    if (kept !== undefined && (!plan.nodes[i]!.kind.isLeaf || 'k' in kept)) {
      execution.k ??= {};
      execution.k[i] = kept;
    }
    i += 1;
  }
}

/** The same for a list of the block. */
export function reopenList(run: Evaluation, node: NodePlace, branch: number): void {
  const list = node.lists[branch]!;
  if (list.length > 0) reopen(run, list[0]!, run.plan.nodes[list.at(-1)!]!.end);
}

/** A list of the block that has run is to run once more, as if it had not been reached. */
export function repeatList(run: Evaluation, node: NodePlace, branch: number): void {
  const { plan, snapshot, execution } = run;
  const list = node.lists[branch]!;
  if (list.length === 0) return;
  run.resetLists(node, branch, branch + 1);
  countRuns(run, list);
  // In loops each row has a number of its own.
  if (node.loops.length > 0) return;
  for (const id of blocksBetween(plan, list[0]!, plan.nodes[list.at(-1)!]!.end)) {
    snapshot.outputs.delete(id);
    delete execution.c?.[plan.indexOf.get(id)!];
    run.droppedOutputs.push(id);
  }
}

/** The blocks of the list run once more in the same iteration. */
export function countRuns({ execution, plan }: Evaluation, list: readonly number[]): void {
  execution.v ??= {};
  for (const index of list) {
    const { first } = plan.nodes[index]!;
    execution.v[first] = (execution.v[first] ?? 0) + 1;
  }
}

/** How often the node has been begun anew in its iteration. */
export function runsOf({ execution, plan }: Evaluation, node: NodePlace): number {
  const { v } = execution;
  if (v === undefined) return 0;
  let runs = 0;
  for (let at: NodePlace | undefined = node; at !== undefined; at = plan.nodes[at.parent]) {
    runs += v[at.first] ?? 0;
  }
  return runs;
}
