/** Waits a while for an engine that is starting. */

import type { MatchedContext } from './context.js';
import type { Outcome, RouterDeps } from './step.js';

export function start(
  { route }: MatchedContext,
  { gate }: Pick<RouterDeps, 'gate'>,
): Outcome | Promise<Outcome> {
  if (gate.state !== 'starting' || route.isAlwaysServed) return 'continue';
  return new Promise((resolve) => gate.whenStarted(() => resolve('continue')));
}
