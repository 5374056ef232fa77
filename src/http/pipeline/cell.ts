/**
 * Refuses what another cell serves (docs/operate/cells.md), by the tenant that the headers name, or with none by the
 * cell. It comes before the key: the keys of a tenant are known in its own cell alone.
 */

import { NAME_LENGTH_MAX } from '../../../schema/common.js';
import { tenantIn } from '../auth.js';
import type { MatchedContext } from './context.js';
import { after, isPublic, type Outcome, type RouterDeps } from './step.js';

type Deps = Pick<RouterDeps, 'authorise' | 'placement'>;

/** @throws EngineError 400, 421 or 503, as the promise rejects with */
export function cell(context: MatchedContext, deps: Deps): Outcome | Promise<Outcome> {
  const { request, route } = context;
  const { placement } = deps;
  if (placement === undefined || isPublic(route)) return 'continue';
  const tenant = route.tenant === 'none' ? '' : tenantIn(request);
  // A name that is too long is refused with its key: the directory is not asked about it.
  if (tenant.length > NAME_LENGTH_MAX) return 'continue';
  if (tenant !== '') return after(placement.admitNamed(tenant, () => isKnown(context, deps)));
  const named = request.header('x-cell');
  if (named !== undefined) placement.admitCell(named);
  return 'continue';
}

/** Whether the key is known in this cell and allows the named tenant. */
function isKnown({ request, route }: MatchedContext, { authorise }: Deps): boolean {
  try {
    authorise(request, route);
    return true;
  } catch {
    return false;
  }
}
