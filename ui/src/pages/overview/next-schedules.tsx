/** The schedules that fire next. */

import { Link } from 'wouter';
import { useRead } from '../../api/read.ts';
import { Empty } from '../../components/error-box.tsx';
import { Loaded } from '../../components/loaded.tsx';
import { Panel } from '../../components/page.tsx';
import { Time } from '../../components/time.tsx';
import { StartedBy } from '../schedules/schedules.tsx';
import styles from './overview.module.css';

const SHOWN = 5;

export function NextSchedules() {
  const schedules = useRead('cron.list', [{ order: 'next_fire', limit: SHOWN }], {
    select: ({ items }) => items.filter(({ enabled, next_fire_at }) => enabled && next_fire_at),
    live: 'all',
  });
  return (
    <Panel title="Next schedules" isFlush actions={<Link href="/schedules">All schedules</Link>}>
      <div className={styles.short}>
        <Loaded query={schedules} height={160}>
          {(next) =>
            next.length === 0 ? (
              <Empty title="No upcoming schedules">
                <p>
                  A schedule starts instances at given times.{' '}
                  <Link href="/schedules">Create or enable a schedule</Link>
                </p>
              </Empty>
            ) : (
              <ul className={styles.list}>
                {next.map((schedule) => (
                  <li key={schedule.id}>
                    <Link href={`/schedules/${schedule.id}`}>
                      <StartedBy schedule={schedule} />
                    </Link>
                    <Time at={schedule.next_fire_at} />
                  </li>
                ))}
              </ul>
            )
          }
        </Loaded>
      </div>
    </Panel>
  );
}
