/** Sequences with their plans and names; on the first shard also definitions, API keys and tenant limits. */

import { type Kernel, onFirstShard } from '../runtime/kernel.js';
import { Catalog, type CatalogDeps, type CatalogNeededLoads } from './catalog.js';
import { keyOperations, tenantLimitOperations } from './front-rows.js';
import { Names } from './names.js';
import { Plans, SequenceBlocks } from './plans.js';

export interface CatalogNeeds extends Pick<CatalogDeps, 'deprecated'> {
  /** The number of routing tables so far. Names may resolve differently with each. */
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
    const operations = { ...keyOperations(kernel), ...tenantLimitOperations(kernel) };
    return { parts: [catalog], operations };
  });
  const blocks = new SequenceBlocks({ ...kernel, plans });
  return { plans, names, parts: [plans, names, blocks, definitions] };
}
