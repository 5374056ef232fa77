/** Bulk jobs, on the first shard. */

import { type Kernel, onFirstShard } from '../runtime/kernel.js';
import { BulkJobs } from './jobs.js';
import type { BulkLoads } from './loads.js';

export function openBulkJobs(kernel: Kernel<BulkLoads>) {
  return { parts: [onFirstShard(kernel, () => new BulkJobs(kernel))] };
}
