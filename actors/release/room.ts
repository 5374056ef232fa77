/** Routing of creations on every shard, and the owner of the releases on the first shard. */

import type { CatalogRoom } from '../catalog/room.js';
import { type Kernel, onFirstShard } from '../runtime/kernel.js';
import { Releases, type ReleasesLoads } from './releases.js';
import { Routing } from './routing.js';

export type ReleaseRoom = ReturnType<typeof openReleases>;

export function openReleases(kernel: Kernel<ReleasesLoads>, { plans }: Pick<CatalogRoom, 'plans'>) {
  const routing = new Routing(kernel);
  const releases = onFirstShard(kernel, () => new Releases({ ...kernel, plans }));
  return { routing, releases, parts: [routing, releases] };
}
