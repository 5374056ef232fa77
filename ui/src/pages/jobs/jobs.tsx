/** Bulk changes that run in the background: their progress, and a way to cancel one. */

import type { BulkJob, BulkJobState } from 'durable-workflow-engine-client';
import { Layers } from 'lucide-react';
import { Link } from 'wouter';
import { useEngine } from '../../api/engine.tsx';
import { useAction } from '../../components/action.ts';
import { Badge, type Tone } from '../../components/badge.tsx';
import { Button } from '../../components/button.tsx';
import { ShortId } from '../../components/copy.tsx';
import { Empty } from '../../components/error-box.tsx';
import { ListTable, useList } from '../../components/list.tsx';
import { Page, Panel } from '../../components/page.tsx';
import type { Column } from '../../components/table.tsx';
import { Time } from '../../components/time.tsx';
import { formatCount, wordsOf } from '../../lib/format.ts';

const TONES: Record<BulkJobState, Tone> = {
  running: 'info',
  cancelling: 'warn',
  completed: 'ok',
  cancelled: 'idle',
  failed: 'danger',
};

const READ_EVERY_MS = 2_000;

const isUnderWay = ({ ended_at }: BulkJob) => ended_at === null;

const COLUMNS: readonly Column<BulkJob>[] = [
  { name: 'Job', cell: ({ id }) => <ShortId id={id} /> },
  { name: 'Change', cell: ({ operation }) => wordsOf(operation) },
  {
    name: 'State',
    cell: ({ state, error }) => (
      <>
        <Badge tone={TONES[state]}>{state}</Badge> {error}
      </>
    ),
  },
  { name: 'Found', isNumber: true, cell: ({ matched }) => formatCount(matched) },
  { name: 'Changed', isNumber: true, cell: ({ applied }) => formatCount(applied) },
  { name: 'Skipped', isNumber: true, cell: ({ skipped }) => formatCount(skipped) },
  { name: 'Refused', isNumber: true, cell: ({ failed }) => formatCount(failed) },
  { name: 'Started', cell: ({ created_at }) => <Time at={created_at} /> },
];

export default function Jobs() {
  const { client, allowed } = useEngine();
  const list = useList(['bulkJobs'], (page, options) => client.bulkJobs.list(page, options), {
    live: true,
    // Progress over skipped instances, and the end of a job, change no instance.
    refetchInterval: ({ state }) => state.data?.items.some(isUnderWay) && READ_EVERY_MS,
  });
  const cancel = useAction((id: string) => client.bulkJobs.cancel(id), {
    done: () => 'The job is being cancelled. Instances that it has changed stay changed.',
  });
  const end: Column<BulkJob> = {
    name: 'Action',
    cell: ({ id, state }) =>
      state === 'running' && (
        <Button isBusy={cancel.isBusy} onClick={() => cancel.run(id)}>
          Cancel
        </Button>
      ),
  };
  return (
    <Page title="Bulk jobs" about="Changes of many instances that run in the background.">
      <Panel title="Jobs, newest first" isFlush>
        <ListTable
          list={list}
          label="Bulk jobs"
          columns={allowed.operate ? [...COLUMNS, end] : COLUMNS}
          idOf={({ id }) => id}
          empty={
            <Empty title="No bulk jobs" icon={<Layers size={26} aria-hidden />}>
              <p>
                A change of more instances than one request can handle runs as a job.{' '}
                <Link href="/instances">Select instances to change</Link>
              </p>
            </Empty>
          }
        />
      </Panel>
    </Page>
  );
}
