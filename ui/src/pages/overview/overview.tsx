/** The first page: current failures, queues, approvals, throughput and health. */

import type { Approval, QueueInfo } from 'durable-workflow-engine-client';
import { Link } from 'wouter';
import { Empty } from '../../components/error-box.tsx';
import { Loaded } from '../../components/loaded.tsx';
import { Page, Panel } from '../../components/page.tsx';
import { useHold, useSteady } from '../../components/steady.ts';
import { ApprovalCard } from '../approvals/approval-card.tsx';
import { useOpenApprovals } from '../approvals/approvals.tsx';
import { CauseTable, useCauses } from '../failures/cause-table.tsx';
import { LAST_DAY } from '../failures/periods.ts';
import { QueueTable, useQueues } from '../workers/queues.tsx';
import { ActivityPanels } from './activity.tsx';
import { Canaries } from './canaries.tsx';
import { NextSchedules } from './next-schedules.tsx';
import styles from './overview.module.css';
import { Summary } from './summary.tsx';

const FAILURES_SHOWN = 5;
const QUEUES_SHOWN = 6;
const APPROVALS_SHOWN = 3;

export default function Overview() {
  return (
    <Page title="Overview">
      <Summary />
      <Failures />
      <div className={styles.pair}>
        <ActivityPanels />
      </div>
      <div className={styles.pair}>
        <WaitingForWorkers />
        <OpenApprovals />
        <Canaries />
        <NextSchedules />
      </div>
    </Page>
  );
}

function Failures() {
  const failures = useCauses();
  return (
    <Panel
      title={`Failures in ${LAST_DAY.words}`}
      isFlush
      actions={<Link href="/failures">All causes</Link>}
    >
      <div className={styles.failing}>
        <Loaded query={failures} height={234}>
          {({ causes, failed_after: failedAfter }) => (
            <CauseTable
              rows={causes.slice(0, FAILURES_SHOWN)}
              period={LAST_DAY}
              failedAfter={failedAfter}
            />
          )}
        </Loaded>
      </div>
    </Panel>
  );
}

function WaitingForWorkers() {
  const queues = useQueues();
  return (
    <Panel title="Waiting for workers" isFlush actions={<Link href="/workers">All queues</Link>}>
      <div className={styles.half}>
        <Loaded query={queues} height={420}>
          {({ queues: rows, complete }) => (
            <QueueTable rows={rows} isComplete={complete} show={gravest} />
          )}
        </Loaded>
      </div>
    </Panel>
  );
}

/** Queues without workers first, then by number of waiting tasks. */
function gravest(queues: readonly QueueInfo[]): readonly QueueInfo[] {
  return queues
    .toSorted(
      (a, b) =>
        Number(isStarving(b)) - Number(isStarving(a)) ||
        b.waiting - a.waiting ||
        b.claimed - a.claimed,
    )
    .slice(0, QUEUES_SHOWN);
}

const isStarving = ({ workers, waiting }: { workers: number; waiting: number }) =>
  workers === 0 && waiting > 0;

function OpenApprovals() {
  const approvals = useOpenApprovals();
  return (
    <Panel
      title="Approvals, longest wait first"
      isFlush
      actions={<Link href="/approvals">All approvals</Link>}
    >
      <div className={styles.half}>
        <Loaded query={approvals} height={420}>
          {({ items }) => <Longest items={items.slice(0, APPROVALS_SHOWN)} />}
        </Loaded>
      </div>
    </Panel>
  );
}

function Longest({ items }: { readonly items: readonly Approval[] }) {
  const [isHeld, hold] = useHold();
  const { rows } = useSteady(items, ({ id }) => id, { isHeld, of: 'longest' });
  if (rows.length === 0) {
    return (
      <Empty title="No open approvals">
        <p>
          A step with <code>wait_for_input</code> waits for an answer.{' '}
          <Link href="/sequences">Go to the sequences</Link>
        </p>
      </Empty>
    );
  }
  return (
    <ul className={styles.approvals} {...hold}>
      {rows.map(({ row, isGone }) => (
        <li key={row.id}>
          <ApprovalCard approval={row} isClosed={isGone} />
        </li>
      ))}
    </ul>
  );
}
