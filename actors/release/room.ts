/** Routing of creations on every shard, and the owner of the releases on the first shard. */

import type { CatalogRoom } from '../catalog/room.js';
import { type Kernel, onFirstShard } from '../runtime/kernel.js';
import { releaseOperations } from './operations.js';
import { Releases } from './releases.js';
import { Routing } from './routing.js';
import type { StoreLoads } from './store.js';

export type ReleaseRoom = ReturnType<typeof openReleases>;

export function openReleases(kernel: Kernel<StoreLoads>, { plans }: Pick<CatalogRoom, 'plans'>) {
  const routing = new Routing(kernel);
  const releases = onFirstShard(kernel, () => new Releases({ ...kernel, plans }));
  const operations = releases && releaseOperations(releases);
  return { routing, releases, parts: [routing, releases], operations };
}
