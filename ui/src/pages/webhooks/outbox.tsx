/** Webhooks that are not delivered yet, with the last error and the time of the next attempt. */

import type { OutboxEntry } from 'durable-workflow-engine-client';
import { MailCheck } from 'lucide-react';
import { Link } from 'wouter';
import { useEngine } from '../../api/engine.tsx';
import { ActionButton, ConfirmButton } from '../../components/act.tsx';
import { useListOf } from '../../components/list.tsx';
import { ListPanel } from '../../components/list-panel.tsx';
import { StateWord } from '../../components/state-word.tsx';
import type { Column } from '../../components/table.tsx';
import { Time } from '../../components/time.tsx';
import { formatCount } from '../../lib/format.ts';
import { pageOf } from '../../lib/offset.ts';
import { SENT_COLUMNS } from './columns.tsx';
import { READ_EVERY_MS } from './deliveries.tsx';

const COLUMNS: readonly Column<OutboxEntry>[] = [
  ...SENT_COLUMNS,
  {
    name: 'State',
    cell: ({ status, last_error }) => (
      <>
        <StateWord state={status} /> <span className="small">{last_error}</span>
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
  const list = useListOf<OutboxEntry>(
    ['webhooks.outbox'],
    async (page, options) =>
      pageOf(await client.webhooks.outbox({ limit: READ_MAX }, options), page),
    { live: true, refetchInterval: READ_EVERY_MS },
  );
  return (
    <ListPanel
      title="Not delivered yet, oldest first"
      label="Webhooks that are not delivered yet"
      list={list}
      columns={COLUMNS}
      idOf={({ id }) => id}
      mayChange={allowed.operate}
      rowActions={({ id, url, event_type }) => (
        <>
          <ActionButton
            label="Retry now"
            act={() => client.webhooks.redeliver(id)}
            done={() => 'Delivered.'}
          />
          <ConfirmButton
            label="Discard"
            title="Discard this delivery?"
            action="Discard"
            act={() => client.webhooks.discard(id)}
            done={() => 'Delivery discarded.'}
          >
            <p>
              {url} never receives this {event_type}. This cannot be undone.
            </p>
          </ConfirmButton>
        </>
      )}
      empty={{
        title: 'Everything is delivered',
        icon: MailCheck,
        about: (
          <>
            Failed deliveries wait here for their next attempt.{' '}
            <Link href="/webhooks/deliveries">View deliveries</Link>
          </>
        ),
      }}
      {...(list.query.data?.total === READ_MAX && {
        note: `The oldest ${formatCount(READ_MAX)}; there may be more.`,
      })}
    />
  );
}
