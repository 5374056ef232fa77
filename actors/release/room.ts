/** Releases: how the names of sequences lead to versions, and on the first shard the releases themselves. */

import type { Plans } from '../catalog/plans.js';
import { type Kernel, onFirstShard } from '../runtime/kernel.js';
import { Releases } from './releases.js';
import { Routing } from './routing.js';

export function openReleases(kernel: Kernel, plans: Plans) {
  return {
    routing: new Routing(kernel),
    releases: onFirstShard(kernel, () => new Releases({ ...kernel, plans })),
  };
}
