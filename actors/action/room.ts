/** The actions of people and keys; on the first shard also the removal of old ones. */

import { type Kernel, onFirstShard } from '../runtime/kernel.js';
import { pruning } from '../runtime/pruning.js';
import { Actions } from './actions.js';
import type { ActionLoads } from './loads.js';
import { ACTION } from './tables.js';

const DAY_MS = 86_400_000;

export function openActions(kernel: Kernel<ActionLoads>) {
  const { loader, settings } = kernel;
  const keptMs = settings.activityDays * DAY_MS;
  const oldest = () => loader.oldestAction();
  const old = onFirstShard(kernel, () =>
    keptMs === 0
      ? undefined
      : pruning(kernel, { name: 'old actions', by: ACTION.prune, keptMs, oldest }),
  );
  return { actions: new Actions(kernel), parts: [old] };
}
