/** What people and keys have changed, newest first, with a way back where there is one. */

import type { Action, ActionsListQuery } from 'durable-workflow-engine-client';
import { History } from 'lucide-react';
import { useState } from 'react';
import { Link } from 'wouter';
import { useEngine, useMaySee } from '../../api/engine.tsx';
import { Button } from '../../components/button.tsx';
import { Empty } from '../../components/error-box.tsx';
import { FieldRow, FilterField, Select } from '../../components/field.tsx';
import { ListTable, useList } from '../../components/list.tsx';
import { Page, Panel } from '../../components/page.tsx';
import type { Column } from '../../components/table.tsx';
import { Time } from '../../components/time.tsx';
import { useFilters } from '../../lib/address.ts';
import { wordsOf } from '../../lib/format.ts';
import { AGES, sinceOf } from '../instances/filters.ts';
import { partsOf, shortSummaryOf } from './action-text.ts';
import { UndoDialog } from './undo-dialog.tsx';
import { placeOf, type Undoing, undoingOf } from './undoing.ts';

/** Changes of instances wake the page at once; those of settings do not. */
const READ_EVERY_MS = 10_000;

const KINDS: readonly NonNullable<ActionsListQuery['kind']>[] = [
  ...(['sequence', 'release', 'instance', 'bulk_job', 'approval', 'migration', 'effect'] as const),
  ...(['pending_start', 'cron_schedule', 'trigger', 'webhook', 'webhook_delivery'] as const),
  ...(['worker_endpoint', 'credential', 'rate_limit', 'api_key', 'tenant_limits'] as const),
];
const KIND_OPTIONS = [
  { value: '', label: 'Everything' },
  ...KINDS.map((value) => ({ value, label: wordsOf(value) })),
];

/** Names of keys are usually short. */
const LINE_LENGTH_MAX = 24;

function Who({ by }: Pick<Action, 'by'>) {
  return <span className={by.length > LINE_LENGTH_MAX ? undefined : 'whole'}>{by}</span>;
}

function What({ action }: { readonly action: Action }) {
  const maySee = useMaySee();
  const place = placeOf(action);
  if (place === undefined || !maySee(place)) return shortSummaryOf(action);
  const [before, object, behind] = partsOf(action);
  return (
    <>
      {before}
      <Link href={place}>{object}</Link>
      {behind}
    </>
  );
}

const COLUMNS: readonly Column<Action>[] = [
  { name: 'When', cell: ({ at }) => <Time at={at} /> },
  { name: 'Who', cell: ({ by }) => <Who by={by} /> },
  { name: 'What', cell: (action) => <What action={action} /> },
];

type Asked = { readonly action: Action; readonly undoing: Undoing };

export default function Activity() {
  const { client, allowed } = useEngine();
  const [filters, change] = useFilters();
  const [asked, setAsked] = useState<Asked>();
  const { by, kind, target, since } = filters;
  const list = useList<Action>(
    ['actions.list', by, kind, target, since],
    (page, options) => {
      const from = sinceOf(since ?? '', Date.now());
      const query = {
        ...page,
        by,
        kind: kind as ActionsListQuery['kind'],
        target,
        since: from?.toISOString(),
      };
      return client.actions.list(query, options);
    },
    { live: true, refetchInterval: READ_EVERY_MS },
  );
  const undo: Column<Action> = {
    name: 'Undo',
    cell: (action) => {
      const undoing = undoingOf(action);
      if (undoing === undefined) return undefined;
      return <Button onClick={() => setAsked({ action, undoing })}>{undoing.label}</Button>;
    },
  };
  return (
    <Page title="Activity" about="What people and keys have changed by hand.">
      <FieldRow>
        <FilterField label="Key" value={by ?? ''} onChange={(next) => change({ by: next })} />
        <Select
          label="About"
          value={kind ?? ''}
          options={KIND_OPTIONS}
          onChange={(next) => change({ kind: next })}
        />
        <FilterField
          label="Id or name"
          value={target ?? ''}
          onChange={(next) => change({ target: next })}
        />
        <Select
          label="Time"
          value={since ?? ''}
          options={AGES}
          onChange={(next) => change({ since: next })}
        />
      </FieldRow>
      <Panel title="Actions, newest first" isFlush>
        <ListTable
          list={list}
          label="Actions"
          columns={allowed.operate ? [...COLUMNS, undo] : COLUMNS}
          idOf={({ id }) => id}
          empty={
            <Empty title="No actions" icon={History}>
              <p>
                Publishing, releases, retries, pauses, approvals and changes of settings are listed
                here, with the key that made them.
              </p>
            </Empty>
          }
        />
      </Panel>
      {asked !== undefined && <UndoDialog {...asked} onClose={() => setAsked(undefined)} />}
    </Page>
  );
}
