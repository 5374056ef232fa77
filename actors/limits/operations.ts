/** The operations on rate limits. */

import { invalid } from '../../src/base/errors.js';
import { rateLimitId } from '../../src/base/ids.js';
import type { RouteOperations } from '../runtime/operation.js';
import type { Rates } from './rates.js';

export function limitOperations(rates: Rates) {
  return {
    'rateLimits.put': {
      serve: ({ request, tenant, target, body }) => {
        const place = { tenant_id: named(tenant), limit_key: target };
        rates.put(rateLimitId(tenant, target), request, place, body);
      },
    },
    'rateLimits.delete': {
      serve: ({ request, tenant, target }) =>
        rates.delete(rateLimitId(named(tenant), target), request),
    },
  } satisfies RouteOperations;
}

/** @throws EngineError 400 without a tenant, which only an optional header allows */
function named(tenant: string): string {
  if (tenant === '') throw invalid('x-tenant-id is required');
  return tenant;
}
