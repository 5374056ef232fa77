/** What every route requires: a key with one of its capabilities, and a tenant. */

import { ROUTES, type Route } from '../../schema/routes.js';
import { code, table } from './markdown.js';
import type { Regions } from './regions.js';

const TENANT = { required: 'required', optional: 'in the request', none: 'none' } as const;

export function authorizationRegions(): Regions {
  const heads = ['route', 'key', 'tenant'];
  return { routes: table(heads, Object.values(ROUTES).map(rowOf)) };
}

function rowOf({ capability, tenant, method, path }: Route): string[] {
  const key = capability === 'public' ? 'none' : capability.join(', ') || 'root key';
  return [code(`${method} ${path}`), key, TENANT[tenant]];
}
