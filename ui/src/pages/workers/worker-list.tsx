/** The known workers, and their tasks. */

import type { WorkerInfo } from 'durable-workflow-engine-client';
import { Zap } from 'lucide-react';
import { Link } from 'wouter';
import { useRead } from '../../api/read.ts';
import { Badge } from '../../components/badge.tsx';
import { Empty } from '../../components/error-box.tsx';
import { TablePanel } from '../../components/list-panel.tsx';
import type { Column } from '../../components/table.tsx';
import { Time } from '../../components/time.tsx';
import { hrefOf } from '../../lib/address.ts';
import { formatCount } from '../../lib/format.ts';

const READ_EVERY_MS = 5000;

export const WORKER_COLUMNS: readonly Column<WorkerInfo>[] = [
  {
    name: 'Worker',
    cell: ({ worker_id, version }) => (
      <>
        <Link href={hrefOf('/workers/tasks', { worker: worker_id })}>{worker_id}</Link>{' '}
        {version !== null && <span className="dim small">{version}</span>}
      </>
    ),
  },
  {
    name: 'State',
    cell: ({ alive }) =>
      alive ? <Badge tone="ok">alive</Badge> : <Badge tone="warn">not responding</Badge>,
  },
  { name: 'Handlers', cell: ({ handlers }) => handlers.join(', ') },
  { name: 'Queues', cell: ({ queues }) => queues.join(', ') },
  { name: 'Tasks', isNumber: true, cell: ({ in_flight }) => formatCount(in_flight) },
  { name: 'Last seen', cell: ({ last_seen_at }) => <Time at={last_seen_at} /> },
];

export function WorkerList() {
  const workers = useRead('workers.list', [{ include_stale: true }], {
    refetchInterval: READ_EVERY_MS,
  });
  return (
    <TablePanel
      title="Workers, most recently seen first"
      label="Workers"
      query={workers}
      columns={WORKER_COLUMNS}
      rowsOf={(rows) => rows}
      idOf={({ worker_id }) => worker_id}
      empty={
        <Empty title="No workers yet" icon={Zap}>
          <p>
            A worker is your own process that polls for tasks with the client library or over REST.
            It is listed here from its first poll on.
          </p>
        </Empty>
      }
    />
  );
}
