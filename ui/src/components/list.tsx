/** Lists that page by cursor: how they are read, and how they are shown. */

import { keepPreviousData, type UseQueryResult, useQuery } from '@tanstack/react-query';
import type { List, Page } from 'durable-workflow-engine-client';
import type { ReactNode } from 'react';
import { useFilters } from '../lib/address.ts';
import { Loaded } from './loaded.tsx';
import { type Column, Pager, type Selection, Table } from './table.tsx';

const ROWS_A_PAGE = 50;

export interface ListQuery<Row> {
  readonly query: UseQueryResult<Page<Row>>;
  readonly cursor: string | undefined;
  readonly onPage: (cursor: string | undefined) => void;
}

/**
 * One page of a list. Its cursor lives in the address, and the page before stays until the next one is there.
 *
 * @param key of the query: the operation and its filters
 * @param read asks for the page, such as `(page, options) => client.cron.list(page, options)`
 * @param options.cursorName in the address, where one page has several lists
 * @param options.live read again when instances change, or when this one does
 */
export function useList<Row>(
  key: readonly unknown[],
  read: (
    page: { readonly limit: number; readonly cursor: string | undefined },
    options: { readonly signal: AbortSignal },
  ) => List<Row>,
  options: { readonly cursorName?: string; readonly live?: boolean | string } = {},
): ListQuery<Row> {
  const { cursorName = 'cursor', live } = options;
  const [filters, change] = useFilters();
  const cursor = filters[cursorName];
  const query = useQuery({
    queryKey: [...key, cursor],
    queryFn: async ({ signal }) => read({ limit: ROWS_A_PAGE, cursor }, { signal }),
    placeholderData: keepPreviousData,
    ...(live && { meta: { live: live === true ? 'all' : live } }),
  });
  return { query, cursor, onPage: (next) => change({ [cursorName]: next }) };
}

/** The table of a list, with the way to its other pages. */
export function ListTable<Row>(props: {
  readonly list: ListQuery<Row>;
  readonly label: string;
  readonly columns: readonly Column<Row>[];
  readonly idOf: (row: Row) => string;
  readonly empty: ReactNode;
  readonly selection?: Selection | undefined;
}) {
  const { list, selection, empty, ...table } = props;
  const { query, cursor, onPage } = list;
  return (
    <Loaded query={query} height={320}>
      {({ items, nextCursor }) => (
        <>
          <Table {...table} rows={items} empty={empty} selection={selection} />
          <Pager cursor={cursor} next={nextCursor} onPage={onPage} />
        </>
      )}
    </Loaded>
  );
}
