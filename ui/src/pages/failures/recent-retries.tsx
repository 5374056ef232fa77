/** Retries of many instances that people still wait for, and what has come of them. */

import { useRead } from '../../api/read.ts';
import { Panel } from '../../components/page.tsx';
import { isOfInterest } from '../../components/retry-outcome.tsx';
import { useNow } from '../../lib/now.ts';
import { JobTable } from '../jobs/job-table.tsx';

const LISTED = 50;
const SHOWN = 5;
const PACE_MS = 3000;

export function RecentRetries() {
  const now = useNow();
  const jobs = useRead('bulkJobs.list', [{ limit: LISTED }], {
    // The end of a job changes no instance.
    refetchInterval: ({ state }) =>
      state.data?.items.some(({ ended_at }) => ended_at === null) && PACE_MS,
    live: 'all',
    paceMs: PACE_MS,
  });
  const rows = jobs.data?.items.filter((job) => isOfInterest(job, now)).slice(0, SHOWN) ?? [];
  if (rows.length === 0) return null;
  return (
    <Panel title="Retries of the last day" isFlush>
      <JobTable label="Recent retries" rows={rows} />
    </Panel>
  );
}
