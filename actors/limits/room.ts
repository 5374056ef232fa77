/** Concurrency keys and rate limits. */

import type { Kernel } from '../runtime/kernel.js';
import { Keys } from './keys.js';
import type { LimitLoads } from './loads.js';
import { Rates } from './rates.js';

export function openLimits(kernel: Kernel<LimitLoads>) {
  return { parts: [new Keys(kernel), new Rates(kernel)] };
}
