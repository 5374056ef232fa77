/** Releases that route a share of the new instances to another version. */

import { useQuery } from '@tanstack/react-query';
import { Link } from 'wouter';
import { useEngine } from '../../api/engine.tsx';
import { Badge } from '../../components/badge.tsx';
import { Empty } from '../../components/error-box.tsx';
import { Loaded } from '../../components/loaded.tsx';
import { Panel } from '../../components/page.tsx';
import { Time } from '../../components/time.tsx';
import { countOf } from '../../lib/format.ts';
import styles from './overview.module.css';

/** Among the newest: older ones that are still open stand on the page of releases. */
const READ_MAX = 100;

export function Canaries() {
  const { client } = useEngine();
  const releases = useQuery({
    queryKey: ['releases.list', 'canaries'],
    queryFn: ({ signal }) => client.releases.list({ limit: READ_MAX }, { signal }),
    select: (all) => all.filter(({ state }) => state === 'canary'),
    meta: { live: 'all' },
  });
  return (
    <Panel title="Canaries" isFlush actions={<Link href="/releases">All releases</Link>}>
      <div className={styles.short}>
        <Loaded query={releases} height={160}>
          {(canaries) =>
            canaries.length === 0 ? (
              <Empty title="No canary is under way" />
            ) : (
              <ul className={styles.list}>
                {canaries.map((release) => (
                  <li key={release.id}>
                    <span>
                      <Link href={`/releases/${release.id}`}>{release.sequence_name}</Link>{' '}
                      <span className="dim">
                        {release.baseline_version} → {release.candidate_version}
                      </span>
                    </span>
                    <span>
                      <Badge tone="info">{release.canary_percent} %</Badge>{' '}
                      <span className="dim small">
                        {countOf(release.gates?.length ?? 0, 'gate')}, since{' '}
                        <Time at={release.canary_started_at} />
                      </span>
                    </span>
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
