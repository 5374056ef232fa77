/** The instances that match the filters, newest first, and bulk actions on them. */

import type { TaskInstance } from 'durable-workflow-engine-client';
import { ListTree, TriangleAlert } from 'lucide-react';
import { type ReactNode, useState } from 'react';
import { Link } from 'wouter';
import { useEngine } from '../../api/engine.tsx';
import { StateBadge } from '../../components/badge.tsx';
import { type BulkAction, BulkDialog, type BulkFilter } from '../../components/bulk-dialog.tsx';
import { Button, ButtonRow, LinkButton } from '../../components/button.tsx';
import { ShortId } from '../../components/copy.tsx';
import { Empty } from '../../components/error-box.tsx';
import { UnreadFields, useUnreadFields } from '../../components/field.tsx';
import { ListTable, useList } from '../../components/list.tsx';
import { Facts, Page, Panel } from '../../components/page.tsx';
import { SequenceName } from '../../components/sequence-name.tsx';
import type { Column } from '../../components/table.tsx';
import { Time } from '../../components/time.tsx';
import { type Filters, useFilters } from '../../lib/address.ts';
import { countOf, wordsOf } from '../../lib/format.ts';
import { FilterBar } from './filter-bar.tsx';
import { filterWords, lasting, selectionOf, type Wrong } from './filters.ts';
import styles from './instances.module.css';

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

const COLUMNS: readonly Column<TaskInstance>[] = [
  {
    name: 'Instance',
    cell: ({ id, metadata }) => (
      <>
        <Link href={`/instances/${id}`}>
          <ShortId id={id} />
        </Link>
        <span className={styles.metadata}>{summaryOf(metadata)}</span>
      </>
    ),
  },
  { name: 'Sequence', cell: ({ sequence_id }) => <SequenceName id={sequence_id} /> },
  {
    name: 'State',
    cell: ({ state, failure }) => (
      <>
        <StateBadge state={state} />
        {failure && (
          <span className={styles.failure} title={failure.message}>
            {failure.block_id && <code>{failure.block_id}</code>} {failure.message}
          </span>
        )}
      </>
    ),
  },
  { name: 'Created', cell: ({ created_at }) => <Time at={created_at} /> },
  { name: 'Changed', cell: ({ updated_at }) => <Time at={updated_at} /> },
];

/** The metadata in one line; the page of the instance shows all of it. */
function summaryOf(metadata: TaskInstance['metadata']): string {
  return Object.entries(metadata)
    .filter(([, value]) => value !== null && typeof value !== 'object')
    .map(([name, value]) => `${name}: ${value}`)
    .join(', ');
}

export default function Instances() {
  const { client, allowed, tenant } = useEngine();
  const [filters] = useFilters();
  const [bulk, setBulk] = useState<Bulk>();
  const { cursor: _, ...asked } = filters;
  const [selected, setSelected] = useSelected(JSON.stringify(asked));
  const { wrong } = selectionOf(filters, Date.now());
  const isWrong = Object.keys(wrong).length > 0;
  const [unread, tellUnread] = useUnreadFields();
  const list = useList<TaskInstance>(
    ['instances.list', asked],
    (page, options) =>
      client.instances.list({ ...selectionOf(filters, Date.now()).query, ...page }, options),
    { live: true, enabled: !isWrong && unread === 0 },
  );
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
        <FilterBar wrong={wrong} />
      </UnreadFields>
      <Panel
        title="Instances, newest first"
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
            columns={COLUMNS}
            idOf={({ id }) => id}
            selection={allowed.operate ? { ids: selected, change: setSelected } : undefined}
            empty={<NoInstances isFiltered={isFiltered} />}
          />
        )}
      </Panel>
      {bulk && (
        <BulkDialog
          {...bulk}
          among={lasting(filters)}
          onClose={() => setBulk(undefined)}
          onDone={() => setSelected(new Set())}
        />
      )}
    </Page>
  );
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
      <Facts facts={words} />
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
      <Empty title="Invalid filter" icon={<TriangleAlert size={26} aria-hidden />}>
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
      <Empty title="No matching instances" icon={<ListTree size={26} aria-hidden />}>
        <p>
          All filters must match. <Link href="/instances">Show all instances</Link>
        </p>
      </Empty>
    );
  }
  return (
    <Empty title="No instances yet" icon={<ListTree size={26} aria-hidden />}>
      <p>
        An instance is a run of a sequence. <Link href="/sequences">Choose one to start</Link>
      </p>
    </Empty>
  );
}
