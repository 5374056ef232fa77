/** The received events, the steps that consumed them, and a form to send one. */

import type { EventReceipt, EventStatus, StoredEvent } from 'durable-workflow-engine-client';
import { Radio, Send } from 'lucide-react';
import { useState } from 'react';
import { Link } from 'wouter';
import { useEngine } from '../../api/engine.tsx';
import { useRead } from '../../api/read.ts';
import { useAction } from '../../components/action.ts';
import { Badge, type Tone } from '../../components/badge.tsx';
import { Button } from '../../components/button.tsx';
import { Dialog, DialogActions } from '../../components/dialog.tsx';
import { Empty, ErrorBox } from '../../components/error-box.tsx';
import {
  FieldRow,
  FilterField,
  Form,
  Select,
  TextArea,
  TextField,
  wrongOf,
} from '../../components/field.tsx';
import { JsonView } from '../../components/json-view.tsx';
import { ListTable, useList } from '../../components/list.tsx';
import { Loaded } from '../../components/loaded.tsx';
import { Facts, Panel } from '../../components/page.tsx';
import type { Column } from '../../components/table.tsx';
import { Time } from '../../components/time.tsx';
import { useFilters } from '../../lib/address.ts';
import { countOf } from '../../lib/format.ts';
import { jsonOf } from '../../lib/json-text.ts';
import { randomId } from '../../lib/random-id.ts';

const TONES: Record<EventStatus, Tone> = { pending: 'wait', consumed: 'ok', expired: 'idle' };

const STATES: readonly { readonly value: EventStatus | ''; readonly label: string }[] = [
  { value: '', label: 'All' },
  { value: 'pending', label: 'Pending' },
  { value: 'consumed', label: 'Consumed' },
  { value: 'expired', label: 'Expired' },
];

export function Events() {
  const { client, allowed } = useEngine();
  const [filters, change] = useFilters();
  const [shown, setShown] = useState<string>();
  const [isSending, setSending] = useState(false);
  const { event_name } = filters;
  const status = STATES.find(({ value }) => value === filters.status)?.value ?? '';
  const list = useList<StoredEvent>(
    ['events.list', status, event_name],
    (page, options) =>
      client.events.list({ ...page, event_name, status: status || undefined }, options),
    { live: true },
  );
  const columns: readonly Column<StoredEvent>[] = [
    {
      name: 'Event',
      cell: ({ id, event_name: name }) => <Button onClick={() => setShown(id)}>{name}</Button>,
    },
    { name: 'Correlation key', cell: ({ correlation_key }) => correlation_key ?? 'none' },
    {
      name: 'State',
      cell: (event) => <Badge tone={TONES[event.status]}>{event.status}</Badge>,
    },
    { name: 'Consumed by', cell: ({ matched }) => countOf(matched, 'step') },
    { name: 'Received', cell: ({ created_at }) => <Time at={created_at} /> },
    { name: 'Expires', cell: ({ expires_at }) => <Time at={expires_at} /> },
  ];
  return (
    <>
      <FieldRow>
        <FilterField
          label="Name"
          value={event_name ?? ''}
          onChange={(name) => change({ event_name: name })}
        />
        <Select
          label="State"
          value={status}
          options={STATES}
          onChange={(value) => change({ status: value })}
        />
      </FieldRow>
      <Panel
        title="Events, newest first"
        isFlush
        actions={
          allowed.operate && (
            <Button icon={Send} onClick={() => setSending(true)}>
              Send event
            </Button>
          )
        }
      >
        <ListTable
          list={list}
          label="Events"
          columns={columns}
          idOf={({ id }) => id}
          empty={
            <Empty title="No events" icon={Radio}>
              <p>An event resumes the steps that wait for it. It may arrive before they do.</p>
              {allowed.operate && <Button onClick={() => setSending(true)}>Send an event</Button>}
            </Empty>
          }
        />
      </Panel>
      {shown !== undefined && <EventDialog id={shown} onClose={() => setShown(undefined)} />}
      {isSending && <SendForm onClose={() => setSending(false)} />}
    </>
  );
}

function EventDialog({ id, onClose }: { id: string; onClose: () => void }) {
  const event = useRead('events.get', [id]);
  return (
    <Dialog title="Event" isWide onClose={onClose}>
      <Loaded query={event} height={260}>
        {(details) => (
          <>
            <Facts
              facts={[
                ['Name', details.event_name],
                ['Correlation key', details.correlation_key ?? 'none'],
                ['Producer event id', details.producer_event_id],
                ['Received', <Time key="received" at={details.created_at} />],
              ]}
            />
            <JsonView label="payload" value={details.payload} />
            <h3>Consumed by</h3>
            {details.taken_by.length === 0 && <p className="dim">Not consumed yet.</p>}
            <ul>
              {details.taken_by.map(({ instance_id, block_id, outcome, taken_at }) => (
                <li key={`${instance_id} ${block_id}`}>
                  <Link href={`/instances/${instance_id}`}>{instance_id}</Link> at{' '}
                  <code>{block_id}</code>: {outcome} <Time at={taken_at} />
                </li>
              ))}
            </ul>
            {details.cancelled.length > 0 && (
              <>
                <h3>Cancels</h3>
                <ul>
                  {details.cancelled.map(({ instance_id, outcome, cancelled_at }) => (
                    <li key={instance_id}>
                      <Link href={`/instances/${instance_id}`}>{instance_id}</Link>: {outcome}{' '}
                      {cancelled_at !== null && <Time at={cancelled_at} />}
                    </li>
                  ))}
                </ul>
              </>
            )}
          </>
        )}
      </Loaded>
    </Dialog>
  );
}

function SendForm({ onClose }: { onClose: () => void }) {
  const { client } = useEngine();
  const [name, setName] = useState('');
  const [key, setKey] = useState('');
  const [payload, setPayload] = useState('{}');
  // A retry after a failure sends the same event.
  const [producerId] = useState(() => randomId());
  const send = useAction(
    async () =>
      client.events.send({
        event_name: name,
        producer_event_id: producerId,
        correlation_key: key || null,
        payload: jsonOf('The payload', payload),
      }),
    { done: effectOf, onDone: onClose },
  );
  return (
    <Dialog title="Send event" onClose={onClose}>
      <Form onSubmit={() => send.run(undefined)}>
        <TextField
          label="Name"
          required
          value={name}
          onChange={setName}
          wrong={wrongOf(send.error, 'event_name')}
        />
        <TextField
          label="Correlation key"
          value={key}
          onChange={setKey}
          hint="The correlation key of the waiting steps; leave empty for steps without one"
          wrong={wrongOf(send.error, 'correlation_key')}
        />
        <TextArea label="Payload" isJson value={payload} onChange={setPayload} hint="JSON" />
        {send.error !== null && <ErrorBox error={send.error} />}
        <DialogActions label="Send" isBusy={send.isBusy} onClose={onClose} />
      </Form>
    </Dialog>
  );
}

/** What sending it did, in a sentence. */
function effectOf({ matched, triggers = 0, cancelled = 0 }: EventReceipt): string {
  const effects = [
    matched > 0 ? `Consumed by ${countOf(matched, 'step')}` : 'Stored: no step waits for it yet',
    ...(triggers > 0 ? [`fired ${countOf(triggers, 'trigger')}`] : []),
    ...(cancelled > 0 ? [`cancels ${countOf(cancelled, 'instance')}`] : []),
  ];
  return `${effects.join(', ')}.`;
}
