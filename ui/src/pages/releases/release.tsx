/** The page of one release: its progress, next step, gates and evidence. */

import { type UseQueryResult, useQuery } from '@tanstack/react-query';
import type { Release, ReleaseDecision } from 'durable-workflow-engine-client';
import type { ReactNode } from 'react';
import { useParams } from 'wouter';
import { useEngine } from '../../api/engine.tsx';
import { useRead } from '../../api/read.ts';
import { ShortId } from '../../components/copy.tsx';
import { Loaded } from '../../components/loaded.tsx';
import { Facts, Page, Panel, type Tab, useTabs } from '../../components/page.tsx';
import { SequenceName } from '../../components/sequence-name.tsx';
import { Time } from '../../components/time.tsx';
import { countOf } from '../../lib/format.ts';
import { Changes } from './changes.tsx';
import { Decisions } from './decisions.tsx';
import { Evidence } from './evidence.tsx';
import { useGateReport } from './gate-marks.tsx';
import { GatesPanel } from './gates-panel.tsx';
import { sentenceOf } from './life.ts';
import { Progress } from './progress.tsx';
import { ReleaseActions } from './release-actions.tsx';
import { ReleaseBadge } from './release-badge.tsx';
import styles from './releases.module.css';

/** A gate, a validation or a deprecation may change the state without a user. */
const MOVING_MS = 5000;

const TRAIL = [{ href: '/releases', label: 'Releases' }] as const;

export default function ReleasePage() {
  const { id = '' } = useParams();
  const release = useRead('releases.get', [id], {
    live: 'all',
    refetchInterval: ({ state }) =>
      state.data?.state === 'canary' || state.data?.state === 'validating' ? MOVING_MS : false,
  });
  return release.data === undefined ? (
    <Page title="Release" trail={TRAIL}>
      <Loaded query={release} height={420}>
        {() => null}
      </Loaded>
    </Page>
  ) : (
    <OneRelease release={release.data} />
  );
}

type Part = (props: {
  readonly release: Release;
  readonly report: ReturnType<typeof useGateReport>;
  readonly decisions: UseQueryResult<readonly ReleaseDecision[]>;
}) => ReactNode;

const TABS: readonly Tab<Part>[] = [
  ['', 'Gates', GatesPanel],
  ['changes', 'Changes', Changes],
  ['evidence', 'Evidence', Evidence],
  ['decisions', 'Decisions', Decisions],
];

function OneRelease({ release }: { readonly release: Release }) {
  const { id, state, sequence_name, baseline_version, candidate_version } = release;
  const { client, allowed } = useEngine();
  const isCanary = state === 'canary';
  const report = useGateReport(id, isCanary);
  const decisions = useQuery({
    // Each change of state is a decision.
    queryKey: ['releases.decisions', id, state, release.updated_at],
    queryFn: ({ signal }) => client.releases.decisions(id, { signal }),
    placeholderData: (before) => before,
  });
  const summary = release.validation_summary;
  const [tabs, Part] = useTabs('Sections of the release', `/releases/${id}`, TABS);
  return (
    <Page
      title={`${sequence_name} ${baseline_version} → ${candidate_version}`}
      trail={TRAIL}
      beside={<ReleaseBadge state={state} />}
      about={sentenceOf(release, decisions.data ?? [], report.data)}
      actions={allowed.publish && <ReleaseActions release={release} report={report.data} />}
    >
      <Panel title="Progress">
        <div className={styles.stack}>
          <Loaded query={decisions} height={76}>
            {(taken) => <Progress state={state} decisions={taken} />}
          </Loaded>
          <Facts
            facts={{
              Baseline: <SequenceName id={release.baseline_sequence_id} />,
              Candidate: <SequenceName id={release.candidate_sequence_id} />,
              Canary: isCanary && `${release.canary_percent} % of new instances`,
              'Counting since': isCanary && <Time at={release.canary_started_at} />,
              'Running instances':
                release.in_flight_policy === 'pin'
                  ? 'stay on their version'
                  : 'an operator decides',
              Validated:
                summary && `${countOf(summary.replayed, 'run')}, ${summary.diverged} diverged`,
              Release: <ShortId id={id} />,
            }}
          />
        </div>
      </Panel>
      {tabs}
      <Part release={release} report={report} decisions={decisions} />
    </Page>
  );
}
