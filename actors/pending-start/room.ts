/** Creations that sequences collect, and the instances that they start. */

import type { CatalogRoom } from '../catalog/room.js';
import type { ReleaseRoom } from '../release/room.js';
import type { Kernel } from '../runtime/kernel.js';
import { type PendingStartNeededLoads, PendingStarts } from './pending-starts.js';

export interface PendingStartNeeds
  extends Pick<CatalogRoom, 'plans' | 'names'>,
    Pick<ReleaseRoom, 'routing'> {}

export function openPendingStarts(
  kernel: Kernel<PendingStartNeededLoads>,
  needs: PendingStartNeeds,
) {
  return { parts: [new PendingStarts({ ...kernel, ...needs })] };
}
