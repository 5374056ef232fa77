/** Bulk jobs as rows: who changed what, how far it is, and what came of a retry. */

import type { BulkJob } from 'durable-workflow-engine-client';
import { useEngine } from '../../api/engine.tsx';
import { ActionButton } from '../../components/act.tsx';
import { ShortId } from '../../components/copy.tsx';
import { isOfInterest, RetryOutcome } from '../../components/retry-outcome.tsx';
import { StateWord } from '../../components/state-word.tsx';
import { type Column, Table } from '../../components/table.tsx';
import { Time } from '../../components/time.tsx';
import { formatCount } from '../../lib/format.ts';
import { changeText, resultText, scopeText } from './job-texts.ts';

const COLUMNS: readonly Column<BulkJob>[] = [
  {
    name: 'Change',
    cell: (job) => (
      <>
        {changeText(job)} <ShortId id={job.id} />
        <div className="dim small clamped">{scopeText(job)}</div>
      </>
    ),
  },
  {
    name: 'State',
    cell: ({ state, error }) => (
      <>
        <StateWord state={state} /> {error}
      </>
    ),
  },
  {
    name: 'Result',
    cell: (job) => (isOfInterest(job, Date.now()) ? <RetryOutcome job={job} /> : resultText(job)),
  },
  { name: 'Found', isNumber: true, cell: ({ matched }) => formatCount(matched) },
  { name: 'By', cell: ({ requested_by }) => requested_by ?? <span className="dim">–</span> },
  { name: 'Started', cell: ({ created_at }) => <Time at={created_at} /> },
];

/** The columns, with a way to stop a job for those who may. */
export function useJobColumns(): readonly Column<BulkJob>[] {
  const { client, allowed } = useEngine();
  if (!allowed.operate) return COLUMNS;
  const end: Column<BulkJob> = {
    name: 'Action',
    cell: ({ id, state }) =>
      state === 'running' && (
        <ActionButton
          label="Cancel"
          act={() => client.bulkJobs.cancel(id)}
          done={() => 'The job is being cancelled. Instances that it has changed stay changed.'}
        />
      ),
  };
  return [...COLUMNS, end];
}

export function JobTable(props: { readonly label: string; readonly rows: readonly BulkJob[] }) {
  const columns = useJobColumns();
  return <Table {...props} columns={columns} idOf={({ id }) => id} />;
}
