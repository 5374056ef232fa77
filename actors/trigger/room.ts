/** Triggers, on the first shard: the front thread reads and fires them. */

import type { Keyring } from '../../src/core/sealing/keys.js';
import { type Kernel, onFirstShard } from '../runtime/kernel.js';
import type { RouteOperations } from '../runtime/operation.js';
import { type TriggerNeededLoads, Triggers } from './triggers.js';

export interface TriggerNeeds {
  readonly keyring?: Keyring | undefined;
}

export function openTriggers(kernel: Kernel<TriggerNeededLoads>, { keyring }: TriggerNeeds) {
  const operations = onFirstShard(kernel, () => {
    const triggers = new Triggers({ ...kernel, keyring });
    return {
      'triggers.create': { serve: (call) => triggers.create(call) },
      'triggers.update': { serve: (call) => triggers.update(call) },
      'triggers.delete': { serve: (call) => triggers.delete(call) },
    } satisfies RouteOperations;
  });
  return { operations };
}
