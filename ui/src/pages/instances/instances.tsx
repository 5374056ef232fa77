/** The instances that match the filters, newest first, and bulk actions on them. */

import { keepPreviousData, useQuery } from '@tanstack/react-query';
import type { Page as Listed, TaskInstance } from 'durable-workflow-engine-client';
import { ListTree, TriangleAlert } from 'lucide-react';
import { type ReactNode, useState } from 'react';
import { Link } from 'wouter';
import { useEngine } from '../../api/engine.tsx';
import { type BulkAction, BulkDialog, type BulkFilter } from '../../components/bulk-dialog.tsx';
import { Button, ButtonRow, LinkButton } from '../../components/button.tsx';
import { CloseContext } from '../../components/dialog.tsx';
import { Empty } from '../../components/error-box.tsx';
import { UnreadFields, useUnreadFields } from '../../components/field.tsx';
import { ListTable, useListOf } from '../../components/list.tsx';
import { Facts, Page, Panel } from '../../components/page.tsx';
import type { Column } from '../../components/table.tsx';
import { type Filters, useFilters } from '../../lib/address.ts';
import { countOf, wordsOf } from '../../lib/format.ts';
import { useKept } from '../../lib/kept.ts';
import { columnOf, durationMs, INSTANCE, type InstanceColumn } from './columns.tsx';
import { ExportDialog } from './export-dialog.tsx';
import { FilterBar } from './filter-bar.tsx';
import { filterWords, lasting, selectionOf, statesOf, totalIn, type Wrong } from './filters.ts';
import styles from './instances.module.css';
import { type ExportKind, ViewTools } from './view-tools.tsx';
import {
  columnsIn,
  DEFAULT_COLUMNS,
  membersOf,
  nextSort,
  SORTED_MAX,
  type Sort,
  searchOf,
  sortIn,
  titleOf,
} from './views.ts';

interface Bulk {
  readonly action: BulkAction;
  readonly filter: BulkFilter;
  readonly children: ReactNode;
}

const ACTIONS: readonly (readonly [action: BulkAction, label: string])[] = [
  ['retry', 'Retry'],
  ['pause', 'Pause'],
  ['resume', 'Resume'],
  ['cancel', 'Cancel'],
];

const COUNT_PACE_MS = 5000;

export default function Instances() {
  const { client, allowed, tenant } = useEngine();
  const [filters, change] = useFilters();
  const [bulk, setBulk] = useState<Bulk>();
  const { cursor: _, columns: __, sort: ___, ...asked } = filters;
  const [keptColumns, keepColumns] = useKept('columns of instances', columnsKept);
  const [isCompact, setCompact] = useKept('compact rows', Boolean);
  const keys = columnsIn(filters, keptColumns);
  const sort = sortIn(filters);
  const [exported, setExported] = useState<ExportKind>();
  const [selected, setSelected] = useSelected(JSON.stringify(asked));
  const { wrong } = selectionOf(filters, Date.now());
  const isWrong = Object.keys(wrong).length > 0;
  const [unread, tellUnread] = useUnreadFields();
  const enabled = !isWrong && unread === 0;
  const list = useListOf<TaskInstance>(
    ['instances.list', asked, filters.sort],
    async (page, options) => {
      const { query } = selectionOf(filters, Date.now());
      const found = await client.instances.list({ ...query, ...page }, options);
      return sort ? sorted(found, sort) : found;
    },
    { live: true, enabled, ...(sort && { limit: SORTED_MAX }) },
  );
  const { data: counts } = useQuery({
    queryKey: ['instances.counts', { ...asked, state: undefined }],
    queryFn: ({ signal }) => {
      const { state: _, ...query } = selectionOf(filters, Date.now()).query;
      return client.instances.counts(query, { signal });
    },
    enabled,
    placeholderData: keepPreviousData,
    meta: { live: 'all', paceMs: COUNT_PACE_MS },
  });
  const columns = [
    INSTANCE,
    ...keys.flatMap((key) => {
      const column = columnOf(key);
      return column === undefined ? [] : [{ ...column, ...sorting(column, sort, change) }];
    }),
  ];
  const isFiltered = Object.keys(asked).length > 0;
  /** The rows are not those of the filters: nobody has seen what a bulk action would reach. */
  const isBehind = unread > 0 || list.query.isPlaceholderData || list.query.data === undefined;
  const act = (action: BulkAction) =>
    setBulk(
      selected.size > 0
        ? {
            action,
            filter: { ids: [...selected] },
            children: <p>The {countOf(selected.size, 'instance')} that you have selected.</p>,
          }
        : {
            action,
            filter: selectionOf(filters, Date.now()).bulk,
            children: <Reach filters={filters} tenant={tenant} />,
          },
    );
  return (
    <Page
      title="Instances"
      actions={
        allowed.start && (
          <LinkButton href="/sequences" kind="primary">
            Start an instance
          </LinkButton>
        )
      }
    >
      <UnreadFields value={tellUnread}>
        <FilterBar wrong={wrong} counts={counts} />
      </UnreadFields>
      <Panel
        title={titleOf(sort, list.query.data?.hasMore)}
        isFlush
        actions={
          allowed.operate && (
            <ButtonRow>
              <span className="dim small">
                {selected.size > 0
                  ? `${countOf(selected.size, 'instance')} selected`
                  : isFiltered
                    ? 'All matches'
                    : 'All'}
              </span>
              {ACTIONS.map(([action, label]) => (
                <Button key={action} disabled={isWrong || isBehind} onClick={() => act(action)}>
                  {label}
                </Button>
              ))}
            </ButtonRow>
          )
        }
      >
        {isWrong ? (
          <WrongFilters wrong={wrong} />
        ) : (
          <ListTable
            list={list}
            label="Instances"
            columns={columns}
            isCompact={isCompact}
            tools={
              <>
                {counts && (
                  <span className={styles.total} title="Counted among the newest 10,000 instances">
                    Total {totalIn(counts, statesOf(filters))}
                  </span>
                )}
                <ViewTools
                  columns={keys}
                  members={membersOf(list.query.data?.items ?? [])}
                  onColumns={(next) => {
                    keepColumns(next);
                    change({ columns: next.join(','), cursor: filters.cursor });
                  }}
                  isCompact={isCompact}
                  onCompact={setCompact}
                  search={searchOf(filters, keys)}
                  onExport={setExported}
                />
              </>
            }
            idOf={({ id }) => id}
            selection={allowed.operate ? { ids: selected, change: setSelected } : undefined}
            empty={<NoInstances isFiltered={isFiltered} />}
          />
        )}
      </Panel>
      <CloseContext value={() => setExported(undefined)}>
        {exported && (
          <ExportDialog
            kind={exported}
            query={selectionOf(filters, Date.now()).query}
            columns={columns}
          />
        )}
      </CloseContext>
      <CloseContext value={() => setBulk(undefined)}>
        {bulk && (
          <BulkDialog {...bulk} among={lasting(filters)} onDone={() => setSelected(new Set())} />
        )}
      </CloseContext>
    </Page>
  );
}

function columnsKept(stored: unknown): readonly string[] {
  const isList = Array.isArray(stored) && stored.every((key) => typeof key === 'string');
  return isList ? stored : DEFAULT_COLUMNS;
}

/** The rows of one page in another order; there is no other page. */
function sorted(
  { items, hasMore }: Listed<TaskInstance>,
  { key, isAscending }: Sort,
): Listed<TaskInstance> {
  const now = Date.now();
  const keyOf = (row: TaskInstance) =>
    key === 'duration' ? durationMs(row, now) : Date.parse(row.updated_at);
  const sign = isAscending ? 1 : -1;
  return { items: items.toSorted((a, b) => sign * (keyOf(a) - keyOf(b))), hasMore };
}

function sorting(
  { sortedBy }: InstanceColumn,
  sort: Sort | undefined,
  change: (changes: Readonly<Record<string, string | undefined>>) => void,
): Pick<Column<TaskInstance>, 'sort'> {
  if (sortedBy === undefined) return {};
  const isSorted = sort?.key === sortedBy;
  const direction = isSorted ? (sort.isAscending ? 'ascending' : 'descending') : undefined;
  return { sort: { direction, onSort: () => change({ sort: nextSort(sort, sortedBy) }) } };
}

/** Describes which instances a bulk action reaches. */
function Reach({
  filters,
  tenant,
}: {
  readonly filters: Filters;
  readonly tenant: string | undefined;
}) {
  const words = filterWords(filters);
  if (words.length === 0) {
    return (
      <p>
        No filter is set: <strong>all instances</strong>{' '}
        {tenant ? `of ${tenant}` : 'of all tenants'}.
      </p>
    );
  }
  return (
    <>
      <p>All instances that match these filters, including those on other pages:</p>
      <Facts facts={Object.fromEntries(words)} />
    </>
  );
}

const NONE: ReadonlySet<string> = new Set();

/** A selection made under other filters is not visible, and must not be acted on. */
function useSelected(filters: string) {
  const [kept, keep] = useState({ filters, ids: NONE });
  const selected = kept.filters === filters ? kept.ids : NONE;
  return [selected, (ids: ReadonlySet<string>) => keep({ filters, ids })] as const;
}

function WrongFilters({ wrong }: { readonly wrong: Wrong }) {
  return (
    <div role="alert">
      <Empty title="Invalid filter" icon={TriangleAlert}>
        <p>
          {Object.entries(wrong)
            .map(([name, message]) => `${wordsOf(name)}: ${message}.`)
            .join(' ')}{' '}
          The list is not shown, since ignoring the filter would match more than intended.
        </p>
        <p>
          Correct it above, or <Link href="/instances">show all instances</Link>.
        </p>
      </Empty>
    </div>
  );
}

function NoInstances({ isFiltered }: { isFiltered: boolean }) {
  if (isFiltered) {
    return (
      <Empty title="No matching instances" icon={ListTree}>
        <p>
          All filters must match. <Link href="/instances">Show all instances</Link>
        </p>
      </Empty>
    );
  }
  return (
    <Empty title="No instances yet" icon={ListTree}>
      <p>
        An instance is a run of a sequence. <Link href="/sequences">Choose one to start</Link>
      </p>
    </Empty>
  );
}
