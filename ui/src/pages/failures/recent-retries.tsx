/** Retries of many instances that people still wait for, and what has come of them. */

import { useQuery } from '@tanstack/react-query';
import { useEngine } from '../../api/engine.tsx';
import { Panel } from '../../components/page.tsx';
import { isOfInterest } from '../../components/retry-outcome.tsx';
import { useNow } from '../../lib/now.ts';
import { JobTable } from '../jobs/job-table.tsx';

const LISTED = 50;
const SHOWN = 5;
const PACE_MS = 3000;

export function RecentRetries() {
  const { client } = useEngine();
  const now = useNow();
  const jobs = useQuery({
    queryKey: ['bulkJobs.list', 'recent'],
    queryFn: async ({ signal }) => await client.bulkJobs.list({ limit: LISTED }, { signal }),
    // The end of a job changes no instance.
    refetchInterval: ({ state }) =>
      state.data?.items.some(({ ended_at }) => ended_at === null) && PACE_MS,
    meta: { live: 'all', paceMs: PACE_MS },
  });
  const rows = jobs.data?.items.filter((job) => isOfInterest(job, now)).slice(0, SHOWN) ?? [];
  if (rows.length === 0) return null;
  return (
    <Panel title="Retries of the last day" isFlush>
      <JobTable label="Recent retries" rows={rows} />
    </Panel>
  );
}
