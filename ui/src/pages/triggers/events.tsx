/** The received events, the steps that consumed them, and a form to send one. */

import type { EventReceipt, EventStatus, StoredEvent } from 'durable-workflow-engine-client';
import { Radio, Send } from 'lucide-react';
import { useState } from 'react';
import { Link } from 'wouter';
import { useEngine } from '../../api/engine.tsx';
import { useRead } from '../../api/read.ts';
import { DialogButton } from '../../components/act.tsx';
import { Dialog } from '../../components/dialog.tsx';
import { FieldRow, FilterField, Select, TextArea, TextField } from '../../components/field.tsx';
import { FormDialog, useForm } from '../../components/form.tsx';
import { JsonView } from '../../components/json-view.tsx';
import { useList } from '../../components/list.tsx';
import { ListPanel } from '../../components/list-panel.tsx';
import { Loaded } from '../../components/loaded.tsx';
import { Facts } from '../../components/page.tsx';
import { StateWord } from '../../components/state-word.tsx';
import type { Column } from '../../components/table.tsx';
import { Time } from '../../components/time.tsx';
import { chosenIn, useFilters } from '../../lib/address.ts';
import { countOf } from '../../lib/format.ts';
import { jsonOf } from '../../lib/json-text.ts';
import { randomId } from '../../lib/random-id.ts';

const STATES: readonly { readonly value: EventStatus | ''; readonly label: string }[] = [
  { value: '', label: 'All' },
  { value: 'pending', label: 'Pending' },
  { value: 'consumed', label: 'Consumed' },
  { value: 'expired', label: 'Expired' },
];

const COLUMNS: readonly Column<StoredEvent>[] = [
  {
    name: 'Event',
    cell: ({ id, event_name }) => (
      <DialogButton label={event_name}>
        <EventDialog id={id} />
      </DialogButton>
    ),
  },
  { name: 'Correlation key', cell: ({ correlation_key }) => correlation_key ?? 'none' },
  { name: 'State', cell: ({ status }) => <StateWord state={status} /> },
  { name: 'Consumed by', cell: ({ matched }) => countOf(matched, 'step') },
  { name: 'Received', cell: ({ created_at }) => <Time at={created_at} /> },
  { name: 'Expires', cell: ({ expires_at }) => <Time at={expires_at} /> },
];

export function Events() {
  const { allowed } = useEngine();
  const [{ event_name, status }, , at] = useFilters();
  const asked = { event_name, status: chosenIn(STATES, status) };
  const list = useList('events.list', [asked], { live: true });
  return (
    <>
      <FieldRow>
        <FilterField label="Name" {...at('event_name')} />
        <Select label="State" options={STATES} {...at('status')} />
      </FieldRow>
      <ListPanel
        title="Events, newest first"
        label="Events"
        list={list}
        columns={COLUMNS}
        idOf={({ id }) => id}
        mayChange={allowed.operate}
        create={{
          label: 'Send event',
          first: 'Send an event',
          icon: Send,
          form: <SendForm />,
        }}
        empty={{
          title: 'No events',
          icon: Radio,
          about: 'An event resumes the steps that wait for it. It may arrive before they do.',
        }}
      />
    </>
  );
}

function EventDialog({ id }: { id: string }) {
  const event = useRead('events.get', [id]);
  return (
    <Dialog title="Event" isWide>
      <Loaded query={event} height={260}>
        {(details) => (
          <>
            <Facts
              facts={{
                Name: details.event_name,
                'Correlation key': details.correlation_key ?? 'none',
                'Producer event id': details.producer_event_id,
                Received: <Time at={details.created_at} />,
              }}
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

function SendForm() {
  const { client } = useEngine();
  // A retry after a failure sends the same event.
  const [producer_event_id] = useState(() => randomId());
  const form = useForm(
    { event_name: '', correlation_key: '', payload: '{}' },
    ({ event_name, correlation_key, payload }) =>
      client.events.send({
        ...{ event_name, producer_event_id },
        correlation_key: correlation_key || null,
        payload: jsonOf('The payload', payload),
      }),
    { done: effectOf },
  );
  const { at } = form;
  return (
    <FormDialog form={form} title="Send event" label="Send">
      <TextField label="Name" required {...at('event_name')} />
      <TextField
        label="Correlation key"
        hint="The correlation key of the waiting steps; leave empty for steps without one"
        {...at('correlation_key')}
      />
      <TextArea label="Payload" isJson hint="JSON" {...at('payload')} />
    </FormDialog>
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
