/** Counts the request for its tenant. A public route has none that it could be charged to. */

import type { MatchedContext } from './context.js';
import { isPublic, type Outcome, type RouterDeps } from './step.js';

export function tenant(context: MatchedContext, { crowd }: Pick<RouterDeps, 'crowd'>): Outcome {
  if (isPublic(context.route)) return 'continue';
  context.charged = context.tenant;
  crowd.came(context.tenant, context.since);
  return 'continue';
}
