/** The base of walks that derive something from an execution as it is stored. */

import type { Execution, ForEachRecord } from '../../../schema/execution.js';
import { isDone } from '../../../src/core/owed.js';
import { pathOf, withEnded } from '../../../src/core/paths.js';
import type { NodePlace, Plan, PlannedExecution } from '../../../src/core/plan-nodes.js';

export class ExecutionWalk {
  protected readonly plan: Plan;
  protected readonly execution: Execution;
  /** The execution with ended blocks still open, for iterations and paths. */
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

  /** The lists of the iteration that a loop is in, or of the slots that have an item. */
  protected listsInFlight({ lists }: NodePlace, { e, s }: Partial<ForEachRecord>) {
    // After a complete iteration the next one is new.
    if (e === 1) return [];
    return s === undefined ? lists : lists.filter((_, slot) => (s[slot] ?? -1) >= 0);
  }
}
