/** The steps that identify the caller, check that this cell serves the tenant, and check what the caller may do. */

import { NAME_LENGTH_MAX } from '../../../schema/common.js';
import { signalRefusal, tenantIn } from '../auth.js';
import { tenantsNamed } from '../named-tenants.js';
import { after, isPublic, type MatchedContext, type Outcome, type RouterDeps } from './context.js';
import { checkedParams } from './routing.js';

/**
 * Refuses requests for another cell (docs/operate/cells.md), by the tenant in the headers, or without one by the
 * cell. Runs before the key is checked: only the cell of a tenant has its keys.
 *
 * @throws EngineError 400, 421 or 503, as the promise rejects with
 */
export function cell(context: MatchedContext, deps: RouterDeps): Outcome | Promise<Outcome> {
  const { request, route } = context;
  const { placement } = deps;
  if (placement === undefined || isPublic(route)) return 'continue';
  const tenant = route.tenant === 'none' ? '' : tenantIn(request);
  // The step `key` refuses a name that is too long, without a query to the directory.
  if (tenant.length > NAME_LENGTH_MAX) return 'continue';
  if (tenant !== '') return after(placement.admitNamed(tenant, () => isKnown(context, deps)));
  const named = request.header('x-cell');
  if (named !== undefined) placement.admitCell(named);
  return 'continue';
}

function isKnown({ request, route }: MatchedContext, { authorise }: RouterDeps): boolean {
  try {
    authorise(request, route);
    return true;
  } catch {
    return false;
  }
}

/** Identifies the caller. @throws EngineError 401, 403 or 400; 503 while the keys are not loaded */
export function key(context: MatchedContext, { authorise, guard }: RouterDeps): Outcome {
  const { request, route } = context;
  if (!isPublic(route)) guard?.(request);
  const caller = authorise(request, route);
  context.tenant = caller.tenant;
  context.key = caller.key;
  return 'continue';
}

/** Charges the request to its tenant. A public route has none. */
export function tenant(context: MatchedContext, { activity }: RouterDeps): Outcome {
  if (isPublic(context.route)) return 'continue';
  context.charged = context.tenant;
  activity.came(context.tenant, context.since);
  return 'continue';
}

const OUTBOX_ENTRY = '/webhooks/outbox/{id}';

/**
 * Like `cell`, for an identified caller: by the tenant of its key, or by the tenants in the path, query or body. A
 * new tenant is placed here before anything is written for it.
 *
 * @throws EngineError 400, 421 or 503, as the promise rejects with
 */
export function placement(context: MatchedContext, deps: RouterDeps): Outcome | Promise<Outcome> {
  const { request, route, tenant, params } = context;
  const { placement: cells } = deps;
  if (cells === undefined || isPublic(route)) return 'continue';
  const mustSettle = route.method !== 'GET';
  if (tenant !== '') return after(cells.admit(tenant, mustSettle));
  const admitAll = (tenants: readonly string[]) =>
    Promise.all(tenants.map((named) => cells.admit(named, mustSettle)));
  // A webhook is identified only by its id. The operation refuses an unknown id.
  if (route.path.startsWith(OUTBOX_ENTRY)) {
    const { id = '' } = checkedParams(context, deps);
    return after(deps.rows.tenantsOfWebhook(id).then(admitAll));
  }
  const named = tenantsNamed(deps, route, request, params);
  return after(named instanceof Promise ? named.then(admitAll) : admitAll(named));
}

/** Charges the cost to the tenant. @throws EngineError 429; the promise rejects with 429 or 409 */
export function admission(context: MatchedContext, deps: RouterDeps): Outcome | Promise<Outcome> {
  if (isPublic(context.route)) return 'continue';
  const admitted = deps.admission.admit(context);
  return admitted === undefined
    ? 'continue'
    : admitted.then((leave) => {
        context.leave = leave;
        return 'continue';
      });
}

/**
 * Refuses a signal that the key may not send. A caller that may not know of the instance gets the same response as
 * for an unknown id.
 *
 * @throws EngineError 403, 404 or 503, by the promise
 */
export function signal(
  { request, route, key, tenant, params }: MatchedContext,
  { rows }: RouterDeps,
): Outcome | Promise<Outcome> {
  if (route.answers === undefined) return 'continue';
  const refusal = signalRefusal(request, route.answers, key);
  if (refusal === undefined) return 'continue';
  return rows.instanceIsThere(tenant, params.id ?? '').then(() => {
    throw refusal;
  });
}
