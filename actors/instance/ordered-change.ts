/** What the changes of an order share. */

import type { Progress } from '../../src/core/progress.js';
import type { Turn } from '../runtime/turn.js';
import type { LiveInstance } from './live-instance.js';

/** What the changes of an order came to so far. */
export type Came = Progress | 'touched' | undefined;

/** What a change does in its turn; everything that can be refused is refused before. */
export type Change = (turn: Turn, before: Came) => Came;

export function putOwnership({ record }: Pick<LiveInstance, 'record'>, turn: Turn): void {
  turn.put('instance.ownership', record.id, {
    id: record.id,
    continuity_id: record.continuityId,
    ownership_epoch: record.ownershipEpoch,
    fence: record.fence,
  });
}
