/** Bulk jobs, on the first shard. */

import { type Kernel, onFirstShard } from '../runtime/kernel.js';
import { BulkJobs } from './jobs.js';
import type { BulkLoads } from './loads.js';
import { bulkOperations } from './operations.js';

export function openBulkJobs(kernel: Kernel<BulkLoads>) {
  const operations = onFirstShard(kernel, () => bulkOperations(new BulkJobs(kernel)));
  return { operations };
}
