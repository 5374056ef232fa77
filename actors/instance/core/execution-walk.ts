/** Base class of walks over a stored execution. */

import type { Execution, ForEachRecord } from '../../../schema/execution.js';
import { isDone } from '../../../src/core/owed.js';
import { pathOf, withEnded } from '../../../src/core/paths.js';
import type { NodePlace, Plan, PlannedExecution } from '../../../src/core/plan-nodes.js';

export class ExecutionWalk {
  protected readonly plan: Plan;
  protected readonly execution: Execution;
  /** The execution with ended blocks reopened, to determine iterations and paths. */
  protected readonly before: Execution;

  constructor(plan: Plan, execution: Execution) {
    this.plan = plan;
    this.execution = execution;
    this.before = withEnded(execution);
  }

  protected get run(): PlannedExecution {
    return { plan: this.plan, execution: this.execution };
  }

  protected isDone(index: number): boolean {
    return isDone(this.execution, index);
  }

  protected pathOf(node: NodePlace): string {
    return pathOf(this.plan, this.before, node);
  }

  /** The lists of a loop in its current iteration, or of for_each slots that have an item. */
  protected listsInFlight({ lists }: NodePlace, { e, s }: Partial<ForEachRecord>) {
    // The iteration is complete, and the next one starts from the beginning.
    if (e === 1) return [];
    return s === undefined ? lists : lists.filter((_, slot) => (s[slot] ?? -1) >= 0);
  }
}
