/** What starts instances from outside: by a signed request, or by an event. */

import type { Trigger, TriggerType } from 'durable-workflow-engine-client';
import { Plus, Radio } from 'lucide-react';
import { useState } from 'react';
import { ENGINE_URL, useEngine } from '../../api/engine.tsx';
import { useAction } from '../../components/action.ts';
import { Badge } from '../../components/badge.tsx';
import { Button, ButtonRow } from '../../components/button.tsx';
import { CopyButton } from '../../components/copy.tsx';
import { ConfirmDialog, Dialog, DialogActions } from '../../components/dialog.tsx';
import { Empty, ErrorBox } from '../../components/error-box.tsx';
import { Form, Select, TextField, wrongOf } from '../../components/field.tsx';
import { ListTable, useList } from '../../components/list.tsx';
import { Panel } from '../../components/page.tsx';
import { SequenceField } from '../../components/sequence-field.tsx';
import type { Column } from '../../components/table.tsx';
import { Time } from '../../components/time.tsx';

const COLUMNS: readonly Column<Trigger>[] = [
  { name: 'Trigger', cell: ({ slug }) => <code>{slug}</code> },
  {
    name: 'Starts',
    cell: ({ sequence_name, version }) =>
      version === null ? sequence_name : `${sequence_name}, version ${version}`,
  },
  { name: 'By', cell: (trigger) => <Cause trigger={trigger} /> },
  {
    name: 'State',
    cell: ({ enabled }) =>
      enabled ? <Badge tone="ok">on</Badge> : <Badge tone="idle">switched off</Badge>,
  },
  { name: 'Changed', cell: ({ updated_at }) => <Time at={updated_at} /> },
];

function Cause({ trigger: { slug, trigger_type, config, secret } }: { trigger: Trigger }) {
  if (trigger_type === 'event') {
    const { event_name, correlation_key } = config;
    return (
      <>
        event <code>{String(event_name)}</code>{' '}
        {correlation_key != null && <code>{String(correlation_key)}</code>}
      </>
    );
  }
  const address = `${ENGINE_URL}/webhooks/${slug}`;
  return (
    <>
      {secret === null ? 'request to ' : 'signed request to '}
      <code>{`/webhooks/${slug}`}</code>
      <CopyButton text={address} label="Copy the address" />
    </>
  );
}

export function TriggerList() {
  const { client, allowed } = useEngine();
  const [isMaking, setMaking] = useState(false);
  const [removed, setRemoved] = useState<Trigger>();
  const list = useList<Trigger>(['triggers.list'], (page, options) =>
    client.triggers.list(page, options),
  );
  const toggle = useAction(({ slug, enabled }: Trigger) =>
    client.triggers.update(slug, { enabled: !enabled }),
  );
  const remove = useAction(({ slug }: Trigger) => client.triggers.delete(slug), {
    done: (_, { slug }) => `Deleted: ${slug}`,
    onDone: () => setRemoved(undefined),
  });
  const action: Column<Trigger> = {
    name: 'Action',
    cell: (trigger) => (
      <ButtonRow>
        <Button isBusy={toggle.isBusy} onClick={() => toggle.run(trigger)}>
          {trigger.enabled ? 'Switch off' : 'Switch on'}
        </Button>
        <Button onClick={() => setRemoved(trigger)}>Delete</Button>
      </ButtonRow>
    ),
  };
  return (
    <Panel
      title="Triggers"
      isFlush
      actions={
        allowed.operate && (
          <Button icon={<Plus size={15} aria-hidden />} onClick={() => setMaking(true)}>
            New trigger
          </Button>
        )
      }
    >
      {toggle.error !== null && <ErrorBox error={toggle.error} />}
      <ListTable
        list={list}
        label="Triggers"
        columns={allowed.operate ? [...COLUMNS, action] : COLUMNS}
        idOf={({ slug }) => slug}
        empty={
          <Empty title="No triggers yet" icon={<Radio size={26} aria-hidden />}>
            <p>A trigger starts an instance by a signed request from outside, or by an event.</p>
          </Empty>
        }
      />
      {isMaking && <TriggerForm onClose={() => setMaking(false)} />}
      {removed && (
        <ConfirmDialog
          title={`Delete the trigger ${removed.slug}?`}
          action="Delete the trigger"
          kind="danger"
          isBusy={remove.isBusy}
          error={remove.error}
          onConfirm={() => remove.run(removed)}
          onClose={() => setRemoved(undefined)}
        >
          <p>It starts nothing any more. What it has started goes on.</p>
        </ConfirmDialog>
      )}
    </Panel>
  );
}

const TYPES: readonly { readonly value: TriggerType; readonly label: string }[] = [
  { value: 'webhook', label: 'A signed request' },
  { value: 'event', label: 'An event' },
];

function TriggerForm({ onClose }: { onClose: () => void }) {
  const { client } = useEngine();
  const [slug, setSlug] = useState('');
  const [sequence, setSequence] = useState('');
  const [type, setType] = useState<TriggerType>('webhook');
  const [secret, setSecret] = useState('');
  const [event, setEvent] = useState('');
  const save = useAction(
    () =>
      client.triggers.create({
        slug,
        sequence_name: sequence,
        trigger_type: type,
        ...(type === 'webhook' ? { secret: secret || null } : { config: { event_name: event } }),
      }),
    { done: () => `Made: ${slug}`, onDone: onClose },
  );
  return (
    <Dialog title="New trigger" onClose={onClose}>
      <Form onSubmit={() => save.run(undefined)}>
        <TextField
          label="Name"
          required
          value={slug}
          onChange={setSlug}
          hint="Part of the address: letters, digits, dots, _, ~ and -"
          wrong={wrongOf(save.error, 'slug')}
        />
        <SequenceField
          value={sequence}
          onChange={setSequence}
          wrong={wrongOf(save.error, 'sequence_name')}
        />
        <Select label="Started by" value={type} options={TYPES} onChange={setType} />
        {type === 'webhook' ? (
          <TextField
            label="Secret"
            type="password"
            autoComplete="off"
            value={secret}
            onChange={setSecret}
            hint="What callers sign their requests with"
            wrong={wrongOf(save.error, 'secret')}
          />
        ) : (
          <TextField
            label="Name of the event"
            required
            value={event}
            onChange={setEvent}
            wrong={wrongOf(save.error, 'event_name')}
          />
        )}
        {save.error !== null && <ErrorBox error={save.error} />}
        <DialogActions label="Make it" isBusy={save.isBusy} onClose={onClose} />
      </Form>
    </Dialog>
  );
}
