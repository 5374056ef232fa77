/** The statistics of steps as a table, and those of one block as facts. */

import type { UseQueryResult } from '@tanstack/react-query';
import type { SequenceSteps, StepStatistics } from 'durable-workflow-engine-client';
import { Link } from 'wouter';
import { useChunk } from '../../components/chunk.tsx';
import { Loaded } from '../../components/loaded.tsx';
import { Facts, Panel } from '../../components/page.tsx';
import { type Column, Table } from '../../components/table.tsx';
import { hottestOf, isFailing, shareText, spanText } from '../../flow/heat.ts';
import type { Outline } from '../../flow/outline.ts';
import { formatCount, formatDuration } from '../../lib/format.ts';
import styles from './sequences.module.css';

const durationOf = (ms: number | null) => (
  <span className={styles.whole}>{ms === null ? '–' : spanText(ms)}</span>
);

export function StepFacts({ step }: { readonly step: StepStatistics }) {
  const { runs, failures, share, total_ms, here_now } = step;
  return (
    <div className={styles.numbers}>
      <Facts
        facts={{
          Runs: formatCount(runs),
          Failed: formatCount(failures),
          p50: durationOf(step.duration_p50_ms),
          p95: durationOf(step.duration_p95_ms),
          'Share of time': shareText(share),
          Total: formatDuration(total_ms),
          'Here now': formatCount(here_now),
        }}
      />
    </div>
  );
}

export function StepTable(props: {
  readonly query: UseQueryResult<SequenceSteps>;
  readonly outline: Outline;
  /** The address that selects a block. */
  readonly hrefOf: (path: string) => string;
}) {
  return (
    <Panel title="Where time goes" isFlush>
      <Loaded query={props.query} height={200}>
        {({ steps }) => <Rows {...props} rows={hottestOf(props.outline, steps)} />}
      </Loaded>
    </Panel>
  );
}

function Rows(props: {
  readonly rows: readonly StepStatistics[];
  readonly outline: Outline;
  readonly hrefOf: (path: string) => string;
}) {
  const { rows, outline, hrefOf } = props;
  const [shown, more] = useChunk(rows.length);
  const columns: readonly Column<StepStatistics>[] = [
    {
      name: 'Step',
      cell: ({ block_id }) => {
        const path = outline.pathOf.get(block_id);
        return path === undefined ? block_id : <Link href={hrefOf(path)}>{block_id}</Link>;
      },
    },
    {
      name: 'Share',
      cell: ({ share }) => (
        <span className={styles.share}>
          <span style={{ width: `${share * 100}%` }} />
          {shareText(share)}
        </span>
      ),
      isNumber: true,
    },
    { name: 'Runs', cell: ({ runs }) => formatCount(runs), isNumber: true },
    {
      name: 'Failed',
      cell: (step) => (
        <span className={isFailing(step) ? styles.wrong : undefined}>
          {formatCount(step.failures)}
        </span>
      ),
      isNumber: true,
    },
    { name: 'p50', cell: (step) => durationOf(step.duration_p50_ms), isNumber: true },
    { name: 'p95', cell: (step) => durationOf(step.duration_p95_ms), isNumber: true },
    { name: 'Here', cell: ({ here_now }) => formatCount(here_now), isNumber: true },
  ];
  return (
    <>
      <Table
        label="Steps by share of time"
        columns={columns}
        rows={rows.slice(0, shown)}
        idOf={({ block_id }) => block_id}
        empty={<p className={`dim ${styles.padded}`}>No step has run in this period.</p>}
      />
      {more && <div className={styles.padded}>{more}</div>}
    </>
  );
}
