/** The triggers, which start instances or publish events by a verified request or by an event. */

import type { Trigger } from 'durable-workflow-engine-client';
import { Radio } from 'lucide-react';
import { Link } from 'wouter';
import { ENGINE_URL, useEngine } from '../../api/engine.tsx';
import { ActionButton, ConfirmButton, DialogButton } from '../../components/act.tsx';
import { Badge } from '../../components/badge.tsx';
import { CopyButton } from '../../components/copy.tsx';
import { useList } from '../../components/list.tsx';
import { ListPanel } from '../../components/list-panel.tsx';
import type { Column } from '../../components/table.tsx';
import { Time } from '../../components/time.tsx';
import { hrefOf } from '../../lib/address.ts';
import { SCHEMES, schemeOf } from './trigger-draft.ts';
import { TriggerForm } from './trigger-form.tsx';

const COLUMNS: readonly Column<Trigger>[] = [
  { name: 'Trigger', cell: ({ slug }) => <code>{slug}</code> },
  { name: 'Fired by', cell: (trigger) => <Cause trigger={trigger} /> },
  { name: 'Effect', cell: (trigger) => <Effect trigger={trigger} /> },
  {
    name: 'State',
    cell: ({ enabled }) =>
      enabled ? <Badge tone="ok">enabled</Badge> : <Badge tone="idle">disabled</Badge>,
  },
  { name: 'Changed', cell: ({ updated_at }) => <Time at={updated_at} /> },
];

function Cause({ trigger }: { readonly trigger: Trigger }) {
  const { slug, trigger_type, config } = trigger;
  if (trigger_type === 'event') {
    const { event_name, correlation_key } = config;
    return (
      <>
        event <code>{String(event_name)}</code>
        {correlation_key != null && <Detail name="key" code={String(correlation_key)} />}
      </>
    );
  }
  return (
    <>
      <span className="whole">
        webhook <CopyButton text={`${ENGINE_URL}/webhooks/${slug}`} label="Copy the address" />
      </span>
      <br />
      <Verified trigger={trigger} />
    </>
  );
}

function Verified({ trigger }: { readonly trigger: Trigger }) {
  const scheme = schemeOf(trigger);
  if (scheme === undefined) return <Badge tone="warn">refused: no secret</Badge>;
  const { header } = trigger.verify ?? {};
  return (
    <span className="dim small">
      verification: {SCHEMES[scheme].label}
      {header != null && (
        <>
          {' '}
          in <code>{header}</code>
        </>
      )}
    </span>
  );
}

function Effect({ trigger: { sequence_name, version, publish } }: { readonly trigger: Trigger }) {
  if (publish !== null) {
    return (
      <>
        publishes <code>{publish.event}</code>
        {publish.key != null && <Detail name="key" code={publish.key} />}
      </>
    );
  }
  const name = sequence_name ?? '';
  return (
    <>
      starts <Link href={hrefOf('/sequences', { name })}>{name}</Link>
      {version !== null && `, version ${version}`}
    </>
  );
}

/** On a line of its own. */
function Detail({ name, code }: { readonly name: string; readonly code: string }) {
  return (
    <>
      <br />
      <span className="dim small">
        {name} <code>{code}</code>
      </span>
    </>
  );
}

export function TriggerList() {
  const { client, allowed } = useEngine();
  const list = useList('triggers.list', [{}]);
  return (
    <ListPanel
      title="Triggers"
      list={list}
      columns={COLUMNS}
      idOf={({ slug }) => slug}
      mayChange={allowed.operate}
      create={{
        label: 'New trigger',
        first: 'Create a trigger',
        form: <TriggerForm trigger={undefined} />,
      }}
      rowActions={(trigger) => (
        <>
          <DialogButton label="Change">
            <TriggerForm trigger={trigger} />
          </DialogButton>
          <ActionButton
            label={trigger.enabled ? 'Disable' : 'Enable'}
            act={() => client.triggers.update(trigger.slug, { enabled: !trigger.enabled })}
          />
          <ConfirmButton
            label="Delete"
            title={`Delete trigger ${trigger.slug}?`}
            action="Delete trigger"
            act={() => client.triggers.delete(trigger.slug)}
            done={() => `Deleted: ${trigger.slug}`}
          >
            <p>The trigger will have no more effects. Instances that it started continue.</p>
          </ConfirmButton>
        </>
      )}
      empty={{
        title: 'No triggers yet',
        icon: Radio,
        about: 'A trigger starts an instance or publishes an event, on a request or on an event.',
      }}
    />
  );
}
