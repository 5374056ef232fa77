/** Concurrency keys and rate limits. */

import type { Kernel } from '../runtime/kernel.js';
import { Keys } from './keys.js';
import type { LimitLoads } from './loads.js';
import { limitOperations } from './operations.js';
import { Rates } from './rates.js';

export function openLimits(kernel: Kernel<LimitLoads>) {
  const rates = new Rates(kernel);
  return { parts: [new Keys(kernel), rates], operations: limitOperations(rates) };
}
