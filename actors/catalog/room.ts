/** Sequences by their names, and on the first shard what there is one of: definitions, keys, limits of tenants. */

import { type Kernel, onFirstShard } from '../runtime/kernel.js';
import { ApiKeys } from './api-keys.js';
import { Catalog, type CatalogDeps } from './catalog.js';
import { Names } from './names.js';
import type { Plans } from './plans.js';
import { TenantLimitRows } from './tenant-limits.js';

export interface CatalogNeeds extends Pick<CatalogDeps, 'deprecated'> {
  readonly plans: Plans;
  /** How many tables of routes there have been: what names lead to may change with each. */
  readonly routeTables: () => number;
}

export function openCatalog(kernel: Kernel, { plans, routeTables, deprecated }: CatalogNeeds) {
  const { loader, shard, release, settings } = kernel;
  const { stepTimeoutMaxMs } = settings;
  return {
    names: new Names({
      loader,
      since: () => plans.deletions + routeTables(),
      forgotten: (version) =>
        release([{ kind: 'peer', shard: 0, message: { kind: 'names.settled', version, shard } }]),
    }),
    catalog: onFirstShard(kernel, () => new Catalog({ ...kernel, stepTimeoutMaxMs, deprecated })),
    apiKeys: onFirstShard(kernel, () => new ApiKeys(kernel)),
    tenantLimits: onFirstShard(kernel, () => new TenantLimitRows(kernel)),
  };
}
