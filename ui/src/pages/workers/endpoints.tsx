/** The worker endpoints, to which the engine delivers tasks by POST, with their current state. */

import type { EndpointStatus, WorkerEndpoint } from 'durable-workflow-engine-client';
import { Send } from 'lucide-react';
import { Link } from 'wouter';
import { useEngine } from '../../api/engine.tsx';
import { ActionButton, ConfirmButton, DialogButton } from '../../components/act.tsx';
import { useList } from '../../components/list.tsx';
import { ListPanel } from '../../components/list-panel.tsx';
import { StateWord } from '../../components/state-word.tsx';
import type { Column } from '../../components/table.tsx';
import { Time } from '../../components/time.tsx';
import { hrefOf } from '../../lib/address.ts';
import { formatCount } from '../../lib/format.ts';
import { EndpointForm, settingsOf } from './endpoint-form.tsx';

/** Deliveries are not changes of instances. */
const READ_EVERY_MS = 5000;

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
      <StateWord state={state} />{' '}
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
  const list = useList('workerEndpoints.list', [{}], {
    isByOffset: true,
    refetchInterval: READ_EVERY_MS,
  });
  return (
    <ListPanel
      title="Worker endpoints"
      list={list}
      columns={COLUMNS}
      idOf={({ name }) => name}
      mayChange={allowed.operate}
      create={{
        label: 'New endpoint',
        first: 'Create an endpoint',
        form: <EndpointForm endpoint={undefined} />,
      }}
      rowActions={(endpoint) => (
        <>
          {(allowed.useSecrets || !endpoint.receives_secrets) && (
            <>
              <DialogButton label="Change">
                <EndpointForm endpoint={endpoint} />
              </DialogButton>
              <ActionButton
                label={endpoint.enabled ? 'Disable' : 'Enable'}
                act={() =>
                  client.workerEndpoints.put(endpoint.name, {
                    ...settingsOf(endpoint),
                    enabled: !endpoint.enabled,
                    if_unchanged_since: endpoint.updated_at,
                  })
                }
              />
            </>
          )}
          <ConfirmButton
            label="Delete"
            title={`Delete the endpoint ${endpoint.name}?`}
            action="Delete endpoint"
            act={() => client.workerEndpoints.delete(endpoint.name)}
            done={() => `Deleted: ${endpoint.name}`}
          >
            <p>
              It gets no more tasks: those of {endpoint.handlers.join(', ')} wait for another
              worker. Responses to requests in flight still count.
            </p>
          </ConfirmButton>
        </>
      )}
      empty={{
        title: 'No worker endpoints yet',
        icon: Send,
        about:
          'The engine delivers tasks to an endpoint by signed POST, so that a serverless function can run steps without polling.',
      }}
    />
  );
}
