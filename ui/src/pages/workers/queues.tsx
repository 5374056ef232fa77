/** The queues by handler: number of waiting tasks, longest wait, and workers. */

import type { QueueInfo } from 'durable-workflow-engine-client';
import { Inbox } from 'lucide-react';
import { Link } from 'wouter';
import { useRead } from '../../api/read.ts';
import { Badge } from '../../components/badge.tsx';
import { Empty } from '../../components/error-box.tsx';
import { type Column, Table, TableNote } from '../../components/table.tsx';
import { Elapsed } from '../../components/time.tsx';
import { hrefOf } from '../../lib/address.ts';
import { countOf, formatCount } from '../../lib/format.ts';

/** Queues change with every task, which changes of instances do not reflect. */
const READ_EVERY_MS = 5000;

export function useQueues() {
  return useRead('queues.list', [{}], { refetchInterval: READ_EVERY_MS });
}

const inHand = (more: string): Column<QueueInfo> => ({
  name: 'Running',
  isNumber: true,
  cell: ({ claimed }) => `${formatCount(claimed)}${more}`,
});

/** Polls that would claim a task at once. Without any, workers are busy or poll only occasionally. */
const OPEN_POLLS: Column<QueueInfo> = {
  name: 'Open polls',
  isNumber: true,
  cell: ({ open_polls }) => formatCount(open_polls),
};

/**
 * @param isBrief without running tasks and polls, for narrow places
 * @param more suffix of the numbers if not all tasks were counted
 */
const columnsOf = (isBrief: boolean, more: string): readonly Column<QueueInfo>[] => [
  {
    name: 'Handler',
    cell: ({ handler, queue }) => (
      <>
        <Link href={hrefOf('/workers', { handler, queue: queue ?? undefined })}>{handler}</Link>{' '}
        {queue !== null && <span className="dim small">queue {queue}</span>}
      </>
    ),
  },
  { name: 'Waiting', isNumber: true, cell: ({ waiting }) => `${formatCount(waiting)}${more}` },
  {
    name: 'Longest wait',
    cell: ({ oldest_waiting_since }) =>
      oldest_waiting_since === null ? (
        <span className="dim">–</span>
      ) : (
        <Elapsed from={oldest_waiting_since} />
      ),
  },
  ...(isBrief ? [] : [inHand(more), OPEN_POLLS]),
  { name: 'Served by', cell: (queue) => <Served queue={queue} /> },
];

function Served({ queue: { workers, waiting } }: { queue: QueueInfo }) {
  if (workers > 0) return <Badge tone="ok">{countOf(workers, 'worker')}</Badge>;
  return <Badge tone={waiting > 0 ? 'danger' : 'idle'}>no worker</Badge>;
}

/**
 * @param props.isComplete whether every open task is counted
 * @param props.show selects the rows shown in narrow places, with fewer columns
 */
export function QueueTable(props: {
  readonly rows: readonly QueueInfo[];
  readonly isComplete: boolean;
  readonly show?: (rows: readonly QueueInfo[]) => readonly QueueInfo[];
}) {
  const { rows, isComplete, show } = props;
  const counted = rows.reduce((sum, { waiting, claimed }) => sum + waiting + claimed, 0);
  return (
    <>
      <Table
        label="Queues"
        columns={columnsOf(show !== undefined, isComplete ? '' : '+')}
        rows={show?.(rows) ?? rows}
        idOf={({ handler, queue }) => `${handler} ${queue}`}
        empty={
          <Empty title="No queues" icon={Inbox}>
            <p>
              Steps whose handler is not built in wait here for a worker.{' '}
              <Link href="/sequences">Start an instance of a sequence</Link> with such a step.
            </p>
          </Empty>
        }
      />
      {!isComplete && (
        <TableNote>Of the oldest {formatCount(counted)} open tasks; there are more.</TableNote>
      )}
    </>
  );
}
