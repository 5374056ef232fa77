/** The attempts of a timeline as a paginated table, as an accessible alternative to the bars. */

import { useMemo, useState } from 'react';
import { Button } from '../components/button.tsx';
import { type Column, Table } from '../components/table.tsx';
import { formatClock, formatCount, formatDuration, formatInstant } from '../lib/format.ts';
import { StateMark } from './block-state.tsx';
import { shownIteration } from './iteration.ts';
import styles from './timeline.module.css';
import { attemptsOf, type TableAttempt, type TimelineIndex } from './timeline-rows.ts';

const ATTEMPTS_PER_PAGE = 100;

const COLUMNS: readonly Column<TableAttempt>[] = [
  { name: 'Block', cell: ({ path }) => <code>{path}</code> },
  {
    name: 'Iteration',
    cell: ({ iteration }) => (iteration === '' ? '–' : shownIteration(iteration)),
    isNumber: true,
  },
  {
    name: 'Attempt',
    cell: ({ bar: { attempt } }) => (attempt === undefined ? '–' : attempt + 1),
    isNumber: true,
  },
  {
    name: 'State',
    cell: ({ bar: { state, note } }) => <StateMark state={state} text={note || state} />,
  },
  { name: 'Queued', cell: ({ queuedAt }) => <Instant at={queuedAt} /> },
  { name: 'Started', cell: ({ startedAt }) => <Instant at={startedAt} /> },
  { name: 'Ended', cell: ({ endedAt }) => <Instant at={endedAt} /> },
  {
    name: 'Duration',
    cell: ({ tookMs }) => (tookMs === undefined ? '–' : formatDuration(tookMs)),
    isNumber: true,
  },
  { name: 'Worker', cell: ({ bar }) => bar.worker ?? '–' },
  { name: 'Error', cell: ({ bar }) => bar.error ?? '–' },
];

export function TimelineTable(props: { readonly index: TimelineIndex; readonly label: string }) {
  const { index, label } = props;
  const attempts = useMemo(() => attemptsOf(index), [index]);
  const [page, setPage] = useState(0);
  const first = page * ATTEMPTS_PER_PAGE;
  const shown = attempts.slice(first, first + ATTEMPTS_PER_PAGE);
  return (
    <>
      <Table
        label={label}
        columns={COLUMNS}
        rows={shown}
        idOf={({ path, iteration, bar }) => `${path} ${iteration} ${bar.key}`}
        empty={<p className="dim">No step has run yet.</p>}
      />
      {attempts.length > ATTEMPTS_PER_PAGE && (
        <nav className={styles.more} aria-label="Pages of attempts">
          <span className="dim small">
            {formatCount(first + 1)}–{formatCount(first + shown.length)} of{' '}
            {formatCount(attempts.length)}
          </span>
          <Button disabled={page === 0} onClick={() => setPage(page - 1)}>
            Earlier
          </Button>
          <Button
            disabled={first + ATTEMPTS_PER_PAGE >= attempts.length}
            onClick={() => setPage(page + 1)}
          >
            Later
          </Button>
        </nav>
      )}
    </>
  );
}

function Instant({ at }: { readonly at: number | undefined }) {
  if (at === undefined) return '–';
  const date = new Date(at);
  return (
    <time dateTime={date.toISOString()} title={formatInstant(date)}>
      {formatClock(date, Date.now())}
    </time>
  );
}
