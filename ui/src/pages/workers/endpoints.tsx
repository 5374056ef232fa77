/** The worker endpoints, to which the engine delivers tasks by POST, with their current state. */

import type { EndpointStatus, WorkerEndpoint } from 'durable-workflow-engine-client';
import { Plus, Send } from 'lucide-react';
import { useState } from 'react';
import { Link } from 'wouter';
import { useEngine } from '../../api/engine.tsx';
import { useAction } from '../../components/action.ts';
import { Badge, type Tone } from '../../components/badge.tsx';
import { Button, ButtonRow } from '../../components/button.tsx';
import { ConfirmDialog } from '../../components/dialog.tsx';
import { Empty, ErrorBox } from '../../components/error-box.tsx';
import { ListTable, useList } from '../../components/list.tsx';
import { Panel } from '../../components/page.tsx';
import type { Column } from '../../components/table.tsx';
import { Time } from '../../components/time.tsx';
import { hrefOf } from '../../lib/address.ts';
import { formatCount } from '../../lib/format.ts';
import { pageByOffset } from '../../lib/offset.ts';
import { EndpointForm, settingsOf } from './endpoint-form.tsx';

/** Deliveries are not changes of instances. */
const READ_EVERY_MS = 5000;

const TONES: Record<EndpointStatus['state'], Tone> = {
  idle: 'ok',
  delivering: 'info',
  paused: 'danger',
  disabled: 'idle',
};

const COLUMNS: readonly Column<WorkerEndpoint>[] = [
  {
    name: 'Endpoint',
    cell: ({ name, url }) => (
      <>
        <Link href={hrefOf('/workers/tasks', { worker: `endpoint:${name}` })}>{name}</Link>
        <br />
        <span className="dim small">{url}</span>
      </>
    ),
  },
  { name: 'Handlers', cell: ({ handlers }) => handlers.join(', ') },
  { name: 'State', cell: ({ status }) => status && <State status={status} /> },
  {
    name: 'In flight',
    isNumber: true,
    cell: ({ status, concurrency }) =>
      `${formatCount(status?.in_flight ?? 0)} of ${formatCount(concurrency)}`,
  },
  { name: 'Last success', cell: ({ status }) => <Time at={status?.last_success_at} /> },
];

function State({ status }: { readonly status: EndpointStatus }) {
  const { state, paused_until, last_error } = status;
  return (
    <>
      <Badge tone={TONES[state]}>{state}</Badge>{' '}
      {state === 'paused' && (
        <span className="small">
          tries again <Time at={paused_until} />
        </span>
      )}
      {last_error !== null && (
        <>
          <br />
          <span className="dim small">{last_error}</span>
        </>
      )}
    </>
  );
}

export function Endpoints() {
  const { client, allowed } = useEngine();
  const [edited, setEdited] = useState<WorkerEndpoint | 'new'>();
  const [removed, setRemoved] = useState<WorkerEndpoint>();
  const list = useList<WorkerEndpoint>(
    ['workerEndpoints.list'],
    (page, options) => pageByOffset(page, (asked) => client.workerEndpoints.list(asked, options)),
    { refetchInterval: READ_EVERY_MS },
  );
  const toggle = useAction((endpoint: WorkerEndpoint) =>
    client.workerEndpoints.put(endpoint.name, {
      ...settingsOf(endpoint),
      enabled: !endpoint.enabled,
      if_unchanged_since: endpoint.updated_at,
    }),
  );
  const remove = useAction(({ name }: WorkerEndpoint) => client.workerEndpoints.delete(name), {
    done: (_, { name }) => `Deleted: ${name}`,
    onDone: () => setRemoved(undefined),
  });
  const action: Column<WorkerEndpoint> = {
    name: 'Action',
    cell: (endpoint) => (
      <ButtonRow>
        {(allowed.useSecrets || !endpoint.receives_secrets) && (
          <>
            <Button onClick={() => setEdited(endpoint)}>Change</Button>
            <Button isBusy={toggle.isBusy} onClick={() => toggle.run(endpoint)}>
              {endpoint.enabled ? 'Disable' : 'Enable'}
            </Button>
          </>
        )}
        <Button onClick={() => setRemoved(endpoint)}>Delete</Button>
      </ButtonRow>
    ),
  };
  return (
    <Panel
      title="Worker endpoints"
      isFlush
      actions={
        allowed.operate && (
          <Button icon={Plus} onClick={() => setEdited('new')}>
            New endpoint
          </Button>
        )
      }
    >
      {toggle.error !== null && <ErrorBox error={toggle.error} />}
      <ListTable
        list={list}
        label="Worker endpoints"
        columns={allowed.operate ? [...COLUMNS, action] : COLUMNS}
        idOf={({ name }) => name}
        empty={
          <Empty title="No worker endpoints yet" icon={Send}>
            <p>
              The engine delivers tasks to an endpoint by signed POST, so that a serverless function
              can run steps without polling.
            </p>
            {allowed.operate && (
              <Button onClick={() => setEdited('new')}>Create an endpoint</Button>
            )}
          </Empty>
        }
      />
      {edited && (
        <EndpointForm
          endpoint={edited === 'new' ? undefined : edited}
          onClose={() => setEdited(undefined)}
        />
      )}
      {removed && (
        <ConfirmDialog
          title={`Delete the endpoint ${removed.name}?`}
          action="Delete endpoint"
          kind="danger"
          isBusy={remove.isBusy}
          error={remove.error}
          onConfirm={() => remove.run(removed)}
          onClose={() => setRemoved(undefined)}
        >
          <p>
            It gets no more tasks: those of {removed.handlers.join(', ')} wait for another worker.
            Responses to requests in flight still count.
          </p>
        </ConfirmDialog>
      )}
    </Panel>
  );
}
