/**
 * Refuses a signal that the key may not send. A caller that may not know of the instance gets the same answer as for
 * an unknown id.
 */

import { signalRefusal } from '../auth.js';
import type { MatchedContext } from './context.js';
import type { Outcome, RouterDeps } from './step.js';

/** @throws EngineError 403, 404 or 503, by the promise */
export function signal(
  { request, route, key, tenant, params }: MatchedContext,
  { rows }: Pick<RouterDeps, 'rows'>,
): Outcome | Promise<Outcome> {
  if (route.answers === undefined) return 'continue';
  const refusal = signalRefusal(request, route.answers, key);
  if (refusal === undefined) return 'continue';
  return rows.instanceIsThere(tenant, params.id ?? '').then(() => {
    throw refusal;
  });
}
