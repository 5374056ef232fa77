/** When an instance counts as claimed, and what is counted of its steps. */

import type { EngineEvent, Progress, Snapshot } from '../../src/core/progress.js';
import type { Turn } from '../runtime/turn.js';

/** By these the engine takes an instance up; the others are moves by request, which run nothing. */
const TAKES_UP: ReadonlySet<EngineEvent['kind']> = new Set<EngineEvent['kind']>([
  'wake',
  'admitted',
  'step.outcome',
  'step.refused',
  'rate.granted',
]);

/** What has to be known from before the event. */
export interface Before {
  readonly isScheduled: boolean;
  readonly hasBegun: boolean;
}

export function beforeOf({ state, execution }: Snapshot): Before {
  return { isScheduled: state === 'scheduled', hasBegun: execution.t !== null };
}

/**
 * An instance is claimed each time that the engine goes on with it from `scheduled`: it leaves that
 * state, or begins, or gets a step done between two delays.
 */
export function countProgress(
  turn: Turn,
  event: EngineEvent,
  before: Before,
  snapshot: Snapshot,
  { counts }: Progress,
): void {
  if (before.isScheduled && TAKES_UP.has(event.kind)) {
    const { isScheduled, hasBegun } = beforeOf(snapshot);
    if (!isScheduled || hasBegun !== before.hasBegun || counts.stepsExecuted > 0) {
      turn.count('engine_instances_claimed_total');
    }
  }
  turn.count('engine_steps_executed_total', counts.stepsExecuted);
  turn.count('engine_steps_failed_total', counts.stepsFailed);
  turn.count('engine_steps_retried_total', counts.stepsRetried);
}
