/** Finds out who is calling, and for which tenant. */

import type { MatchedContext } from './context.js';
import { isPublic, type Outcome, type RouterDeps } from './step.js';

/** @throws EngineError 401, 403 or 400; 503 while the keys are not loaded */
export function key(
  context: MatchedContext,
  { authorise, guard }: Pick<RouterDeps, 'authorise' | 'guard'>,
): Outcome {
  const { request, route } = context;
  if (!isPublic(route)) guard?.(request);
  const caller = authorise(request, route);
  context.tenant = caller.tenant;
  context.key = caller.key;
  return 'continue';
}
