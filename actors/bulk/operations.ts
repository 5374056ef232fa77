/** The operations on changes of many instances that go on behind their answer. */

import {
  type Call,
  type EngineOperations,
  ofFirstShard,
  type RouteOperations,
} from '../runtime/operation.js';
import type { BeginBulkJob, BulkJobs, BulkProgress } from './jobs.js';

export interface BulkParts {
  readonly bulkJobs: BulkJobs | undefined;
}

export const BULK_OPERATIONS = {
  'bulkJobs.cancel': {
    serve: ({ bulkJobs }, call) => ofFirstShard(bulkJobs).cancel(call),
  },
} satisfies Partial<RouteOperations<BulkParts>>;

export const BULK_ENGINE_OPERATIONS = {
  'bulkJobs.begin': {
    serve: ({ bulkJobs }, call: Call<BeginBulkJob>) => ofFirstShard(bulkJobs).begin(call),
  },
  'bulkJobs.progress': {
    serve: ({ bulkJobs }, call: Call<BulkProgress>) => ofFirstShard(bulkJobs).progress(call),
  },
} satisfies EngineOperations<BulkParts>;
