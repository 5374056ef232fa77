/** Concurrency keys, throttles and rate limits. */

import { type Kernel, onFirstShard } from '../runtime/kernel.js';
import { Keys } from './keys.js';
import type { LimitLoads } from './loads.js';
import { oldGrants } from './old-grants.js';
import { RatePatternRows, RatePatterns } from './rate-patterns.js';
import { Rates } from './rates.js';
import { Throttles } from './throttles.js';

export function openLimits(kernel: Kernel<LimitLoads>) {
  const patterns: RatePatterns = new RatePatterns({
    ...kernel,
    changed: (tenants) => rates.patternsChanged(tenants),
  });
  const ofFirstShard = onFirstShard(kernel, () => {
    const rows = new RatePatternRows(kernel, patterns);
    return { rows, parts: [rows, oldGrants(kernel)] };
  });
  const rates: Rates = new Rates({ ...kernel, patterns, patternRows: ofFirstShard?.rows });
  const keys = new Keys(kernel);
  return { slots: keys, parts: [keys, new Throttles(kernel), patterns, rates, ofFirstShard] };
}
