/** The operations on sequences, API keys and tenant limits, on the first shard. */

import type { SequenceDeleteQuery } from '../../schema/sequence.js';
import type { Call, Operations, RouteOperations } from '../runtime/operation.js';
import type { ApiKeys, KeyRow, KeyUse } from './api-keys.js';
import type { Catalog } from './catalog.js';
import type { TenantLimitRows, TenantLimitsRow } from './tenant-limits.js';

export function sequenceOperations(catalog: Catalog) {
  const routes = {
    'sequences.create': {
      isLookedThrough: true,
      serve: (call, query) => catalog.create(call, query),
    },
    'sequences.validate': {
      isRead: true,
      isLookedThrough: true,
      serve: (call, query) => catalog.validate(call, query),
    },
    'sequences.update': { serve: (call) => catalog.update(call) },
    'sequences.deprecate': {
      serve: ({ request, tenant, target }) => catalog.deprecate(request, tenant, target),
    },
  } satisfies RouteOperations;
  /** The deletion of a sequence, and its end (`actors/instance/front/sequence-removal.ts`). */
  const own = {
    'catalog.delete': {
      serve: ({ request, tenant, target, body }: Call<SequenceDeleteQuery>) =>
        catalog.delete(request, tenant, target, body),
    },
    'catalog.forget': {
      serve: ({ request, target }: Call<undefined>) => catalog.forget(request, target),
    },
  } satisfies Operations;
  return { ...routes, ...own };
}

/** For the key registry of the front thread (`actors/catalog/front/api-keys.ts`). */
export function keyOperations(keys: ApiKeys) {
  return {
    'keys.insert': { serve: ({ request, body }: Call<KeyRow>) => keys.insert(request, body) },
    'keys.revoke': {
      serve: ({ request, tenant, body }: Call<KeyUse>) => keys.revoke(request, tenant, body),
    },
    'keys.used': {
      serve: ({ request, body }: Call<readonly KeyUse[]>) => keys.used(request, body),
    },
  } satisfies Operations;
}

/** For the front thread, which applies them (`actors/limits/front/tenant-limits.ts`). */
export function tenantLimitOperations(limits: TenantLimitRows) {
  return {
    'tenantLimits.store': {
      serve: ({ request, body }: Call<TenantLimitsRow>) => limits.put(request, body),
    },
    'tenantLimits.remove': {
      serve: ({ request, target }: Call<undefined>) => limits.delete(request, target),
    },
  } satisfies Operations;
}
