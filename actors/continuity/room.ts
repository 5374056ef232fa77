/** Executions, their handoffs, capsules and migrations. */

import { routeOf } from '../../src/base/ids.js';
import type { Offload } from '../../src/base/offload.js';
import type { Keyring } from '../../src/core/sealing/keys.js';
import type { CatalogRoom } from '../catalog/room.js';
import type { Kernel } from '../runtime/kernel.js';
import { Continuity, continuityOperations } from './operations.js';
import type { ContinuityRows } from './rows.js';

interface ContinuityNeeds extends Pick<CatalogRoom, 'plans'> {
  readonly keyring?: Keyring | undefined;
  readonly offload: Offload;
  readonly continuityRows: ContinuityRows;
}

export function openContinuity(kernel: Kernel, needs: ContinuityNeeds) {
  const { plans, keyring, offload, continuityRows: rows } = needs;
  const continuity = new Continuity({
    ...kernel,
    plans,
    keyring,
    offload,
    rows,
    newIdLike: (id) => kernel.ids.next(routeOf(id)),
  });
  return { parts: [continuity], operations: continuityOperations(continuity) };
}
