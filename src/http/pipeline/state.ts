/** Refuses what the engine cannot serve in its state. */

import type { Route } from '../../../schema/routes.js';
import type { EngineState } from '../engine-state.js';
import type { MatchedContext } from './context.js';
import type { Outcome, RouterDeps } from './step.js';

/** @throws EngineError 503 */
export function state({ route }: MatchedContext, { gate }: Pick<RouterDeps, 'gate'>): Outcome {
  if (route.isAlwaysServed || route.isDocument) return 'continue';
  const refusal = gate.refusal();
  if (refusal !== undefined && !mayRead(gate.state, route)) throw refusal;
  return 'continue';
}

/** What is served although the engine refuses everything else. */
function mayRead(current: EngineState, { owner, method }: Route): boolean {
  if (method !== 'GET') return false;
  // A resident actor answers without the database.
  return current === 'writes-fail' || (current === 'database-unavailable' && owner === 'by-id');
}
