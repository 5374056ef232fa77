/** The API keys of the tenant: capabilities and last use, and forms to create and revoke keys. */

import type { ApiKey, Capability, KeyMinted } from 'durable-workflow-engine-client';
import { KeyRound } from 'lucide-react';
import { useState } from 'react';
import { useEngine } from '../../api/engine.tsx';
import { ConfirmButton } from '../../components/act.tsx';
import { Badge } from '../../components/badge.tsx';
import { ButtonRow } from '../../components/button.tsx';
import { Choices, DateTimeField, TextField } from '../../components/field.tsx';
import { FormDialog, useForm } from '../../components/form.tsx';
import { useList } from '../../components/list.tsx';
import { ListPanel } from '../../components/list-panel.tsx';
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
  const list = useList('apiKeys.list', [{ tenant_id: tenant }]);
  return (
    <ListPanel
      title="API keys"
      list={list}
      columns={COLUMNS}
      idOf={({ id }) => id}
      create={{ label: 'New key', first: 'Create a key', form: <NewKey /> }}
      rowActions={({ id, name, revoked }) =>
        !revoked && (
          <ConfirmButton
            label="Revoke"
            title={`Revoke ${name || id}?`}
            action="Revoke key"
            act={() => client.apiKeys.revoke(id)}
            done={() => `Revoked: ${name || id}`}
          >
            <p>
              Requests with this key will be rejected and its open connections closed. This cannot
              be undone.
            </p>
          </ConfirmButton>
        )
      }
      empty={{
        title: 'No keys yet',
        icon: KeyRound,
        about: 'Workers and applications use a key each, with no more rights than they need.',
      }}
    />
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

const FIRST = { name: '', capabilities: [] as readonly Capability[], groups: '', expires_at: '' };

const isApprover = (chosen: readonly Capability[]) => chosen.includes('approver');

function NewKey() {
  const { client, tenant = '' } = useEngine();
  const [made, setMade] = useState<KeyMinted>();
  const form = useForm(
    FIRST,
    ({ name, capabilities, groups, expires_at: expires }) =>
      client.apiKeys.mint({
        ...{ tenant_id: tenant, name, capabilities },
        groups: isApprover(capabilities)
          ? groups.split(/[\s,]+/).filter((group) => group !== '')
          : null,
        expires_at: expires === '' ? null : new Date(expires).toISOString(),
      }),
    { onDone: setMade },
  );
  const { at, draft } = form;
  if (made) {
    return (
      <SecretOnce
        title="API key created"
        about="The server stores only its hash."
        secret={made.secret}
      />
    );
  }
  return (
    <FormDialog form={form} title="New API key" label="Create key">
      <TextField label="Name" hint="Who uses the key, such as billing worker" {...at('name')} />
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
        {...at('capabilities')}
      />
      {isApprover(draft.capabilities) && (
        <TextField
          label="Groups"
          hint="Such as finance, legal. Approvals that name approvers accept only keys of one of their groups"
          {...at('groups')}
        />
      )}
      <DateTimeField
        label="Expires"
        hint="Leave empty for a key that never expires"
        {...at('expires_at')}
      />
    </FormDialog>
  );
}
