/** The tries of a timeline as a table, a page at a time: the same for whoever does not see bars. */

import { useMemo, useState } from 'react';
import { Button } from '../components/button.tsx';
import { type Column, Table } from '../components/table.tsx';
import { formatClock, formatCount, formatDuration, formatInstant } from '../lib/format.ts';
import { StateMark } from './block-state.tsx';
import styles from './timeline.module.css';
import { type TableTry, type TimelineIndex, triesOf } from './timeline-rows.ts';
import { shownPass } from './words.ts';

const TRIES_PER_PAGE = 100;

const COLUMNS: readonly Column<TableTry>[] = [
  { name: 'Block', cell: ({ path }) => <code>{path}</code> },
  {
    name: 'Pass',
    cell: ({ iteration }) => (iteration === '' ? '–' : shownPass(iteration)),
    isNumber: true,
  },
  {
    name: 'Try',
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
    name: 'Took',
    cell: ({ tookMs }) => (tookMs === undefined ? '–' : formatDuration(tookMs)),
    isNumber: true,
  },
  { name: 'Worker', cell: ({ bar }) => bar.worker ?? '–' },
  { name: 'Error', cell: ({ bar }) => bar.error ?? '–' },
];

export function TimelineTable(props: { readonly index: TimelineIndex; readonly label: string }) {
  const { index, label } = props;
  const tries = useMemo(() => triesOf(index), [index]);
  const [page, setPage] = useState(0);
  const first = page * TRIES_PER_PAGE;
  const shown = tries.slice(first, first + TRIES_PER_PAGE);
  return (
    <>
      <Table
        label={label}
        columns={COLUMNS}
        rows={shown}
        idOf={({ path, iteration, bar }) => `${path} ${iteration} ${bar.key}`}
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

function Instant({ at }: { readonly at: number | undefined }) {
  if (at === undefined) return '–';
  const date = new Date(at);
  return (
    <time dateTime={date.toISOString()} title={formatInstant(date)}>
      {formatClock(date, Date.now())}
    </time>
  );
}
