/** Sequences with their plans and names; on the first shard also definitions, API keys and tenant limits. */

import { type Kernel, onFirstShard } from '../runtime/kernel.js';
import { ApiKeys } from './api-keys.js';
import type { CatalogNeededLoads } from './catalog.js';
import { Catalog, type CatalogDeps } from './catalog.js';
import { Names } from './names.js';
import { keyOperations, sequenceOperations, tenantLimitOperations } from './operations.js';
import { Plans } from './plans.js';
import { SequenceBlocks } from './sequence-blocks.js';
import { TenantLimitRows } from './tenant-limits.js';

export interface CatalogNeeds extends Pick<CatalogDeps, 'deprecated'> {
  /** The number of routing tables so far: what names lead to may change with each. */
  readonly routeTables: () => number;
}

export type CatalogRoom = ReturnType<typeof openCatalog>;

export function openCatalog(
  kernel: Kernel<CatalogNeededLoads>,
  { routeTables, deprecated }: CatalogNeeds,
) {
  const { loader, shard, release, settings } = kernel;
  const plans = new Plans(loader);
  const names = new Names({
    loader,
    since: () => plans.deletions + routeTables(),
    forgotten: (version) =>
      release([{ kind: 'peer', shard: 0, message: { kind: 'names.settled', version, shard } }]),
  });
  const definitions = onFirstShard(kernel, () => {
    const { stepTimeoutMaxMs } = settings;
    const catalog = new Catalog({ ...kernel, stepTimeoutMaxMs, deprecated });
    const operations = {
      ...sequenceOperations(catalog),
      ...keyOperations(new ApiKeys(kernel)),
      ...tenantLimitOperations(new TenantLimitRows(kernel)),
    };
    return { parts: [catalog], operations };
  });
  const blocks = new SequenceBlocks({ ...kernel, plans });
  return { plans, names, parts: [plans, names, blocks, definitions] };
}
