/** The tenants that a request of the root key names in its path, query or body. The operation validates them later. */

import { isTenantTooLong } from '../../schema/common.js';
import type { BodyRouteId, Route } from '../../schema/routes.js';
import { isJsonObject, type JsonValue } from '../base/json.js';
import { decodeUtf8 } from '../base/json-guard.js';
import { bodyIn, type FrontBodies } from './operation.js';
import type { HttpRequest } from './server.js';

const LISTS = ['instances', 'events'] as const;

/** Without duplicates. @throws EngineError 400, as the promise rejects with */
export function tenantsNamed(
  bodies: FrontBodies,
  route: Route,
  request: Pick<HttpRequest, 'query' | 'body'>,
  params: Readonly<Record<string, string>>,
): readonly string[] | Promise<readonly string[]> {
  if (route.path.startsWith('/tenants/')) return known([params.id]);
  if (route.body === undefined || route.isRaw === true) return tenantsQueried(request.query);
  const text = decodeUtf8(request.body);
  // The operation rejects the body.
  if (text === undefined) return [];
  const body = bodyIn(bodies, route.id as BodyRouteId, '', text) as JsonValue | Promise<JsonValue>;
  return body instanceof Promise ? body.then(tenantsIn) : tenantsIn(body);
}

export function tenantsQueried(query: string): readonly string[] {
  return known(new URLSearchParams(query).getAll('tenant_id'));
}

export function tenantsIn(body: JsonValue): readonly string[] {
  if (!isJsonObject(body)) return [];
  const { tenant_id: own } = body;
  const items = LISTS.flatMap((list) => (Array.isArray(body[list]) ? body[list] : []));
  const theirs = items.map((item) => (isJsonObject(item) ? item.tenant_id : undefined));
  return known([own, ...theirs]);
}

/** Without duplicates, and without impossible names, which the operation rejects. */
function known(tenants: readonly unknown[]): readonly string[] {
  const isName = (one: unknown) =>
    typeof one === 'string' && /\S/.test(one) && !isTenantTooLong(one) && !one.includes('\0');
  return [...new Set(tenants.filter(isName) as string[])];
}
