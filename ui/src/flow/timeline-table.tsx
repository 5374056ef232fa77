/** The tries of a timeline as a table, a page at a time: the same for whoever does not see bars. */

import type { StepAttempt } from 'durable-workflow-engine-client';
import { useMemo, useState } from 'react';
import { Button } from '../components/button.tsx';
import { type Column, Table } from '../components/table.tsx';
import { formatClock, formatCount, formatDuration, formatInstant } from '../lib/format.ts';
import { StateMark } from './block-state.tsx';
import { timeOf } from './run-states.ts';
import styles from './timeline.module.css';
import { type TimelineIndex, TRY_NOTES, TRY_STATES, triesOf } from './timeline-rows.ts';
import { shownPass } from './words.ts';

const TRIES_PER_PAGE = 100;

type TableRow = ReturnType<typeof triesOf>[number];

const COLUMNS: readonly Column<TableRow>[] = [
  { name: 'Block', cell: ({ block, attempt }) => <code>{block?.path ?? attempt.block_id}</code> },
  {
    name: 'Pass',
    cell: ({ attempt }) => (attempt.iteration === '' ? '–' : shownPass(attempt.iteration)),
    isNumber: true,
  },
  { name: 'Try', cell: ({ attempt }) => attempt.attempt + 1, isNumber: true },
  {
    name: 'State',
    cell: ({ attempt: { state } }) => (
      <StateMark state={TRY_STATES[state]} text={TRY_NOTES[state]} />
    ),
  },
  { name: 'Queued', cell: ({ attempt }) => <Instant at={attempt.queued_at} /> },
  { name: 'Started', cell: ({ attempt }) => <Instant at={attempt.started_at} /> },
  { name: 'Ended', cell: ({ attempt }) => <Instant at={attempt.ended_at} /> },
  { name: 'Ran', cell: ({ attempt }) => tookText(attempt), isNumber: true },
  { name: 'Worker', cell: ({ attempt }) => attempt.worker_id ?? '–' },
  { name: 'Error', cell: ({ attempt }) => attempt.error?.message ?? '–' },
];

export function TimelineTable(props: {
  readonly index: TimelineIndex;
  readonly attempts: readonly StepAttempt[];
  readonly label: string;
}) {
  const { index, attempts, label } = props;
  const tries = useMemo(() => triesOf(index, attempts), [index, attempts]);
  const [page, setPage] = useState(0);
  const first = page * TRIES_PER_PAGE;
  const shown = tries.slice(first, first + TRIES_PER_PAGE);
  return (
    <>
      <Table
        label={label}
        columns={COLUMNS}
        rows={shown}
        idOf={({ attempt }) => attempt.id}
        empty={<p className="dim">No step has been tried yet.</p>}
      />
      {tries.length > TRIES_PER_PAGE && (
        <nav className={styles.more} aria-label="Pages of tries">
          <span className="dim small">
            {formatCount(first + 1)}–{formatCount(first + shown.length)} of{' '}
            {formatCount(tries.length)}
          </span>
          <Button disabled={page === 0} onClick={() => setPage(page - 1)}>
            Earlier
          </Button>
          <Button
            disabled={first + TRIES_PER_PAGE >= tries.length}
            onClick={() => setPage(page + 1)}
          >
            Later
          </Button>
        </nav>
      )}
    </>
  );
}

function tookText({ started_at, ended_at }: StepAttempt): string {
  const [from, to] = [timeOf(started_at), timeOf(ended_at)];
  return from === undefined || to === undefined ? '–' : formatDuration(Math.max(0, to - from));
}

function Instant({ at }: { readonly at: string | null }) {
  if (at === null) return '–';
  const date = new Date(at);
  return (
    <time dateTime={at} title={formatInstant(date)}>
      {formatClock(date, Date.now())}
    </time>
  );
}
