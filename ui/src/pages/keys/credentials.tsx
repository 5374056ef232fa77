/** The secrets that steps refer to in their params: values are never shown, only replaced or disabled. */

import type { Credential } from 'durable-workflow-engine-client';
import { Lock } from 'lucide-react';
import { useEngine } from '../../api/engine.tsx';
import { ActionButton, ConfirmButton, DialogButton } from '../../components/act.tsx';
import { Badge } from '../../components/badge.tsx';
import { TextArea, TextField } from '../../components/field.tsx';
import { FormDialog, useForm } from '../../components/form.tsx';
import { useList } from '../../components/list.tsx';
import { ListPanel } from '../../components/list-panel.tsx';
import type { Column } from '../../components/table.tsx';
import { Time } from '../../components/time.tsx';

const COLUMNS: readonly Column<Credential>[] = [
  { name: 'Name', cell: ({ id }) => <code>{`{{secrets.${id}}}`}</code> },
  {
    name: 'Description',
    cell: ({ description, name, id }) => description ?? (name === id ? '' : name),
  },
  { name: 'Kind', cell: ({ kind }) => kind },
  {
    name: 'State',
    cell: ({ enabled }) =>
      enabled ? <Badge tone="ok">enabled</Badge> : <Badge tone="idle">disabled</Badge>,
  },
  { name: 'Expires', cell: ({ expires_at }) => <Time at={expires_at} /> },
  { name: 'Changed', cell: ({ updated_at }) => <Time at={updated_at} /> },
];

export function Credentials() {
  const { client, allowed } = useEngine();
  const list = useList('credentials.list', [{}]);
  return (
    <ListPanel
      title="Secrets of steps"
      list={list}
      columns={COLUMNS}
      idOf={({ id }) => id}
      mayChange={allowed.operate}
      create={{ label: 'New secret', first: 'Create a secret', form: <SecretForm /> }}
      rowActions={({ id, enabled }) => (
        <>
          <DialogButton label="Replace">
            <SecretForm id={id} />
          </DialogButton>
          <ActionButton
            label={enabled ? 'Disable' : 'Enable'}
            act={() => client.credentials.update(id, { enabled: !enabled })}
          />
          <ConfirmButton
            label="Delete"
            title={`Delete secret ${id}?`}
            action="Delete secret"
            act={() => client.credentials.delete(id)}
            done={() => `Deleted: ${id}`}
          >
            <p>Steps that refer to this secret will fail.</p>
          </ConfirmButton>
        </>
      )}
      empty={{
        title: 'No secrets yet',
        icon: Lock,
        about: (
          <>
            A step names one in its params, as in <code>{'{{secrets.bank_token}}'}</code>, and it is
            inserted when the step runs. Secrets are stored encrypted and never shown.
          </>
        ),
      }}
    />
  );
}

/** @param props.id of the secret whose value is replaced; absent: a new secret */
function SecretForm({ id }: { id?: string }) {
  const { client } = useEngine();
  const form = useForm(
    { name: '', description: '', value: '' },
    ({ name, value, description }) =>
      id === undefined
        ? client.credentials.create({ id: name, value, description: description || null })
        : client.credentials.update(id, { value }),
    { done: (_, { name }) => `Saved: ${id ?? name}` },
  );
  const { at } = form;
  return (
    <FormDialog form={form} title={id === undefined ? 'New secret' : `Replace ${id}`} label="Save">
      {id === undefined && (
        <>
          <TextField
            label="Name"
            required
            hint="The name that templates use: letters, digits, dots, _ and -"
            {...at('name', 'id')}
          />
          <TextField label="Description" {...at('description')} />
        </>
      )}
      <TextArea
        label="Secret"
        required
        hint="Text, or a JSON object whose members templates can use."
        {...at('value')}
      />
    </FormDialog>
  );
}
