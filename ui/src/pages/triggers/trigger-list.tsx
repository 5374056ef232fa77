/** The triggers, which start instances or publish events by a verified request or by an event. */

import type { Trigger } from 'durable-workflow-engine-client';
import { Plus, Radio } from 'lucide-react';
import { useState } from 'react';
import { Link } from 'wouter';
import { ENGINE_URL, useEngine } from '../../api/engine.tsx';
import { useAction } from '../../components/action.ts';
import { Badge } from '../../components/badge.tsx';
import { Button, ButtonRow } from '../../components/button.tsx';
import { CopyButton } from '../../components/copy.tsx';
import { ConfirmDialog } from '../../components/dialog.tsx';
import { Empty, ErrorBox } from '../../components/error-box.tsx';
import { ListTable, useList } from '../../components/list.tsx';
import { Panel } from '../../components/page.tsx';
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
          <Button icon={Plus} onClick={() => setEdited('new')}>
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
          <Empty title="No triggers yet" icon={Radio}>
            <p>A trigger starts an instance or publishes an event, on a request or on an event.</p>
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
          <p>The trigger will have no more effects. Instances that it started continue.</p>
        </ConfirmDialog>
      )}
    </Panel>
  );
}
