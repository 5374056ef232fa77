/** The causes of failures, largest first; one of them can be opened. */

import { type UseQueryResult, useQuery } from '@tanstack/react-query';
import { CircleCheck } from 'lucide-react';
import type { ReactNode } from 'react';
import { Link } from 'wouter';
import { useEngine } from '../../api/engine.tsx';
import { Badge } from '../../components/badge.tsx';
import type { BulkFilter } from '../../components/bulk-dialog.tsx';
import { Empty } from '../../components/error-box.tsx';
import { LiveTable } from '../../components/live-table.tsx';
import { Sparkline } from '../../components/sparkline.tsx';
import { type Column, Table } from '../../components/table.tsx';
import { Time } from '../../components/time.tsx';
import { hrefOf } from '../../lib/address.ts';
import { countOf, formatCount, formatShare } from '../../lib/format.ts';
import { type Affected, type Cause, causesOf } from './causes.ts';
import styles from './failures.module.css';
import { LAST_DAY, type Period, startOf } from './periods.ts';

const PACE_MS = 5000;

export function useCauses(period: Period = LAST_DAY, sequence?: string) {
  const { client } = useEngine();
  return useQuery({
    queryKey: ['instances.failures', period.name, sequence],
    queryFn: async ({ signal }) => {
      const failed_after = startOf(period, Date.now());
      const query = { sequence_name: sequence, failed_after };
      const { groups, ...rest } = await client.instances.failures(query, { signal });
      return { ...rest, failed_after, causes: causesOf(groups) };
    },
    // The engine examines thousands of instances for it.
    meta: { live: 'all', paceMs: PACE_MS },
  });
}

/** @param props.more columns after the default ones */
export function CauseTable(props: {
  readonly rows: readonly Cause[];
  readonly period: Period;
  readonly sequence?: string | undefined;
  readonly failedAfter?: string | undefined;
  readonly more?: readonly Column<Cause>[];
  /** Of a table that updates by itself. */
  readonly live?: { readonly query: UseQueryResult<unknown>; readonly of: string };
  readonly opened?: {
    readonly id: string | undefined;
    readonly content: (row: Cause) => ReactNode;
  };
}) {
  const { rows, period, sequence, failedAfter, more = [], opened } = props;
  const within = { sequence, failedAfter };
  const table = {
    label: 'Failures by cause',
    columns: [
      {
        name: 'Count',
        isNumber: true,
        cell: (cause: Cause) => (
          <Link href={hrefOf('/instances', addressOf(cause, within))} className={styles.count}>
            {formatCount(cause.count)}
          </Link>
        ),
      },
      ...(period.words === undefined ? [] : overTime(period.words)),
      ...COLUMNS,
      ...more,
    ],
    rows,
    idOf: ({ id }: Cause) => id,
    opened,
    empty: (
      <Empty
        title={
          period.words === undefined ? 'No failed instances' : `Nothing failed in ${period.words}`
        }
        icon={CircleCheck}
      >
        <p>Failed instances are listed here until they are retried, cancelled or deleted.</p>
      </Empty>
    ),
  };
  return props.live ? <LiveTable {...table} {...props.live} /> : <Table {...table} />;
}

function overTime(words: string): readonly Column<Cause>[] {
  return [
    {
      name: 'Over time',
      cell: ({ counts, count, isNew }) => (
        <span className={styles.trend}>
          <Sparkline
            counts={counts}
            label={`${countOf(count, 'failure')} in ${words}, at most ${formatCount(Math.max(...counts))} in one of ${counts.length} intervals`}
          />
          {isNew && <Badge tone="danger">new</Badge>}
        </span>
      ),
    },
    {
      name: 'Share of runs',
      isNumber: true,
      cell: ({ share }) =>
        share === undefined ? (
          <span className="dim">–</span>
        ) : (
          <span title="Of the newest 500 runs of each version in the period">
            {formatShare(share)}
          </span>
        ),
    },
  ];
}

const COLUMNS: readonly Column<Cause>[] = [
  {
    name: 'Reason',
    cell: ({ example, reason, code, handler }) => (
      <div className={`${styles.place} ${styles.cause}`}>
        <div className="clamped">
          <Link href={`/instances/${example.id}`} title={example.message}>
            {reason}
          </Link>
        </div>
        <code className="dim small">{code}</code>
        {handler !== null && (
          <span className="dim small">
            {' '}
            of <code>{handler}</code>
          </span>
        )}
      </div>
    ),
  },
  {
    name: 'Sequences',
    cell: ({ affected: [first, ...others] }) => (
      <div className={styles.place}>
        {placeOf(first)}
        {others.length > 0 && (
          <span className="dim small"> and {countOf(others.length, 'other')}</span>
        )}
      </div>
    ),
  },
  { name: 'Last seen', cell: ({ lastAt }) => <Time at={lastAt} /> },
];

export function placeOf({ name, versions, blocks }: Affected): ReactNode {
  const [block, ...others] = blocks;
  return (
    <>
      <Link href={hrefOf('/sequences', { name })}>{name}</Link>{' '}
      <span className="dim small">
        {versions.length === 1 ? 'version' : 'versions'} {versions.join(', ')}
        {block !== undefined && (
          <>
            {' '}
            at <code>{block}</code>
            {others.length > 0 && ` and ${countOf(others.length, 'other block')}`}
          </>
        )}
      </span>
    </>
  );
}

interface Within {
  /** The sequence that the page is about. */
  readonly sequence: string | undefined;
  readonly failedAfter: string | undefined;
}

/** Members of a cause that lie in one place only narrow the search. */
function placesOf({ groups }: Cause) {
  const only = <T,>(values: readonly T[]) =>
    new Set(values).size === 1 ? (values[0] as T) : undefined;
  return {
    namespace: only(groups.map((group) => group.namespace)),
    sequence_id: only(groups.map((group) => group.sequence_id)),
    sequence_name: only(groups.map((group) => group.sequence_name)),
  };
}

/**
 * The filter for the instances of a cause. The engine has no filter for failures without a handler, so it may match
 * more; the dialog tells the user.
 */
export function filterOf(cause: Cause, { sequence, failedAfter }: Within): BulkFilter {
  const { namespace, sequence_id, sequence_name } = placesOf(cause);
  return {
    states: ['failed'],
    namespace,
    sequence_id,
    sequence_name: sequence ?? sequence_name,
    failed_after: failedAfter,
    failure_code: cause.code,
    failure_reason: cause.reason,
    failure_handler: cause.handler ?? undefined,
  };
}

/** The same filter for the address of the list of instances. */
function addressOf(cause: Cause, within: Within): Readonly<Record<string, string | undefined>> {
  const { states: _, sequence_name: sequence, ...filter } = filterOf(cause, within);
  return { ...filter, sequence, state: 'failed' } as Record<string, string | undefined>;
}
