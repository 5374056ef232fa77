/** Checks the parameters of the path. */

import { invalid } from '../../base/errors.js';
import { validOf } from '../body.js';
import { type MatchedContext, NO_PARAMS, type Params } from './context.js';
import type { Outcome, RouterDeps } from './step.js';

type Deps = Pick<RouterDeps, 'validators'>;

/** @throws EngineError 400 */
export function parameters(context: MatchedContext, deps: Deps): Outcome {
  context.params = checkedParams(context, deps);
  return 'continue';
}

/** @throws EngineError 400 */
export function checkedParams(
  { request, route, params }: MatchedContext,
  { validators }: Deps,
): Params {
  if (route.params === undefined) return NO_PARAMS;
  // No text of the database can hold it, so nothing has such a name.
  if (request.path.includes('%00')) throw invalid('the path holds U+0000');
  return validOf(validators.parseParams(route.id, params)) as Params;
}
