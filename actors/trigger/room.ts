/** Triggers, on the first shard: the front thread reads and fires them. */

import type { Keyring } from '../../src/core/sealing/keys.js';
import { type Kernel, onFirstShard } from '../runtime/kernel.js';
import { triggerOperations } from './operations.js';
import type { TriggerNeededLoads } from './triggers.js';
import { Triggers } from './triggers.js';

export interface TriggerNeeds {
  readonly keyring?: Keyring | undefined;
}

export function openTriggers(kernel: Kernel<TriggerNeededLoads>, { keyring }: TriggerNeeds) {
  const operations = onFirstShard(kernel, () =>
    triggerOperations(new Triggers({ ...kernel, keyring })),
  );
  return { operations };
}
