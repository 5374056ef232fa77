/** What people and keys have changed, newest first, with a way back where there is one. */

import type { Action, ActionsListQuery } from 'durable-workflow-engine-client';
import { History } from 'lucide-react';
import { Link } from 'wouter';
import { useEngine, useMaySee } from '../../api/engine.tsx';
import { DialogButton } from '../../components/act.tsx';
import { FieldRow, FilterField, Select } from '../../components/field.tsx';
import { useListOf } from '../../components/list.tsx';
import { ListPanel } from '../../components/list-panel.tsx';
import { Page } from '../../components/page.tsx';
import type { Column } from '../../components/table.tsx';
import { Time } from '../../components/time.tsx';
import { chosenIn, useFilters } from '../../lib/address.ts';
import { wordsOf } from '../../lib/format.ts';
import { AGES, sinceOf } from '../instances/filters.ts';
import { partsOf, shortSummaryOf } from './action-text.ts';
import { UndoDialog } from './undo-dialog.tsx';
import { placeOf, undoingOf } from './undoing.ts';

/** Changes of instances wake the page at once; those of settings do not. */
const READ_EVERY_MS = 10_000;

const KINDS: readonly NonNullable<ActionsListQuery['kind']>[] = [
  ...(['sequence', 'release', 'instance', 'bulk_job', 'approval', 'migration', 'effect'] as const),
  ...(['pending_start', 'cron_schedule', 'trigger', 'webhook', 'webhook_delivery'] as const),
  ...(['worker_endpoint', 'credential', 'rate_limit', 'api_key', 'tenant_limits'] as const),
];
const KIND_NAMES: Partial<Record<string, string>> = {
  cron_schedule: 'Schedule',
  api_key: 'API key',
};
const KIND_OPTIONS = [
  { value: '' as const, label: 'Everything' },
  ...KINDS.map((value) => ({ value, label: KIND_NAMES[value] ?? wordsOf(value) })),
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

export default function Activity() {
  const { client, allowed } = useEngine();
  const [{ by, kind, target, since }, , at] = useFilters();
  const isFiltered = [by, kind, target, since].some(Boolean);
  const list = useListOf<Action>(
    ['actions.list', by, kind, target, since],
    (page, options) => {
      const from = sinceOf(since ?? '', Date.now())?.toISOString();
      const query = { ...page, by, kind: chosenIn(KIND_OPTIONS, kind), target, since: from };
      return client.actions.list(query, options);
    },
    { live: true, refetchInterval: READ_EVERY_MS },
  );
  return (
    <Page title="Activity" about="What people and keys have changed by hand.">
      <FieldRow>
        <FilterField label="Key" {...at('by')} />
        <Select label="About" options={KIND_OPTIONS} {...at('kind')} />
        <FilterField label="Id or name" {...at('target')} />
        <Select label="Time" options={AGES} {...at('since')} />
      </FieldRow>
      <ListPanel
        title="Actions, newest first"
        label="Actions"
        list={list}
        columns={allowed.operate ? [...COLUMNS, UNDO] : COLUMNS}
        idOf={({ id }) => id}
        empty={{
          title: isFiltered ? 'No matching actions' : 'No actions',
          icon: History,
          about:
            'Publishing, releases, retries, pauses, approvals and changes of settings are listed here, with the key that made them.',
        }}
      />
    </Page>
  );
}

const UNDO: Column<Action> = {
  name: 'Undo',
  cell: (action) => {
    const undoing = undoingOf(action);
    return (
      undoing && (
        <DialogButton label={undoing.label}>
          <UndoDialog action={action} undoing={undoing} />
        </DialogButton>
      )
    );
  },
};
