/** Changes of many instances: who made them, their progress, and a way to cancel one. */

import type { BulkJob } from 'durable-workflow-engine-client';
import { Layers } from 'lucide-react';
import { Link } from 'wouter';
import { useEngine } from '../../api/engine.tsx';
import { Empty } from '../../components/error-box.tsx';
import { ListTable, useList } from '../../components/list.tsx';
import { Page, Panel } from '../../components/page.tsx';
import { useJobColumns } from './job-table.tsx';

const READ_EVERY_MS = 2_000;

const isUnderWay = ({ ended_at }: BulkJob) => ended_at === null;

export default function Jobs() {
  const { client } = useEngine();
  const columns = useJobColumns();
  const list = useList(['bulkJobs'], (page, options) => client.bulkJobs.list(page, options), {
    live: true,
    // Progress over skipped instances, and the end of a job, change no instance.
    refetchInterval: ({ state }) => state.data?.items.some(isUnderWay) && READ_EVERY_MS,
  });
  return (
    <Page title="Bulk jobs" about="Changes of many instances, and their results.">
      <Panel title="Jobs, newest first" isFlush>
        <ListTable
          list={list}
          label="Bulk jobs"
          columns={columns}
          idOf={({ id }) => id}
          empty={
            <Empty title="No bulk jobs" icon={Layers}>
              <p>
                Each change of many instances is listed here for seven days.{' '}
                <Link href="/instances">Select instances to change</Link>
              </p>
            </Empty>
          }
        />
      </Panel>
    </Page>
  );
}
