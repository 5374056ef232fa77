/** The operations on bulk jobs. */

import type { Call, Operations, RouteOperations } from '../runtime/operation.js';
import type { BeginBulkJob, BulkJobs, BulkProgress } from './jobs.js';

export function bulkOperations(jobs: BulkJobs) {
  const routes = {
    'bulkJobs.cancel': { serve: (call) => jobs.cancel(call) },
  } satisfies RouteOperations;
  const own = {
    'bulkJobs.begin': { serve: (call: Call<BeginBulkJob>) => jobs.begin(call) },
    'bulkJobs.progress': { serve: (call: Call<BulkProgress>) => jobs.progress(call) },
  } satisfies Operations;
  return { ...routes, ...own };
}
