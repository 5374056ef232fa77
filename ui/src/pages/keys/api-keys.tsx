/** The API keys of the tenant: capabilities and last use, and forms to create and revoke keys. */

import type { ApiKey, Capability, KeyMinted } from 'durable-workflow-engine-client';
import { KeyRound, Plus } from 'lucide-react';
import { useState } from 'react';
import { useEngine } from '../../api/engine.tsx';
import { useAction } from '../../components/action.ts';
import { Badge } from '../../components/badge.tsx';
import { Button, ButtonRow } from '../../components/button.tsx';
import { ConfirmDialog, Dialog, DialogActions } from '../../components/dialog.tsx';
import { Empty, ErrorBox } from '../../components/error-box.tsx';
import { Choices, DateTimeField, Form, TextField, wrongOf } from '../../components/field.tsx';
import { ListTable, useList } from '../../components/list.tsx';
import { Panel } from '../../components/page.tsx';
import { SecretOnce } from '../../components/secret-once.tsx';
import type { Column } from '../../components/table.tsx';
import { Time } from '../../components/time.tsx';

const COLUMNS: readonly Column<ApiKey>[] = [
  { name: 'Name', cell: ({ name, id }) => name || <code>{id}</code> },
  {
    name: 'Capabilities',
    cell: ({ capabilities, groups }) => (
      <ButtonRow>
        {capabilities.map((word) => (
          <Badge key={word}>{word}</Badge>
        ))}
        {groups.length > 0 && <span className="dim">for {groups.join(', ')}</span>}
      </ButtonRow>
    ),
  },
  { name: 'State', cell: (key) => <KeyState apiKey={key} /> },
  { name: 'Last used', cell: ({ last_used_at }) => <Time at={last_used_at} /> },
  { name: 'Expires', cell: ({ expires_at }) => <Time at={expires_at} /> },
  { name: 'Created', cell: ({ created_at }) => <Time at={created_at} /> },
];

function KeyState({ apiKey }: { apiKey: ApiKey }) {
  if (apiKey.revoked) return <Badge tone="idle">revoked</Badge>;
  const hasExpired = apiKey.expires_at !== null && Date.parse(apiKey.expires_at) <= Date.now();
  return hasExpired ? <Badge tone="warn">expired</Badge> : <Badge tone="ok">valid</Badge>;
}

export function ApiKeys() {
  const { client, tenant = '' } = useEngine();
  const [isMaking, setMaking] = useState(false);
  const [revoked, setRevoked] = useState<ApiKey>();
  const list = useList<ApiKey>(['apiKeys.list', tenant], (page, options) =>
    client.apiKeys.list({ ...page, tenant_id: tenant }, options),
  );
  const revoke = useAction(({ id }: ApiKey) => client.apiKeys.revoke(id), {
    done: (_, { name, id }) => `Revoked: ${name || id}`,
    onDone: () => setRevoked(undefined),
  });
  const action: Column<ApiKey> = {
    name: 'Action',
    cell: (key) => !key.revoked && <Button onClick={() => setRevoked(key)}>Revoke</Button>,
  };
  return (
    <Panel
      title="API keys"
      isFlush
      actions={
        <Button icon={Plus} onClick={() => setMaking(true)}>
          New key
        </Button>
      }
    >
      <ListTable
        list={list}
        label="API keys"
        columns={[...COLUMNS, action]}
        idOf={({ id }) => id}
        empty={
          <Empty title="No keys yet" icon={KeyRound}>
            <p>Workers and applications use a key each, with no more rights than they need.</p>
            <Button onClick={() => setMaking(true)}>Create a key</Button>
          </Empty>
        }
      />
      {isMaking && <NewKey onClose={() => setMaking(false)} />}
      {revoked && (
        <ConfirmDialog
          title={`Revoke ${revoked.name || revoked.id}?`}
          action="Revoke key"
          kind="danger"
          isBusy={revoke.isBusy}
          error={revoke.error}
          onConfirm={() => revoke.run(revoked)}
          onClose={() => setRevoked(undefined)}
        >
          <p>
            Requests with this key will be rejected and its open connections closed. This cannot be
            undone.
          </p>
        </ConfirmDialog>
      )}
    </Panel>
  );
}

const CAPABILITIES: readonly (readonly [word: Capability, about: string])[] = [
  ['operator', 'full access to the tenant'],
  ['auditor', 'read-only access'],
  ['worker', 'claims tasks and reports their results'],
  ['starter', 'starts instances, sends signals and events'],
  ['events', 'only sends events'],
  ['publisher', 'publishes sequences and manages releases'],
  ['approver', 'answers approvals'],
  ['secrets', 'in addition to worker: receives the secrets that tasks refer to'],
];

function NewKey({ onClose }: { onClose: () => void }) {
  const { client, tenant = '' } = useEngine();
  const [name, setName] = useState('');
  const [expires, setExpires] = useState('');
  const [chosen, setChosen] = useState<readonly Capability[]>([]);
  const [groups, setGroups] = useState('');
  const isApprover = chosen.includes('approver');
  const [made, setMade] = useState<KeyMinted>();
  const mint = useAction(
    () =>
      client.apiKeys.mint({
        tenant_id: tenant,
        name,
        capabilities: chosen,
        groups: isApprover ? groups.split(/[\s,]+/).filter((group) => group !== '') : null,
        expires_at: expires === '' ? null : new Date(expires).toISOString(),
      }),
    { onDone: setMade },
  );
  if (made) {
    return (
      <SecretOnce
        title="API key created"
        about="The server stores only its hash."
        secret={made.secret}
        onClose={onClose}
      />
    );
  }
  return (
    <Dialog title="New API key" onClose={onClose}>
      <Form onSubmit={() => mint.run(undefined)}>
        <TextField
          label="Name"
          value={name}
          onChange={setName}
          hint="Who uses the key, such as billing worker"
          wrong={wrongOf(mint.error, 'name')}
        />
        <Choices
          legend="Capabilities"
          options={CAPABILITIES.map(([value, about]) => ({
            value,
            label: (
              <>
                <strong>{value}</strong> <span className="dim">{about}</span>
              </>
            ),
          }))}
          chosen={chosen}
          onChange={setChosen}
        />
        {isApprover && (
          <TextField
            label="Groups"
            value={groups}
            onChange={setGroups}
            hint="Such as finance, legal. Approvals that name approvers accept only keys of one of their groups"
            wrong={wrongOf(mint.error, 'groups')}
          />
        )}
        <DateTimeField
          label="Expires"
          value={expires}
          onChange={setExpires}
          hint="Leave empty for a key that never expires"
          wrong={wrongOf(mint.error, 'expires_at')}
        />
        {mint.error !== null && <ErrorBox error={mint.error} />}
        <DialogActions label="Create key" isBusy={mint.isBusy} onClose={onClose} />
      </Form>
    </Dialog>
  );
}
