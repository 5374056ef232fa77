/** Webhooks that are not delivered yet: why, and when the next try is. */

import { useQuery } from '@tanstack/react-query';
import type { OutboxEntry } from 'durable-workflow-engine-client';
import { MailCheck } from 'lucide-react';
import { useEngine } from '../../api/engine.tsx';
import { useAction } from '../../components/action.ts';
import { Badge, type Tone } from '../../components/badge.tsx';
import { Button, ButtonRow } from '../../components/button.tsx';
import { Empty, ErrorBox } from '../../components/error-box.tsx';
import { Loaded } from '../../components/loaded.tsx';
import { Panel } from '../../components/page.tsx';
import { type Column, Table } from '../../components/table.tsx';
import { Time } from '../../components/time.tsx';
import { formatCount } from '../../lib/format.ts';
import { SENT_COLUMNS } from './columns.tsx';

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
  { name: 'Tries', isNumber: true, cell: ({ attempts }) => formatCount(attempts) },
  { name: 'Next try', cell: ({ next_attempt_at }) => <Time at={next_attempt_at} /> },
];

export function Outbox() {
  const { client, allowed } = useEngine();
  const entries = useQuery({
    queryKey: ['webhooks.outbox'],
    queryFn: ({ signal }) => client.webhooks.outbox({}, { signal }),
    meta: { live: 'all' },
  });
  const redeliver = useAction(({ id }: OutboxEntry) => client.webhooks.redeliver(id), {
    done: () => 'Delivered.',
  });
  const discard = useAction(({ id }: OutboxEntry) => client.webhooks.discard(id), {
    done: () => 'Given up.',
  });
  const action: Column<OutboxEntry> = {
    name: 'Action',
    cell: (entry) => (
      <ButtonRow>
        <Button isBusy={redeliver.isBusy} onClick={() => redeliver.run(entry)}>
          Try now
        </Button>
        <Button isBusy={discard.isBusy} onClick={() => discard.run(entry)}>
          Give up
        </Button>
      </ButtonRow>
    ),
  };
  const error = redeliver.error ?? discard.error;
  return (
    <Panel title="Not delivered yet, oldest first" isFlush>
      {error !== null && <ErrorBox error={error} />}
      <Loaded query={entries} height={240}>
        {(rows) => (
          <Table
            label="Webhooks that are not delivered yet"
            columns={allowed.operate ? [...COLUMNS, action] : COLUMNS}
            rows={rows}
            idOf={({ id }) => id}
            empty={
              <Empty title="Everything is delivered" icon={<MailCheck size={26} aria-hidden />} />
            }
          />
        )}
      </Loaded>
    </Panel>
  );
}
