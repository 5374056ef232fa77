/** The operations on sequences and on the tenants' keys, on the first shard. */

import type { SequenceDeleteQuery } from '../../schema/sequence.js';
import {
  type Call,
  type EngineOperations,
  ofFirstShard,
  type RouteOperations,
} from '../runtime/operation.js';
import type { ApiKeys, KeyRow, KeyUse } from './api-keys.js';
import type { Catalog } from './catalog.js';
import type { TenantLimitRows, TenantLimitsRow } from './tenant-limits.js';

export interface CatalogParts {
  readonly catalog: Catalog | undefined;
  readonly apiKeys: ApiKeys | undefined;
  readonly tenantLimits: TenantLimitRows | undefined;
}

export const SEQUENCE_OPERATIONS = {
  'sequences.create': {
    isLookedThrough: true,
    serve: ({ catalog }, call, query) => ofFirstShard(catalog).create(call, query),
  },
  'sequences.validate': {
    isRead: true,
    isLookedThrough: true,
    serve: ({ catalog }, call, query) => ofFirstShard(catalog).validate(call, query),
  },
  'sequences.update': { serve: ({ catalog }, call) => ofFirstShard(catalog).update(call) },
  'sequences.deprecate': {
    serve: ({ catalog }, { request, tenant, target }) =>
      ofFirstShard(catalog).deprecate(request, tenant, target),
  },
} satisfies Partial<RouteOperations<CatalogParts>>;

/** The deletion of a sequence, and the end of what follows it (`actors/instance/front/sequence-removal.ts`). */
export const CATALOG_ENGINE_OPERATIONS = {
  'catalog.delete': {
    serve: ({ catalog }, { request, tenant, target, body }: Call<SequenceDeleteQuery>) =>
      ofFirstShard(catalog).delete(request, tenant, target, body),
  },
  'catalog.forget': {
    serve: ({ catalog }, { request, target }: Call<undefined>) =>
      ofFirstShard(catalog).forget(request, target),
  },
} satisfies EngineOperations<CatalogParts>;

/** What the key registry of the front thread has stored (`actors/catalog/front/api-keys.ts`). */
export const KEY_ENGINE_OPERATIONS = {
  'keys.insert': {
    serve: ({ apiKeys }, { request, body }: Call<KeyRow>) =>
      ofFirstShard(apiKeys).insert(request, body),
  },
  'keys.revoke': {
    serve: ({ apiKeys }, { request, tenant, body }: Call<KeyUse>) =>
      ofFirstShard(apiKeys).revoke(request, tenant, body),
  },
  'keys.used': {
    serve: ({ apiKeys }, { request, body }: Call<readonly KeyUse[]>) =>
      ofFirstShard(apiKeys).used(request, body),
  },
} satisfies EngineOperations<CatalogParts>;

/** What the front thread applies (`actors/limits/front/tenant-limits.ts`). */
export const TENANT_ENGINE_OPERATIONS = {
  'tenantLimits.store': {
    serve: ({ tenantLimits }, { request, body }: Call<TenantLimitsRow>) =>
      ofFirstShard(tenantLimits).put(request, body),
  },
  'tenantLimits.remove': {
    serve: ({ tenantLimits }, { request, target }: Call<undefined>) =>
      ofFirstShard(tenantLimits).delete(request, target),
  },
} satisfies EngineOperations<CatalogParts>;
