/**
 * The same as `cell` now that the caller is known: by the tenant of its key, or by the tenants that the request names
 * elsewhere than in a header. A new tenant is settled here before anything is written for it.
 */

import { tenantsNamed } from '../named-tenants.js';
import type { MatchedContext } from './context.js';
import { checkedParams } from './parameters.js';
import { after, isPublic, type Outcome, type RouterDeps } from './step.js';

const OUTBOX_ENTRY = '/webhooks/outbox/{id}';

/** @throws EngineError 400, 421 or 503, as the promise rejects with */
export function placement(
  context: MatchedContext,
  deps: Pick<RouterDeps, 'placement' | 'rows' | 'validators' | 'offload' | 'places'>,
): Outcome | Promise<Outcome> {
  const { request, route, tenant, params } = context;
  const { placement: cells } = deps;
  if (cells === undefined || isPublic(route)) return 'continue';
  const mustSettle = route.method !== 'GET';
  if (tenant !== '') return after(cells.admit(tenant, mustSettle));
  const admitAll = (tenants: readonly string[]) =>
    Promise.all(tenants.map((named) => cells.admit(named, mustSettle)));
  // A webhook is named by its id alone. An unknown id is refused by the operation.
  if (route.path.startsWith(OUTBOX_ENTRY)) {
    const { id = '' } = checkedParams(context, deps);
    return after(deps.rows.tenantsOfWebhook(id).then(admitAll));
  }
  const named = tenantsNamed(deps, route, request, params);
  return after(named instanceof Promise ? named.then(admitAll) : admitAll(named));
}
