/**
 * Makes blocks run again: failed or cut-off blocks in a retry; repeated lists, with new idempotency keys; and in a
 * rewind all blocks from a root on, as if they had not been reached.
 */

import { SKIPPED } from '../../schema/execution.js';
import { cutAll } from './cutting.js';
import { startTimeLimit } from './deadlines.js';
import type { Evaluation } from './evaluation.js';
import { isErrorRow } from './failures.js';
import { forgetHooksThatFailed } from './hooks.js';
import { clearHolds, forgetCancelling } from './instance-state.js';
import { dropOwn } from './loop-items.js';
import { isDone } from './owed.js';
import { blocksBetween, rangeOf } from './paths.js';
import type { NodePlace, Plan, PlanNode } from './plan-nodes.js';
import type { OutputRow, Progress } from './progress.js';

/** Makes failed and cancelled nodes in the range of indexes pending again; completed and skipped ones stay. */
export function reopen({ execution, plan }: Evaluation, from: number, to: number): void {
  for (let i = from; i < to; ) {
    if (isDone(execution, i)) {
      i = plan.nodes[i]!.end;
      continue;
    }
    const kept = execution.d[i]?.[3];
    if (execution.d[i] !== undefined) delete execution.d[i];
    // Records of leaves are kept only for children that can be retried.
    if (kept !== undefined && (!plan.nodes[i]!.kind.isLeaf || 'k' in kept)) {
      execution.k ??= {};
      execution.k[i] = kept;
    }
    i += 1;
  }
}

/** Like `reopen`. What has failed in the list since the retry may fail again, which stores the same row. */
export function reopenList(run: Evaluation, node: NodePlace, branch: number): void {
  dropErrorRows(run);
  reopen(run, ...rangeOf(run.plan, node.lists[branch]!));
}

export function dropErrorRows({ snapshot, progress }: Evaluation): void {
  for (const [id, { output }] of snapshot.outputs) {
    if (isErrorRow(output)) snapshot.outputs.delete(id);
  }
  for (const items of Object.values(snapshot.items ?? {})) dropOwn(items, isErrorRow);
  progress.dropErrorRows = true;
  keepRows(progress, ({ outputRef }) => outputRef !== '__error__');
}

/** Resets a list that has run, so that it runs again with new idempotency keys. */
export function repeatList(run: Evaluation, node: NodePlace, branch: number): void {
  const { plan, snapshot, execution } = run;
  const list = node.lists[branch]!;
  run.resetList(node, branch);
  countRuns(run, list);
  // Rows inside loops are numbered across iterations, and stay.
  if (node.loops.length > 0) return;
  const { droppedOutputs } = run.progress;
  for (const id of blocksBetween(plan, ...rangeOf(plan, list))) {
    snapshot.outputs.delete(id);
    delete execution.c?.[plan.indexOf.get(id)!];
    droppedOutputs.push(id);
  }
  keepRows(run.progress, ({ blockId }) => !droppedOutputs.includes(blockId));
}

/** Of the rows of this turn, which are not stored yet. */
function keepRows({ outputs }: Progress, isKept: (row: OutputRow) => boolean): void {
  const kept = outputs.filter(isKept);
  outputs.splice(0, outputs.length, ...kept);
}

/** Counts another run of the blocks in the same iteration. */
function countRuns({ execution, plan }: Evaluation, list: readonly number[]): void {
  execution.v ??= {};
  for (const index of list) {
    const { first } = plan.nodes[index]!;
    execution.v[first] = (execution.v[first] ?? 0) + 1;
  }
}

export function runsOf({ execution, plan }: Evaluation, node: NodePlace): number {
  const { v } = execution;
  if (v === undefined) return 0;
  let runs = 0;
  for (let at: NodePlace | undefined = node; at !== undefined; at = plan.nodes[at.parent]) {
    runs += v[at.first] ?? 0;
  }
  return runs;
}

/** The ids of the blocks that a rewind to this root resets. */
export const blocksFrom = (plan: Plan, root: number): string[] => blocksBetween(plan, root);

/** The caller sets the state and when the instance continues. */
export function rewind(run: Evaluation, root: PlanNode): void {
  const { execution, snapshot, plan } = run;
  cutAll(run);
  run.dropSnapshots();
  forgetFrom(execution.d, root.index);
  if (execution.c !== undefined) forgetFrom(execution.c, root.index);
  for (const id of blocksFrom(plan, root.index)) snapshot.outputs.delete(id);
  for (const key of ['k', 'e', 'y', 'x', 'm', 'f', 'z', 'u'] as const) delete execution[key];
  forgetHooksThatFailed(execution);
  forgetCancelling(snapshot);
  clearHolds(run);
  if (snapshot.runtime.total_steps_executed !== undefined) {
    snapshot.runtime.attempt = 0;
    snapshot.runtime.total_steps_executed = 0;
  }
  for (const before of plan.roots.slice(0, root.position)) {
    execution.d[before] ??= [SKIPPED, run.offset, 0];
  }
  countRuns(run, plan.roots.slice(root.position));
  execution.s = root.index;
  if (execution.t !== null) {
    startTimeLimit(run);
    run.push(root.index);
  }
  run.progress.audit.push({ eventType: 'resumed_from', blockId: root.id });
}

function forgetFrom(entries: Record<number, unknown>, first: number): void {
  for (const key of Object.keys(entries)) {
    if (Number(key) >= first) delete entries[Number(key)];
  }
}
