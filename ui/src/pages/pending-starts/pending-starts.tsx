/** The instances that are yet to start from the creations that their sequences collect. */

import type { PendingStart } from 'durable-workflow-engine-client';
import { CopyPlus } from 'lucide-react';
import { useState } from 'react';
import { Link } from 'wouter';
import { useEngine } from '../../api/engine.tsx';
import { useAction } from '../../components/action.ts';
import { Badge } from '../../components/badge.tsx';
import { Button, ButtonRow } from '../../components/button.tsx';
import { ConfirmDialog } from '../../components/dialog.tsx';
import { Empty, ErrorBox } from '../../components/error-box.tsx';
import { FieldRow } from '../../components/field.tsx';
import { ListTable, useList } from '../../components/list.tsx';
import { Page, Panel } from '../../components/page.tsx';
import { SequenceField } from '../../components/sequence-field.tsx';
import type { Column } from '../../components/table.tsx';
import { Time } from '../../components/time.tsx';
import { useFilters } from '../../lib/address.ts';
import { countOf, formatCount } from '../../lib/format.ts';

/** A collected creation is no change of an instance. */
const READ_EVERY_MS = 5000;

const COLUMNS: readonly Column<PendingStart>[] = [
  {
    name: 'Sequence',
    cell: ({ sequence, namespace }) => (
      <>
        {sequence} <span className="dim small">{namespace}</span>
      </>
    ),
  },
  { name: 'Collected by', cell: ({ kind }) => kind },
  {
    name: 'Key',
    cell: ({ key }) => (key === null ? <span className="dim">–</span> : <code>{key}</code>),
  },
  {
    name: 'Creations',
    isNumber: true,
    cell: ({ count, cancelled }) => (
      <>
        {formatCount(count)}
        {cancelled > 0 && <span className="dim small"> {formatCount(cancelled)} cancelled</span>}
      </>
    ),
  },
  { name: 'First creation', cell: ({ created_at }) => <Time at={created_at} /> },
  { name: 'Starts', cell: (pending) => <Start pending={pending} /> },
];

function Start({ pending: { starts_at, error } }: { readonly pending: PendingStart }) {
  return (
    <>
      <Time at={starts_at} />
      {error !== null && (
        <>
          {' '}
          <Badge tone="danger">could not start</Badge>
          <br />
          <span className="small">{error}</span>
        </>
      )}
    </>
  );
}

export default function PendingStarts() {
  const { client, allowed } = useEngine();
  const [{ sequence }, change] = useFilters();
  const [dropped, setDropped] = useState<PendingStart>();
  const list = useList<PendingStart>(
    ['pendingStarts.list', sequence],
    (page, options) => client.pendingStarts.list({ ...page, sequence }, options),
    { live: true, refetchInterval: READ_EVERY_MS },
  );
  const start = useAction(({ id }: PendingStart) => client.pendingStarts.start(id), {
    done: ({ id }) => (
      <>
        Started: <Link href={`/instances/${id}`}>the instance</Link>
      </>
    ),
  });
  const drop = useAction(({ id }: PendingStart) => client.pendingStarts.drop(id), {
    done: (_, { count }) => `Dropped: ${countOf(count, 'creation')}`,
    onDone: () => setDropped(undefined),
  });
  const action: Column<PendingStart> = {
    name: 'Action',
    cell: (pending) => (
      <ButtonRow>
        <Button isBusy={start.isBusy} onClick={() => start.run(pending)}>
          Start now
        </Button>
        <Button onClick={() => setDropped(pending)}>Drop</Button>
      </ButtonRow>
    ),
  };
  return (
    <Page
      title="Pending starts"
      about="Creations that a debounce or batch collects, and that start an instance later."
    >
      <FieldRow>
        <SequenceField
          isFilter
          value={sequence ?? ''}
          onChange={(name) => change({ sequence: name })}
        />
      </FieldRow>
      <Panel title="Pending starts, oldest first" isFlush>
        {start.error !== null && <ErrorBox error={start.error} />}
        <ListTable
          list={list}
          label="Pending starts"
          columns={allowed.operate ? [...COLUMNS, action] : COLUMNS}
          idOf={({ id }) => id}
          empty={
            <Empty title="Nothing is pending" icon={CopyPlus}>
              <p>
                Creations of sequences with <code>debounce</code> or <code>batch</code> are
                collected here until their instance starts.
              </p>
            </Empty>
          }
        />
      </Panel>
      {dropped && (
        <ConfirmDialog
          title={`Drop ${countOf(dropped.count, 'creation')} of ${dropped.sequence}?`}
          action="Drop"
          kind="danger"
          isBusy={drop.isBusy}
          error={drop.error}
          onConfirm={() => drop.run(dropped)}
          onClose={() => {
            drop.reset();
            setDropped(undefined);
          }}
        >
          <p>
            Their instance does not start, and their idempotency keys are free again. This cannot be
            undone.
          </p>
        </ConfirmDialog>
      )}
    </Page>
  );
}
