/** Webhooks that are not delivered yet, with the last error and the time of the next attempt. */

import type { OutboxEntry } from 'durable-workflow-engine-client';
import { MailCheck } from 'lucide-react';
import { useState } from 'react';
import { Link } from 'wouter';
import { useEngine } from '../../api/engine.tsx';
import { useAction } from '../../components/action.ts';
import { Badge, type Tone } from '../../components/badge.tsx';
import { Button, ButtonRow } from '../../components/button.tsx';
import { ConfirmDialog } from '../../components/dialog.tsx';
import { Empty, ErrorBox } from '../../components/error-box.tsx';
import { ListTable, useList } from '../../components/list.tsx';
import { Panel } from '../../components/page.tsx';
import { type Column, TableNote } from '../../components/table.tsx';
import { Time } from '../../components/time.tsx';
import { formatCount } from '../../lib/format.ts';
import { pageOf } from '../../lib/offset.ts';
import { SENT_COLUMNS } from './columns.tsx';
import { READ_EVERY_MS } from './deliveries.tsx';

const TONES: Record<OutboxEntry['status'], Tone> = {
  pending: 'wait',
  in_flight: 'info',
  parked: 'danger',
};

const COLUMNS: readonly Column<OutboxEntry>[] = [
  ...SENT_COLUMNS,
  {
    name: 'State',
    cell: ({ status, last_error }) => (
      <>
        <Badge tone={TONES[status]}>{status.replace('_', ' ')}</Badge>{' '}
        <span className="small">{last_error}</span>
      </>
    ),
  },
  { name: 'Attempts', isNumber: true, cell: ({ attempts }) => formatCount(attempts) },
  { name: 'Next attempt', cell: ({ next_attempt_at }) => <Time at={next_attempt_at} /> },
];

/** The engine returns no more of them, and has no further pages. */
const READ_MAX = 1_000;

export function Outbox() {
  const { client, allowed } = useEngine();
  const [givenUp, giveUp] = useState<OutboxEntry>();
  const list = useList<OutboxEntry>(
    ['webhooks.outbox'],
    async (page, options) =>
      pageOf(await client.webhooks.outbox({ limit: READ_MAX }, options), page),
    { live: true, refetchInterval: READ_EVERY_MS },
  );
  const redeliver = useAction(({ id }: OutboxEntry) => client.webhooks.redeliver(id), {
    done: () => 'Delivered.',
  });
  const discard = useAction(({ id }: OutboxEntry) => client.webhooks.discard(id), {
    done: () => 'Delivery discarded.',
    onDone: () => giveUp(undefined),
  });
  const action: Column<OutboxEntry> = {
    name: 'Action',
    cell: (entry) => (
      <ButtonRow>
        <Button isBusy={redeliver.isBusy} onClick={() => redeliver.run(entry)}>
          Retry now
        </Button>
        <Button onClick={() => giveUp(entry)}>Discard</Button>
      </ButtonRow>
    ),
  };
  return (
    <Panel title="Not delivered yet, oldest first" isFlush>
      {redeliver.error !== null && <ErrorBox error={redeliver.error} />}
      <ListTable
        list={list}
        label="Webhooks that are not delivered yet"
        columns={allowed.operate ? [...COLUMNS, action] : COLUMNS}
        idOf={({ id }) => id}
        empty={
          <Empty title="Everything is delivered" icon={MailCheck}>
            <p>
              Failed deliveries wait here for their next attempt.{' '}
              <Link href="/webhooks/deliveries">View deliveries</Link>
            </p>
          </Empty>
        }
      />
      {list.query.data?.total === READ_MAX && (
        <TableNote>The oldest {formatCount(READ_MAX)}; there may be more.</TableNote>
      )}
      {givenUp && (
        <ConfirmDialog
          title="Discard this delivery?"
          action="Discard"
          kind="danger"
          isBusy={discard.isBusy}
          error={discard.error}
          onConfirm={() => discard.run(givenUp)}
          onClose={() => {
            discard.reset();
            giveUp(undefined);
          }}
        >
          <p>
            {givenUp.url} never receives this {givenUp.event_type}. This cannot be undone.
          </p>
        </ConfirmDialog>
      )}
    </Panel>
  );
}
