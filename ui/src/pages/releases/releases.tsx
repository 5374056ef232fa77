/** All releases, newest first, with their routing and their gates. */

import type { Release, ReleaseState } from 'durable-workflow-engine-client';
import { Plus, Rocket } from 'lucide-react';
import { Link, useLocation } from 'wouter';
import { useEngine } from '../../api/engine.tsx';
import { LinkButton } from '../../components/button.tsx';
import { CloseContext } from '../../components/dialog.tsx';
import { FieldRow, Select } from '../../components/field.tsx';
import { useList } from '../../components/list.tsx';
import { ListPanel } from '../../components/list-panel.tsx';
import { Page } from '../../components/page.tsx';
import { SequenceField } from '../../components/sequence-field.tsx';
import type { Column } from '../../components/table.tsx';
import { Time } from '../../components/time.tsx';
import { chosenIn, hrefOf, useFilters } from '../../lib/address.ts';
import { wordsOf } from '../../lib/format.ts';
import { GateMarks } from './gate-marks.tsx';
import { NewRelease } from './new-release.tsx';
import { RELEASE_TONES, ReleaseBadge } from './release-badge.tsx';

const COLUMNS: readonly Column<Release>[] = [
  {
    name: 'Sequence',
    cell: ({ id, sequence_name }) => <Link href={`/releases/${id}`}>{sequence_name}</Link>,
  },
  {
    name: 'Versions',
    cell: ({ baseline_version, candidate_version }) => (
      <span className="numbers whole">
        {baseline_version} → {candidate_version}
      </span>
    ),
  },
  { name: 'State', cell: ({ state }) => <ReleaseBadge state={state} /> },
  { name: 'Canary share', isNumber: true, cell: shareOf },
  { name: 'Gates', cell: (release) => <GateMarks release={release} /> },
  { name: 'Since', cell: ({ updated_at }) => <Time at={updated_at} /> },
];

/** The share of new instances that the candidate gets now. */
function shareOf({ state, canary_percent }: Release): string {
  if (state === 'promoted') return '100 %';
  return state === 'canary' ? `${canary_percent} %` : '–';
}

const STATES = [
  { value: '', label: 'All' },
  ...(Object.keys(RELEASE_TONES) as ReleaseState[]).map((value) => ({
    value,
    label: wordsOf(value),
  })),
] as const;

export default function Releases() {
  const { allowed } = useEngine();
  const [, go] = useLocation();
  const [filters, change, at] = useFilters();
  const { sequence: sequence_name } = filters;
  const state = chosenIn(STATES, filters.state);
  const list = useList('releases.list', [{ state, sequence_name }], { live: true });
  const isNarrowed = state !== undefined || sequence_name !== undefined;
  return (
    <Page
      title="Releases"
      about="Route new instances from one version of a sequence to the next: first a share, then all."
      actions={
        allowed.publish && (
          <LinkButton
            kind="primary"
            href={hrefOf('/releases', { ...filters, new: 'yes' })}
            icon={Plus}
          >
            New release
          </LinkButton>
        )
      }
    >
      <FieldRow>
        <SequenceField isFilter {...at('sequence')} />
        <Select label="State" options={STATES} {...at('state')} />
      </FieldRow>
      <ListPanel
        title="Releases, newest first"
        label="Releases"
        list={list}
        columns={COLUMNS}
        idOf={({ id }) => id}
        empty={
          isNarrowed
            ? {
                title: 'No matching releases',
                about: 'Choose another state or clear the sequence filter.',
              }
            : {
                title: 'No releases yet',
                icon: Rocket,
                about:
                  'Publish a second version of a sequence, then create a release: it routes new instances to that version and rolls back when a gate fails.',
              }
        }
      />
      {filters.new !== undefined && allowed.publish && (
        <CloseContext value={() => change({ new: undefined, candidate: undefined })}>
          <NewRelease onMade={({ id }) => go(`/releases/${id}`)} />
        </CloseContext>
      )}
    </Page>
  );
}
