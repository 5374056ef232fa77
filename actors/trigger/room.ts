/** Triggers, on the first shard: the front thread reads and fires them. */

import type { Keyring } from '../../src/core/sealing/keys.js';
import { type Kernel, onFirstShard } from '../runtime/kernel.js';
import { type TriggerNeededLoads, Triggers } from './triggers.js';

export interface TriggerNeeds {
  readonly keyring?: Keyring | undefined;
}

export function openTriggers(kernel: Kernel<TriggerNeededLoads>, { keyring }: TriggerNeeds) {
  return { parts: [onFirstShard(kernel, () => new Triggers({ ...kernel, keyring }))] };
}
