/** Canary releases, with the verdicts of their gates. */

import { Link } from 'wouter';
import { useRead } from '../../api/read.ts';
import { Badge } from '../../components/badge.tsx';
import { Empty } from '../../components/error-box.tsx';
import { Loaded } from '../../components/loaded.tsx';
import { Panel } from '../../components/page.tsx';
import { Time } from '../../components/time.tsx';
import { GateMarks } from '../releases/gate-marks.tsx';
import styles from './overview.module.css';

/** More than an overview has room for; the page of releases shows the others. */
const SHOWN_MAX = 10;

export function Canaries() {
  const releases = useRead('releases.list', [{ state: 'canary', limit: SHOWN_MAX }], {
    live: 'all',
  });
  return (
    <Panel
      title="Canaries"
      isFlush
      actions={
        <Link href={releases.data?.nextCursor ? '/releases?state=canary' : '/releases'}>
          {releases.data?.nextCursor ? 'All canaries' : 'All releases'}
        </Link>
      }
    >
      <div className={styles.short}>
        <Loaded query={releases} height={160}>
          {({ items }) =>
            items.length === 0 ? (
              <Empty title="No canary is running">
                <p>
                  A canary routes a share of the new instances to another version.{' '}
                  <Link href="/releases">Create or start a release</Link>
                </p>
              </Empty>
            ) : (
              <ul className={styles.list}>
                {items.map((release) => (
                  <li key={release.id}>
                    <span>
                      <Link href={`/releases/${release.id}`}>{release.sequence_name}</Link>{' '}
                      <span className="dim">
                        {release.baseline_version} → {release.candidate_version}
                      </span>{' '}
                      <Badge tone="info">{release.canary_percent} %</Badge>{' '}
                      <span className="dim small">
                        since <Time at={release.canary_started_at} />
                      </span>
                    </span>
                    <GateMarks release={release} />
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
