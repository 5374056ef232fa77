/** Triggers, on the first shard: the front thread reads and fires them. */

import type { Keyring } from '../../src/core/sealing/keys.js';
import { type Kernel, onFirstShard } from '../runtime/kernel.js';
import { type TriggerNeededLoads, Triggers } from './triggers.js';

export function openTriggers(
  kernel: Kernel<TriggerNeededLoads>,
  { keyring }: { keyring?: Keyring | undefined },
) {
  return { parts: [onFirstShard(kernel, () => new Triggers({ ...kernel, keyring }))] };
}
