/** Reads and shows lists with cursor pagination. */

import {
  keepPreviousData,
  type UseQueryOptions,
  type UseQueryResult,
  useQuery,
} from '@tanstack/react-query';
import type { Page } from 'durable-workflow-engine-client';
import type { ReactNode } from 'react';
import { useEngine } from '../api/engine.tsx';
import { type ArgumentsOf, call, type OperationName, type ResultOf } from '../api/read.ts';
import { useFilters } from '../lib/address.ts';
import { type PageAsked, pageByOffset } from '../lib/offset.ts';
import { Empty } from './error-box.tsx';
import styles from './list.module.css';
import { LiveTable } from './live-table.tsx';
import { Loaded } from './loaded.tsx';
import { type Column, Pager, type Selection, Table } from './table.tsx';

const ROWS_A_PAGE = 50;

/** The engine examines a limited number of rows for one page: matches may lie further back. */
const LOOKS_MAX = 10;

export interface ListQuery<Row> {
  /** Identifies the rows: the filters and the page. */
  readonly of: string;
  readonly query: UseQueryResult<Page<Row>>;
  /** It is read again by itself. */
  readonly isLive: boolean;
  readonly cursor: string | undefined;
  readonly onPage: (cursor: string | undefined) => void;
}

export interface ListOptions<Row> {
  /** Name in the address, if a page has several lists. */
  readonly cursorName?: string;
  /** Read again when instances change, or when this one does. */
  readonly live?: boolean | string;
  /** Whether it is read at all. */
  readonly enabled?: boolean;
  /** Rows of a page. */
  readonly limit?: number;
  /** For rows whose changes are not changes of instances. */
  readonly refetchInterval?: UseQueryOptions<Page<Row>>['refetchInterval'];
}

type RowOf<Name extends OperationName> = ResultOf<Name> extends Page<infer Row> ? Row : never;

/** Reads one page of the list of an operation. @param args of the operation; the query comes last */
export function useList<Name extends OperationName>(
  name: Name,
  args: ArgumentsOf<Name>,
  options: ListOptions<RowOf<Name>> & {
    /** The operation has no cursors. */
    readonly isByOffset?: boolean;
  } = {},
): ListQuery<RowOf<Name>> {
  const { client } = useEngine();
  const given: readonly unknown[] = args;
  const [before, query] = [given.slice(0, -1), given.at(-1) as object];
  return useListOf<RowOf<Name>>(
    [name, ...given],
    (page, { signal }) => {
      const read = (asked: object) => {
        const own = [...before, { ...query, ...asked }] as unknown as ArgumentsOf<Name>;
        return call(client, name, own, { signal }) as Promise<Page<RowOf<Name>>>;
      };
      return options.isByOffset ? pageByOffset(page, read) : read(page);
    },
    options,
  );
}

/**
 * Reads one page of a list. The cursor is in the address, and the previous page stays until the next one has loaded.
 *
 * @param key of the query: the operation and its filters
 * @param read reads the page
 */
export function useListOf<Row>(
  key: readonly unknown[],
  read: (page: PageAsked, options: { readonly signal: AbortSignal }) => PromiseLike<Page<Row>>,
  options: ListOptions<Row> = {},
): ListQuery<Row> {
  const { cursorName = 'cursor', live, enabled = true, refetchInterval = false } = options;
  const { limit = ROWS_A_PAGE } = options;
  const [filters, change] = useFilters();
  const cursor = filters[cursorName];
  const query = useQuery({
    queryKey: [...key, cursor],
    queryFn: async ({ signal }) => {
      let page = await read({ limit, cursor }, { signal });
      for (let look = 1; look < LOOKS_MAX && isCut(page); look++) {
        page = await read({ limit, cursor: page.nextCursor }, { signal });
      }
      return page;
    },
    placeholderData: keepPreviousData,
    enabled,
    refetchInterval,
    ...(live && { meta: { live: live === true ? 'all' : live } }),
  });
  const of = JSON.stringify([...key, cursor, query.isPlaceholderData]);
  const isLive = live !== undefined && live !== false;
  return { of, query, isLive, cursor, onPage: (next) => change({ [cursorName]: next }) };
}

const NOTHING_YET = (
  <Empty title="No matches among the newest rows">
    <p>The next page searches further back. A filter by creation time is faster.</p>
  </Empty>
);

/** The link to the first page is below. */
export const NO_MORE = (
  <Empty title="This page is empty now">
    <p>Its rows were deleted or no longer match. Go back to the first page.</p>
  </Empty>
);

/** Nothing was found so far, but not everything was examined. */
function isCut<Row>({ items, nextCursor }: Page<Row>): boolean {
  return items.length === 0 && nextCursor !== undefined;
}

export interface ListTableProps<Row> {
  readonly list: ListQuery<Row>;
  readonly label: string;
  readonly columns: readonly Column<Row>[];
  readonly idOf: (row: Row) => string;
  readonly empty: ReactNode;
  readonly selection?: Selection | undefined;
  /** In the line above a list that updates by itself. */
  readonly tools?: ReactNode;
  readonly isCompact?: boolean;
}

/** The table of a list, with links to its other pages. */
export function ListTable<Row>(props: ListTableProps<Row>) {
  return (
    <Loaded query={props.list.query} height={320}>
      {(page) => <ListPage {...props} page={page} />}
    </Loaded>
  );
}

function ListPage<Row>(props: ListTableProps<Row> & { readonly page: Page<Row> }) {
  const { list, page, empty, tools, ...rest } = props;
  const { query, isLive, cursor, onPage } = list;
  const table = {
    ...rest,
    isBusy: query.isPlaceholderData,
    rows: page.items,
    empty: isCut(page) ? NOTHING_YET : cursor === undefined ? empty : NO_MORE,
  };
  return (
    <div className={query.isPlaceholderData ? styles.behind : undefined}>
      {/* The rows of the previous query, until the current one has loaded. */}
      {query.isPlaceholderData && <p className="hidden-text">Loading</p>}
      {isLive ? (
        <LiveTable
          {...table}
          query={query}
          of={list.of}
          hasMore={page.nextCursor !== undefined}
          tools={tools}
        />
      ) : (
        <Table {...table} />
      )}
      <Pager cursor={cursor} next={page.nextCursor} onPage={onPage} />
    </div>
  );
}
