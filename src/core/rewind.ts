/** Takes an instance back to a top-level block: it and all later ones are as if never reached. */

import { SKIPPED } from '../../schema/execution.js';
import { forgetCancelling } from './cancelling.js';
import { cutAll } from './cutting.js';
import type { Evaluation } from './evaluation.js';
import { forgetHooksThatFailed } from './hooks.js';
import { clearHolds } from './instance-state.js';
import { blocksBetween } from './paths.js';
import type { Plan, PlanNode } from './plan-nodes.js';
import { countRuns } from './runs-again.js';
import { startTimeLimit } from './time-limits.js';

/** The ids of the blocks that a rewind to this root resets. */
export function blocksFrom(plan: Plan, root: number): string[] {
  return blocksBetween(plan, root);
}

/** The caller sets the state and when the instance continues. */
export function rewind(run: Evaluation, root: PlanNode): void {
  const { execution, snapshot, plan } = run;
  cutAll(run);
  run.dropSnapshots();
  forgetFrom(execution.d, root.index);
  if (execution.c !== undefined) forgetFrom(execution.c, root.index);
  for (const id of blocksFrom(plan, root.index)) snapshot.outputs.delete(id);
  delete execution.k;
  delete execution.e;
  delete execution.y;
  delete execution.x;
  delete execution.m;
  forgetHooksThatFailed(execution);
  forgetCancelling(snapshot);
  delete execution.f;
  delete execution.z;
  delete execution.u;
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
