/** The instances that are yet to start from the creations that their sequences collect. */

import type { PendingStart } from 'durable-workflow-engine-client';
import { CopyPlus } from 'lucide-react';
import { Link } from 'wouter';
import { useEngine } from '../../api/engine.tsx';
import { ActionButton, ConfirmButton } from '../../components/act.tsx';
import { Badge } from '../../components/badge.tsx';
import { FieldRow } from '../../components/field.tsx';
import { useList } from '../../components/list.tsx';
import { ListPanel } from '../../components/list-panel.tsx';
import { Page } from '../../components/page.tsx';
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
  const [{ sequence }, , at] = useFilters();
  const list = useList('pendingStarts.list', [{ sequence }], {
    live: true,
    refetchInterval: READ_EVERY_MS,
  });
  return (
    <Page
      title="Pending starts"
      about="Creations that a debounce or batch collects, and that start an instance later."
    >
      <FieldRow>
        <SequenceField isFilter {...at('sequence')} />
      </FieldRow>
      <ListPanel
        title="Pending starts, oldest first"
        label="Pending starts"
        list={list}
        columns={COLUMNS}
        idOf={({ id }) => id}
        mayChange={allowed.operate}
        rowActions={(pending) => (
          <>
            <ActionButton
              label="Start now"
              act={() => client.pendingStarts.start(pending.id)}
              done={({ id }) => (
                <>
                  Started: <Link href={`/instances/${id}`}>the instance</Link>
                </>
              )}
            />
            <ConfirmButton
              label="Drop"
              title={`Drop ${countOf(pending.count, 'creation')} of ${pending.sequence}?`}
              action="Drop"
              act={() => client.pendingStarts.drop(pending.id)}
              done={() => `Dropped: ${countOf(pending.count, 'creation')}`}
            >
              <p>
                Their instance does not start, and their idempotency keys are free again. This
                cannot be undone.
              </p>
            </ConfirmButton>
          </>
        )}
        empty={{
          title: 'Nothing is pending',
          icon: CopyPlus,
          about: (
            <>
              Creations of sequences with <code>debounce</code> or <code>batch</code> are collected
              here until their instance starts.
            </>
          ),
        }}
      />
    </Page>
  );
}
