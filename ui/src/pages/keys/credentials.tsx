/** The secrets that steps refer to in their params: values are never shown, only replaced or disabled. */

import type { Credential } from 'durable-workflow-engine-client';
import { Lock, Plus } from 'lucide-react';
import { useState } from 'react';
import { useEngine } from '../../api/engine.tsx';
import { useAction } from '../../components/action.ts';
import { Badge } from '../../components/badge.tsx';
import { Button, ButtonRow } from '../../components/button.tsx';
import { ConfirmDialog, Dialog, DialogActions } from '../../components/dialog.tsx';
import { Empty, ErrorBox } from '../../components/error-box.tsx';
import { Form, TextArea, TextField, wrongOf } from '../../components/field.tsx';
import { ListTable, useList } from '../../components/list.tsx';
import { Panel } from '../../components/page.tsx';
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

type Open = { readonly kind: 'new' } | { readonly kind: 'replace' | 'delete'; readonly id: string };

export function Credentials() {
  const { client, allowed } = useEngine();
  const [open, setOpen] = useState<Open>();
  const close = () => setOpen(undefined);
  const list = useList<Credential>(['credentials.list'], (page, options) =>
    client.credentials.list(page, options),
  );
  const toggle = useAction(({ id, enabled }: Credential) =>
    client.credentials.update(id, { enabled: !enabled }),
  );
  const remove = useAction((id: string) => client.credentials.delete(id), {
    done: (_, id) => `Deleted: ${id}`,
    onDone: close,
  });
  const actions: Column<Credential> = {
    name: 'Action',
    cell: (credential) => (
      <ButtonRow>
        <Button onClick={() => setOpen({ kind: 'replace', id: credential.id })}>Replace</Button>
        <Button isBusy={toggle.isBusy} onClick={() => toggle.run(credential)}>
          {credential.enabled ? 'Disable' : 'Enable'}
        </Button>
        <Button onClick={() => setOpen({ kind: 'delete', id: credential.id })}>Delete</Button>
      </ButtonRow>
    ),
  };
  return (
    <Panel
      title="Secrets of steps"
      isFlush
      actions={
        allowed.operate && (
          <Button icon={Plus} onClick={() => setOpen({ kind: 'new' })}>
            New secret
          </Button>
        )
      }
    >
      {toggle.error !== null && <ErrorBox error={toggle.error} />}
      <ListTable
        list={list}
        label="Secrets of steps"
        columns={allowed.operate ? [...COLUMNS, actions] : COLUMNS}
        idOf={({ id }) => id}
        empty={
          <Empty title="No secrets yet" icon={Lock}>
            <p>
              A step names one in its params, as in <code>{'{{secrets.bank_token}}'}</code>, and it
              is inserted when the step runs. Secrets are stored encrypted and never shown.
            </p>
            {allowed.operate && (
              <Button onClick={() => setOpen({ kind: 'new' })}>Create a secret</Button>
            )}
          </Empty>
        }
      />
      {(open?.kind === 'new' || open?.kind === 'replace') && (
        <SecretForm id={open.kind === 'replace' ? open.id : undefined} onClose={close} />
      )}
      {open?.kind === 'delete' && (
        <ConfirmDialog
          title={`Delete secret ${open.id}?`}
          action="Delete secret"
          kind="danger"
          isBusy={remove.isBusy}
          error={remove.error}
          onConfirm={() => remove.run(open.id)}
          onClose={close}
        >
          <p>Steps that refer to this secret will fail.</p>
        </ConfirmDialog>
      )}
    </Panel>
  );
}

/** @param props.id of the secret whose value is replaced; undefined: a new secret */
function SecretForm({ id, onClose }: { id: string | undefined; onClose: () => void }) {
  const { client } = useEngine();
  const [name, setName] = useState('');
  const [description, setDescription] = useState('');
  const [value, setValue] = useState('');
  const save = useAction(
    () =>
      id === undefined
        ? client.credentials.create({ id: name, value, description: description || null })
        : client.credentials.update(id, { value }),
    { done: () => `Saved: ${id ?? name}`, onDone: onClose },
  );
  return (
    <Dialog title={id === undefined ? 'New secret' : `Replace ${id}`} onClose={onClose}>
      <Form onSubmit={() => save.run(undefined)}>
        {id === undefined && (
          <>
            <TextField
              label="Name"
              required
              value={name}
              onChange={setName}
              hint="The name that templates use: letters, digits, dots, _ and -"
              wrong={wrongOf(save.error, 'id')}
            />
            <TextField label="Description" value={description} onChange={setDescription} />
          </>
        )}
        <TextArea
          label="Secret"
          required
          value={value}
          onChange={setValue}
          hint="Text, or a JSON object whose members templates can use."
          wrong={wrongOf(save.error, 'value')}
        />
        {save.error !== null && <ErrorBox error={save.error} />}
        <DialogActions label="Save" isBusy={save.isBusy} onClose={onClose} />
      </Form>
    </Dialog>
  );
}
