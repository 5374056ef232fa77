/** A table that updates by itself: rows change in place, and new ones wait for the user, so that none moves under the pointer. */

import type { UseQueryResult } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { formatCount } from '../lib/format.ts';
import { AsOf } from './as-of.tsx';
import { Button } from './button.tsx';
import styles from './live-table.module.css';
import { useAsked } from './steady.ts';
import { Table, type TableProps } from './table.tsx';

/**
 * @param props.of identifies the list and page: another one is shown at once
 * @param props.hasMore there is another page
 * @param props.tools in the line above the table
 */
export function LiveTable<Row>(
  props: Omit<TableProps<Row>, 'standOf'> & {
    readonly query: UseQueryResult<unknown>;
    readonly of: string;
    readonly hasMore?: boolean;
    readonly tools?: ReactNode;
  },
) {
  const { query, of, hasMore = false, tools, ...table } = props;
  const { rows, waiting, show } = useAsked(props.rows, props.idOf, { of, hasMore });
  const stands = new Map(
    rows.map(({ row, isGone, isBehind }) => [
      row,
      isGone ? ('gone' as const) : isBehind ? ('behind' as const) : undefined,
    ]),
  );
  const gone = rows.filter(({ isGone }) => isGone).length;
  /** All rows of the page are new: there may be further ones on the next. */
  const isMore = hasMore && waiting === props.rows.length;
  return (
    <>
      <div className={styles.strip}>
        <AsOf query={query} />
        <span role="status">
          {waiting + gone > 0 && (
            <Button className={styles.news} onClick={show}>
              {newsOf(`${formatCount(waiting)}${isMore ? '+' : ''}`, gone)}
            </Button>
          )}
        </span>
        <span className={styles.tools}>{tools}</span>
      </div>
      <Table
        {...table}
        isSticky
        rows={rows.map(({ row }) => row)}
        standOf={(row) => stands.get(row)}
      />
    </>
  );
}

/** Such as `6 new, 2 gone`. */
function newsOf(fresh: string, gone: number): string {
  return [fresh !== '0' && `${fresh} new`, gone > 0 && `${formatCount(gone)} gone`]
    .filter(Boolean)
    .join(', ');
}
