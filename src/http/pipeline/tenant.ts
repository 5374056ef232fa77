/** Counts the request for its tenant. A public route has none that it could be charged to. */

import type { MatchedContext } from './context.js';
import { isPublic, type Outcome, type RouterDeps } from './step.js';

export function tenant(
  context: MatchedContext,
  { activity }: Pick<RouterDeps, 'activity'>,
): Outcome {
  if (isPublic(context.route)) return 'continue';
  context.charged = context.tenant;
  activity.came(context.tenant, context.since);
  return 'continue';
}
