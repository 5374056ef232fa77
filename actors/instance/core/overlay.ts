/** What lies over the data of an instance, for whoever shows it to a worker. */

import type { JsonObject } from '../../../src/base/json.js';
import { Evaluation } from '../../../src/core/evaluation.js';
import type { Plan } from '../../../src/core/plan-nodes.js';
import type { Env, Snapshot } from '../../../src/core/progress.js';

/** What lies over context.data for an open node as things are now; null where nothing does. */
export function overlayAt(plan: Plan, snapshot: Snapshot, node: number): JsonObject | null {
  return new Evaluation(plan, snapshot, NO_TURN).overlayOf(plan.nodes[node]!);
}

/** For looking only. */
const NO_TURN: Env = {
  now: 0,
  random: () => 0,
  unpoliciedRetry: 'fail',
  stepBudget: 0,
  outputBytesBudget: 0,
};
