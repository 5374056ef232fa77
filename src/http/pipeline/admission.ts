/** Takes the cost of the request from the budget of its tenant. */

import type { MatchedContext } from './context.js';
import { isPublic, type Outcome, type RouterDeps } from './step.js';

/** @throws EngineError 429; the promise rejects with one, or with 409 */
export function admission(
  context: MatchedContext,
  deps: Pick<RouterDeps, 'admission'>,
): Outcome | Promise<Outcome> {
  const { request, route, tenant, key, params } = context;
  if (isPublic(route)) return 'continue';
  const isRoot = key === undefined;
  const admitted = deps.admission.admit({ route, tenant, isRoot, body: request.body, params });
  return admitted === undefined
    ? 'continue'
    : admitted.then((leave) => {
        context.leave = leave;
        return 'continue';
      });
}
