/** What became of the instances that a job has retried, read from the engine as they change. */

import type { BulkJob } from 'durable-workflow-engine-client';
import { useRead } from '../api/read.ts';
import { outcomeText } from '../lib/outcome-text.ts';

/** The engine reads the state of each retried instance for it. */
const PACE_MS = 3000;
const OF_INTEREST_MS = 24 * 60 * 60 * 1000;

export function isRetry({ request }: BulkJob): boolean {
  return request.action === 'retry' && request.dry_run !== true;
}

/** Whether people still wait for the result. */
export function isOfInterest(job: BulkJob, now: number): boolean {
  return isRetry(job) && (job.ended_at === null || now - Date.parse(job.ended_at) < OF_INTEREST_MS);
}

export function useJob(id: string) {
  return useRead('bulkJobs.get', [id], {
    enabled: id !== '',
    // The progress of a job over skipped instances changes none.
    refetchInterval: ({ state }) => (state.data?.ended_at == null ? PACE_MS : false),
    live: 'all',
    paceMs: PACE_MS,
  });
}

/** @param props.job as last listed, until its outcome is read */
export function RetryOutcome({ job }: { readonly job: BulkJob }) {
  const read = useJob(job.id).data;
  return <span className="whole">{outcomeText(read ?? { ...job, outcome: null })}</span>;
}
