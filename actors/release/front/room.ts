/** Releases on the front thread: reads, diffs of definitions, and validations. */

import type { FrontKernel, FrontRoom } from '../../../src/http/front-room.js';
import type { Shards } from '../../runtime/shards.js';
import type { releaseOperations as ownerOperations } from '../operations.js';
import { releaseDiffOperations } from './diffs.js';
import { releaseOperations } from './operations.js';
import { Validations } from './validation.js';

export function openReleaseFront(kernel: FrontKernel<Shards<typeof ownerOperations>>) {
  const { offload, offloadPool, settings } = kernel;
  const { unpoliciedRetry } = settings;
  const validations = new Validations({ ...kernel, pool: offloadPool, unpoliciedRetry });
  return {
    parts: [validations],
    operations: { ...releaseOperations, ...releaseDiffOperations(offload) },
    // While the shard still answers, so that releases in validation become drafts again.
    drain: () => validations.stop(),
  } satisfies FrontRoom;
}
