/** Four numbers that say at a glance whether anybody has to act, and whether the engine is well. */

import { CircleCheck, TriangleAlert } from 'lucide-react';
import type { ReactNode } from 'react';
import { Link } from 'wouter';
import { useLiveState } from '../../api/live.tsx';
import { formatCompact } from '../../lib/format.ts';
import { useOpenApprovals } from '../approvals/approvals.tsx';
import { useFailureGroups } from '../failures/failures.tsx';
import { useQueues } from '../workers/queues.tsx';
import styles from './overview.module.css';

export function Summary() {
  const live = useLiveState();
  const failures = useFailureGroups().data;
  const queues = useQueues().data;
  const approvals = useOpenApprovals().data;
  const failed = failures?.groups.reduce((sum, { count }) => sum + count, 0);
  const waiting = queues?.queues.reduce((sum, queue) => sum + queue.waiting, 0);
  const starving = queues?.queues.filter((queue) => queue.waiting > 0 && queue.workers === 0);
  return (
    <div className={styles.summary}>
      <Figure
        name="Failed instances"
        href="/failures"
        value={failed}
        isMore={failures?.complete === false}
        tone={failed ? 'danger' : undefined}
      />
      <Figure
        name={
          starving?.length
            ? `Waiting tasks; nobody serves ${starving.length} of the queues`
            : 'Waiting tasks'
        }
        href="/workers"
        value={waiting}
        isMore={queues?.complete === false}
        tone={starving?.length ? 'warn' : undefined}
      />
      <Figure
        name="Open approvals"
        href="/approvals"
        value={approvals?.items.length}
        isMore={approvals?.hasMore}
      />
      <Link href="/server" className={styles.fact}>
        <span className={styles.value}>
          {live === 'lost' ? (
            <>
              <TriangleAlert size={22} className={styles.danger} aria-hidden /> Away
            </>
          ) : (
            <>
              <CircleCheck size={22} aria-hidden /> Well
            </>
          )}
        </span>
        <span className="dim small">Engine</span>
      </Link>
    </div>
  );
}

function Figure(props: {
  name: ReactNode;
  href: string;
  value: number | undefined;
  isMore?: boolean | undefined;
  tone?: 'danger' | 'warn' | undefined;
}) {
  const { name, href, value, isMore, tone } = props;
  return (
    <Link href={href} className={styles.fact}>
      <span className={[styles.value, tone && styles[tone]].filter(Boolean).join(' ')}>
        {value === undefined ? '–' : formatCompact(value)}
        {isMore && '+'}
      </span>
      <span className="dim small">{name}</span>
    </Link>
  );
}
