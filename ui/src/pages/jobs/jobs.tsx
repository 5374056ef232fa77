/** Changes of many instances: who made them, their progress, and a way to cancel one. */

import type { BulkJob } from 'durable-workflow-engine-client';
import { Layers } from 'lucide-react';
import { Link } from 'wouter';
import { useList } from '../../components/list.tsx';
import { ListPanel } from '../../components/list-panel.tsx';
import { Page } from '../../components/page.tsx';
import { useJobColumns } from './job-table.tsx';

const READ_EVERY_MS = 2_000;

const isUnderWay = ({ ended_at }: BulkJob) => ended_at === null;

export default function Jobs() {
  const columns = useJobColumns();
  const list = useList('bulkJobs.list', [{}], {
    live: true,
    // Progress over skipped instances, and the end of a job, change no instance.
    refetchInterval: ({ state }) => state.data?.items.some(isUnderWay) && READ_EVERY_MS,
  });
  return (
    <Page title="Bulk jobs" about="Changes of many instances, and their results.">
      <ListPanel
        title="Jobs, newest first"
        label="Bulk jobs"
        list={list}
        columns={columns}
        idOf={({ id }) => id}
        empty={{
          title: 'No bulk jobs',
          icon: Layers,
          about: (
            <>
              Each change of many instances is listed here for seven days.{' '}
              <Link href="/instances">Select instances to change</Link>
            </>
          ),
        }}
      />
    </Page>
  );
}
