/** The triggers, which start instances by a signed request or by an event. */

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
import { Conflict, useGuard } from '../../components/guard.tsx';
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
  { name: 'Started by', cell: (trigger) => <Cause trigger={trigger} /> },
  {
    name: 'State',
    cell: ({ enabled }) =>
      enabled ? <Badge tone="ok">enabled</Badge> : <Badge tone="idle">disabled</Badge>,
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
  const [edited, setEdited] = useState<Trigger | 'new'>();
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
        <Button onClick={() => setEdited(trigger)}>Change</Button>
        <Button isBusy={toggle.isBusy} onClick={() => toggle.run(trigger)}>
          {trigger.enabled ? 'Disable' : 'Enable'}
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
          <Button icon={<Plus size={15} aria-hidden />} onClick={() => setEdited('new')}>
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
            <p>A trigger starts an instance on a signed HTTP request or on an event.</p>
            {allowed.operate && <Button onClick={() => setEdited('new')}>Create a trigger</Button>}
          </Empty>
        }
      />
      {edited && (
        <TriggerForm
          trigger={edited === 'new' ? undefined : edited}
          onClose={() => setEdited(undefined)}
        />
      )}
      {removed && (
        <ConfirmDialog
          title={`Delete trigger ${removed.slug}?`}
          action="Delete trigger"
          kind="danger"
          isBusy={remove.isBusy}
          error={remove.error}
          onConfirm={() => remove.run(removed)}
          onClose={() => setRemoved(undefined)}
        >
          <p>The trigger will start no more instances. Instances that it started continue.</p>
        </ConfirmDialog>
      )}
    </Panel>
  );
}

const TYPES: readonly { readonly value: TriggerType; readonly label: string }[] = [
  { value: 'webhook', label: 'A signed request' },
  { value: 'event', label: 'An event' },
];

/** @param props.trigger the one to change; undefined: a new one */
function TriggerForm(props: { trigger: Trigger | undefined; onClose: () => void }) {
  const { trigger, onClose } = props;
  const { client } = useEngine();
  const [slug, setSlug] = useState(trigger?.slug ?? '');
  const [namespace, setNamespace] = useState('default');
  const [sequence, setSequence] = useState(trigger?.sequence_name ?? '');
  const [type, setType] = useState<TriggerType>(trigger?.trigger_type ?? 'webhook');
  const [secret, setSecret] = useState('');
  const [event, setEvent] = useState(String(trigger?.config.event_name ?? ''));
  const guard = useGuard(trigger, () => client.triggers.get(slug), viewOf);
  const save = useAction(
    async () => {
      const cause =
        type === 'event'
          ? { config: { ...trigger?.config, event_name: event } }
          : { ...(secret !== '' && { secret }) };
      return trigger === undefined
        ? client.triggers.create({
            ...{ slug, namespace, sequence_name: sequence, trigger_type: type },
            ...cause,
          })
        : guard.run((since) =>
            client.triggers.update(slug, { sequence_name: sequence, ...cause, ...since }),
          );
    },
    { done: () => `${trigger ? 'Changed' : 'Created'}: ${slug}`, onDone: onClose },
  );
  return (
    <Dialog
      title={trigger ? `Change the trigger ${trigger.slug}` : 'New trigger'}
      onClose={onClose}
    >
      <Form onSubmit={() => save.run(undefined)}>
        {!trigger && (
          <TextField
            label="Name"
            required
            value={slug}
            onChange={setSlug}
            hint="Part of the URL: letters, digits, dots, _, ~ and -"
            wrong={wrongOf(save.error, 'slug')}
          />
        )}
        {!trigger && (
          <TextField
            label="Namespace"
            required
            value={namespace}
            onChange={setNamespace}
            hint="Namespace of the sequence and of the instances"
            wrong={wrongOf(save.error, 'namespace')}
          />
        )}
        <SequenceField
          value={sequence}
          onChange={setSequence}
          wrong={wrongOf(save.error, 'sequence_name')}
        />
        {!trigger && <Select label="Started by" value={type} options={TYPES} onChange={setType} />}
        {type === 'webhook' ? (
          <TextField
            label={trigger ? 'New secret' : 'Secret'}
            type="password"
            autoComplete="off"
            required={!trigger}
            value={secret}
            onChange={setSecret}
            hint={
              trigger
                ? `If empty, requests ${trigger.secret === null ? 'stay unsigned' : 'are signed as before'}`
                : 'The key with which callers sign their requests'
            }
            wrong={wrongOf(save.error, 'secret')}
          />
        ) : (
          <TextField
            label="Event name"
            required
            value={event}
            onChange={setEvent}
            wrong={wrongOf(save.error, 'event_name')}
          />
        )}
        <Conflict
          guard={guard}
          mine={{ sequence_name: sequence, event_name: type === 'event' ? event : undefined }}
          onTake={(present) => {
            setSequence(present.sequence_name);
            setEvent(String(present.config.event_name ?? ''));
            save.reset();
          }}
          onKeep={() => save.run(undefined)}
        />
        {save.error !== null && <ErrorBox error={save.error} />}
        <DialogActions label={trigger ? 'Save' : 'Create'} isBusy={save.isBusy} onClose={onClose} />
      </Form>
    </Dialog>
  );
}

const viewOf = ({ sequence_name, config }: Trigger) => ({
  sequence_name,
  event_name: config.event_name,
});
