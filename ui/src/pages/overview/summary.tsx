/** Four figures that show at a glance whether action is needed and whether the engine is healthy. */

import type { UseQueryResult } from '@tanstack/react-query';
import { EngineError } from 'durable-workflow-engine-client';
import { CircleCheck, CircleDashed, type LucideIcon, TriangleAlert } from 'lucide-react';
import type { ReactNode } from 'react';
import { Link } from 'wouter';
import { useReady } from '../../api/engine.tsx';
import { type LiveState, useLiveState } from '../../api/live.tsx';
import { countOf, formatCompact } from '../../lib/format.ts';
import { useOpenApprovals } from '../approvals/approvals.tsx';
import { useCauses } from '../failures/cause-table.tsx';
import { LAST_DAY } from '../failures/periods.ts';
import { useQueues } from '../workers/queues.tsx';
import styles from './overview.module.css';

export function Summary() {
  const failures = useCauses().data;
  const queues = useQueues().data;
  const approvals = useOpenApprovals().data;
  const failed = failures?.causes.reduce((sum, { count }) => sum + count, 0);
  const waiting = queues?.queues.reduce((sum, queue) => sum + queue.waiting, 0);
  const starving = queues?.queues.filter((queue) => queue.waiting > 0 && queue.workers === 0);
  return (
    <div className={styles.summary}>
      <Figure
        name={`Failed in ${LAST_DAY.words}`}
        href="/failures"
        value={failed}
        isMore={failures?.complete === false}
        tone={failed ? 'danger' : undefined}
      />
      <Figure
        name={
          starving?.length
            ? `Waiting tasks; ${countOf(starving.length, 'queue')} without workers`
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
      <Health />
    </div>
  );
}

function Health() {
  const live = useLiveState();
  const ready = useReady();
  const [Icon, word, tone, why] = healthOf(live, ready);
  return (
    <Link href="/server" className={styles.fact}>
      <span className={styles.value}>
        <Icon size={22} className={tone && styles[tone]} aria-hidden /> {word}
      </span>
      <span className="dim small">{why ?? 'Engine'}</span>
    </Link>
  );
}

type Healthy = readonly [icon: LucideIcon, word: string, tone?: 'danger' | 'warn', why?: string];

/** The health that the engine reports, or that follows from its silence. */
function healthOf(live: LiveState, ready: UseQueryResult<unknown>): Healthy {
  const { error } = ready;
  if (error instanceof EngineError && error.code.startsWith('ENG_')) {
    return [TriangleAlert, 'Not ready', 'warn', error.message];
  }
  if (error !== null || live === 'lost') return [TriangleAlert, 'Unreachable', 'danger'];
  if (ready.data === undefined || live === 'connecting') return [CircleDashed, 'Connecting'];
  return [CircleCheck, 'Healthy'];
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
