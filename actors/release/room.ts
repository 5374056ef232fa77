/** Routing of creations on every shard, and the owner of the releases on the first shard. */

import type { ValidateRelease } from '../../schema/release.js';
import type { CatalogRoom } from '../catalog/room.js';
import { type Kernel, onFirstShard } from '../runtime/kernel.js';
import type { Call, Operations, RouteOperations } from '../runtime/operation.js';
import { Releases, type ReleasesLoads, type ValidationEnd } from './releases.js';
import { Routing } from './routing.js';

export type ReleaseRoom = ReturnType<typeof openReleases>;

export function openReleases(kernel: Kernel<ReleasesLoads>, { plans }: Pick<CatalogRoom, 'plans'>) {
  const routing = new Routing(kernel);
  const releases = onFirstShard(kernel, () => new Releases({ ...kernel, plans }));
  const operations = releases && releaseOperations(releases);
  return { routing, releases, parts: [routing, releases], operations };
}

export function releaseOperations(releases: Releases) {
  const routes = {
    'releases.create': { serve: (call) => releases.create(call) },
    'releases.canary': { serve: (call) => releases.canary(call) },
    'releases.evaluate': { serve: (call) => releases.evaluate(call) },
    'releases.promote': { serve: (call) => releases.promote(call) },
    'releases.pause': { serve: (call) => releases.pause(call) },
    'releases.rollback': { serve: (call) => releases.rollback(call) },
  } satisfies RouteOperations;
  /** Called by the validations on the front thread (`front/validation.ts`). */
  const own = {
    'releases.beginValidation': {
      serve: (call: Call<ValidateRelease>) => releases.beginValidation(call),
    },
    'releases.endValidation': {
      serve: (call: Call<ValidationEnd>) => releases.endValidation(call),
    },
  } satisfies Operations;
  return { ...routes, ...own };
}
