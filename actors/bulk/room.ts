/** Bulk jobs, on the first shard. */

import { LIMITS } from '../../src/base/limits.js';
import { BULK_RETRY } from '../instance/tables.js';
import { type Kernel, onFirstShard } from '../runtime/kernel.js';
import { pruning } from '../runtime/pruning.js';
import { BulkJobs } from './jobs.js';
import type { BulkLoads } from './loads.js';

export function openBulkJobs(kernel: Kernel<BulkLoads>) {
  const oldest = () => kernel.loader.oldestRetry();
  const retries = {
    name: 'old retries',
    by: BULK_RETRY.prune,
    keptMs: LIMITS.bulkJobKeptMs,
    oldest,
  };
  return {
    parts: [
      onFirstShard(kernel, () => new BulkJobs(kernel)),
      onFirstShard(kernel, () => pruning(kernel, retries)),
    ],
  };
}
