/** What every route asks for: key, capabilities and tenant. */

import { CAPABILITIES } from '../../schema/route-row.js';
import { ROUTES, type Route } from '../../schema/routes.js';
import { code, table } from './markdown.js';
import type { Regions } from './regions.js';

const TENANT = { required: 'required', optional: 'in the request', none: 'none' } as const;

export function authorizationRegions(): Regions {
  const heads = ['route', 'asks for', ...CAPABILITIES, 'tenant'];
  return { routes: table(heads, Object.values(ROUTES).map(rowOf)) };
}

function rowOf({ capability, tenant, method, path }: Route): string[] {
  const allowed: readonly string[] = capability === 'public' ? [] : capability;
  const marks = CAPABILITIES.map((word) => (allowed.includes(word) ? '✓' : ''));
  const asks = capability === 'public' ? 'no key' : allowed.length === 0 ? 'root key' : 'key';
  return [code(`${method} ${path}`), asks, ...marks, TENANT[tenant]];
}
