/**
 * Whether the tenants of a request are served by this engine, where several engines share the tenants: checked by
 * the headers before the key, then by the tenant of the key, or by the tenants that the request names elsewhere.
 */

import { NAME_LENGTH_MAX } from '../../schema/common.js';
import type { Route } from '../../schema/routes.js';
import type { EngineError } from '../base/errors.js';
import { type Authorise, tenantIn } from './auth.js';
import { tenantsNamed } from './named-tenants.js';
import type { FrontBodies } from './operation.js';
import type { RouterRows } from './router.js';
import type { HttpRequest } from './server.js';

export interface Placement {
  /**
   * Admits requests of the tenant. Undefined: admitted at once.
   *
   * @param mustSettle the request may write
   * @throws EngineError 421 or 503; the promise rejects with the same
   */
  admit(tenant: string, mustSettle: boolean): Promise<void> | undefined;
  /**
   * The same for the tenant in a header, before the key is checked.
   *
   * @param isKnown whether the key is known here
   * @throws EngineError 421 or 503; the promise rejects with the same
   */
  admitNamed(tenant: string, isKnown: () => boolean): Promise<void> | undefined;
  /** For a request that names no tenant: the value of `x-cell`. @throws EngineError 400 or 421 */
  admitCell(named: string): void;
  /** Calls `end` once the tenant is no longer served here. @returns a function that cancels this */
  whenGone(tenant: string, isPoll: boolean, end: (why: EngineError) => void): () => void;
}

interface PlacementDeps extends FrontBodies {
  readonly authorise: Authorise;
  /** Undefined: this engine serves all tenants. */
  readonly placement?: Placement | undefined;
  readonly rows: Pick<RouterRows, 'tenantsOfWebhook'>;
}

type Params = Readonly<Record<string, string>>;

const OUTBOX_ENTRY = '/webhooks/outbox/{id}';

/**
 * Checks the tenant of the headers or, without one, `x-cell`.
 *
 * @throws EngineError 400, 421 or 503; the promise rejects with the same
 */
export function admitNamed(
  { placement, authorise }: PlacementDeps,
  request: HttpRequest,
  route: Route,
): Promise<void> | undefined {
  if (placement === undefined || route.capability === 'public') return undefined;
  const tenant = route.tenant === 'none' ? '' : tenantIn(request);
  // A name that is too long is refused later, without a lookup.
  if (tenant.length > NAME_LENGTH_MAX) return undefined;
  if (tenant !== '') return placement.admitNamed(tenant, () => isKnown(authorise, request, route));
  const cell = request.header('x-cell');
  if (cell !== undefined) placement.admitCell(cell);
  return undefined;
}

/** Whether the key is known here and allows the tenant that the request names. */
function isKnown(authorise: Authorise, request: HttpRequest, route: Route): boolean {
  try {
    authorise(request, route);
    return true;
  } catch {
    return false;
  }
}

/**
 * Checks the tenant of the key or, for the root key, the tenants that the body or the path names. A new tenant is
 * settled here before anything is written for it.
 *
 * @param tenant of the key or the header; '': neither names one
 * @param checked the parameters of the path
 * @throws EngineError 400, 421 or 503; the promise rejects with the same
 */
export function admitCaller(
  deps: PlacementDeps,
  request: HttpRequest,
  { route, params }: { readonly route: Route; readonly params: Params },
  tenant: string,
  checked: () => Params,
): Promise<unknown> | undefined {
  const { placement } = deps;
  if (placement === undefined) return undefined;
  const mustSettle = route.method !== 'GET';
  if (tenant !== '') return placement.admit(tenant, mustSettle);
  const admitAll = (tenants: readonly string[]) =>
    Promise.all(tenants.map((named) => placement.admit(named, mustSettle)));
  // Only the id names the webhook. An unknown id is refused by the operation.
  if (route.path.startsWith(OUTBOX_ENTRY)) {
    return deps.rows.tenantsOfWebhook(checked().id ?? '').then(admitAll);
  }
  const named = tenantsNamed(deps, route, request, params);
  return named instanceof Promise ? named.then(admitAll) : admitAll(named);
}
