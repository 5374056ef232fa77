/**
 * Whether the tenants of a request live in the cell of this engine (docs/operate/cells.md): by its headers before its
 * key is looked at, then by its key, or by what else it names.
 */

import { NAME_LENGTH_MAX } from '../../schema/common.js';
import type { Route } from '../../schema/routes.js';
import { type Authorise, tenantIn } from './auth.js';
import { tenantsNamed } from './named-tenants.js';
import type { FrontBodies } from './operation.js';
import type { Residence } from './residence.js';
import type { RouterRows } from './router.js';
import type { HttpRequest } from './server.js';

interface ResidentDeps extends FrontBodies {
  readonly authorise: Authorise;
  readonly residence?: Residence | undefined;
  readonly rows: Pick<RouterRows, 'tenantsOfWebhook'>;
}

type Params = Readonly<Record<string, string>>;

const OUTBOX_ENTRY = '/webhooks/outbox/{id}';

/**
 * What the request says of itself by its headers: a tenant, or with none the cell.
 *
 * @throws EngineError 400, 421 or 503, as the promise rejects with
 */
export function admitNamed(
  { residence, authorise }: ResidentDeps,
  request: HttpRequest,
  route: Route,
): Promise<void> | undefined {
  if (residence === undefined || route.capability === 'public') return undefined;
  const tenant = route.tenant === 'none' ? '' : tenantIn(request);
  // One that is too long is refused with its key, or without one: nobody is asked about it.
  if (tenant.length > NAME_LENGTH_MAX) return undefined;
  if (tenant !== '') return residence.admitNamed(tenant, () => isKnown(authorise, request, route));
  const cell = request.header('x-cell');
  if (cell !== undefined) residence.admitCell(cell);
  return undefined;
}

/** Whether this cell knows the key, and may use it for the tenant that the request names. */
function isKnown(authorise: Authorise, request: HttpRequest, route: Route): boolean {
  try {
    authorise(request, route);
    return true;
  } catch {
    return false;
  }
}

/**
 * Now that the caller is known: the tenant of its key, or those that the request names elsewhere than in a
 * header. A new one is settled here before anything is written for it.
 *
 * @param tenant of the key or the header; '': of neither
 * @param checked the parameters of the path
 * @throws EngineError 400, 421 or 503, as the promise rejects with
 */
export function admitCaller(
  deps: ResidentDeps,
  request: HttpRequest,
  { route, params }: { readonly route: Route; readonly params: Params },
  tenant: string,
  checked: () => Params,
): Promise<unknown> | undefined {
  const { residence } = deps;
  if (residence === undefined) return undefined;
  const mustSettle = route.method !== 'GET';
  if (tenant !== '') return residence.admit(tenant, mustSettle);
  const admitAll = (tenants: readonly string[]) =>
    Promise.all(tenants.map((named) => residence.admit(named, mustSettle)));
  // A webhook is named by its id alone. One that is not there is refused by who serves it.
  if (route.path.startsWith(OUTBOX_ENTRY)) {
    return deps.rows.tenantsOfWebhook(checked().id ?? '').then(admitAll);
  }
  const named = tenantsNamed(deps, route, request, params);
  return named instanceof Promise ? named.then(admitAll) : admitAll(named);
}
