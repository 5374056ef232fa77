/** All versions of a sequence: their status, actions on each, and a comparison of two. */

import type { Release, SequenceDefinition, SequenceListed } from 'durable-workflow-engine-client';
import type { ReactNode } from 'react';
import { Link } from 'wouter';
import { useEngine, useMaySee } from '../../api/engine.tsx';
import { ConfirmButton, DialogButton } from '../../components/act.tsx';
import { Badge } from '../../components/badge.tsx';
import { useList } from '../../components/list.tsx';
import { ListPanel } from '../../components/list-panel.tsx';
import type { Column } from '../../components/table.tsx';
import { Time } from '../../components/time.tsx';
import { hrefOf } from '../../lib/address.ts';
import { wordsOf } from '../../lib/format.ts';
import { Comparison } from './comparison.tsx';
import { DeleteDialog } from './delete-dialog.tsx';
import { LiftHoldDialog } from './hold.tsx';
import styles from './sequences.module.css';
import type { Share } from './serving.ts';
import { SequenceStatus } from './status.tsx';
import { useServing, versionsOf } from './use-serving.ts';

export function VersionsTab({ sequence }: { readonly sequence: SequenceDefinition }) {
  const { client, allowed } = useEngine();
  const maySee = useMaySee();
  const { name } = sequence;
  const list = useList('sequences.list', [versionsOf(sequence)]);
  const { releases, shares } = useServing(sequence);
  const versions = list.query.data?.items ?? [];
  const columns = maySee('/releases')
    ? [...columnsOf(sequence), servingOf(shares, releases ?? [])]
    : columnsOf(sequence);
  const shown = maySee('/instances') ? [...columns, INSTANCES] : columns;
  return (
    <div className={styles.stack}>
      <ListPanel
        title="Versions, newest first"
        label={`Versions of ${name}`}
        list={list}
        columns={allowed.publish ? [...shown, RELEASE] : shown}
        idOf={({ id }) => id}
        mayChange={allowed.publish}
        rowActions={(version) => (
          <>
            {version.hold && !version.deprecated && (
              <DialogButton label="Lift hold">
                <LiftHoldDialog version={version} />
              </DialogButton>
            )}
            {!version.deprecated && (
              <ConfirmButton
                label="Deprecate"
                title={`Deprecate version ${version.version}`}
                action="Deprecate version"
                kind="primary"
                act={() => client.sequences.deprecate(version.id)}
                done={() => `Version ${version.version} was deprecated.`}
              >
                <p>
                  Instances started by the name {name} no longer use version {version.version}.
                  Running instances continue, and the version can still be started by its id. This
                  cannot be undone.
                </p>
              </ConfirmButton>
            )}
            <DialogButton label="Delete">
              <DeleteDialog version={version} isShown={version.id === sequence.id} />
            </DialogButton>
          </>
        )}
        empty={{
          title: 'No versions',
          about: (
            <>
              All versions were deleted. <Link href="/sequences">View all sequences</Link>
            </>
          ),
        }}
      />
      <Comparison sequence={sequence} versions={versions} />
    </div>
  );
}

/** The share of the instances that are started by the name. @param shares undefined while loading */
const servingOf = (
  shares: ReadonlyMap<string, Share> | undefined,
  releases: readonly Release[],
): Column<SequenceListed> => ({
  name: 'New instances',
  cell: (version) => {
    if (shares === undefined) return null;
    const share = shares.get(version.id);
    if (share === undefined) {
      const release = releases.find((one) => one.candidate_sequence_id === version.id);
      return <span className="dim small">{whyNone(version, release)}</span>;
    }
    const { percent, release } = share;
    return (
      <>
        <Badge tone={percent === 100 ? 'ok' : 'info'}>
          {percent === 100 ? 'all' : `${percent} %`}
        </Badge>{' '}
        {release && (
          <Link href={`/releases/${release.id}`} className="small">
            {release.state === 'canary' ? 'canary' : 'promoted'}
          </Link>
        )}
      </>
    );
  },
});

/** @param release the newest one to the version */
function whyNone({ deprecated, hold }: SequenceListed, release: Release | undefined): ReactNode {
  if (deprecated) return 'none: deprecated; open instances continue';
  if (hold) return 'none: on hold until it is lifted or promoted';
  if (release === undefined || release.state === 'promoted') return 'none';
  return (
    <>
      none: <Link href={`/releases/${release.id}`}>release</Link>{' '}
      {wordsOf(release.state).toLowerCase()}
    </>
  );
}

const columnsOf = (shown: SequenceDefinition): readonly Column<SequenceListed>[] => [
  {
    name: 'Version',
    cell: ({ id, version }) =>
      id === shown.id ? (
        <strong>{version}, shown here</strong>
      ) : (
        <Link href={`/sequences/${id}`}>{version}</Link>
      ),
  },
  { name: 'Status', cell: (version) => <SequenceStatus sequence={version} /> },
  { name: 'Published', cell: ({ created_at }) => <Time at={created_at} /> },
];

const INSTANCES: Column<SequenceListed> = {
  name: 'Instances',
  cell: ({ name, version }) => (
    <Link href={hrefOf('/instances', { sequence: name, version: String(version) })}>Show</Link>
  ),
};

const RELEASE: Column<SequenceListed> = {
  name: 'Release',
  cell: ({ id, name }) => (
    <Link href={hrefOf('/releases', { sequence: name, new: 'yes', candidate: id })}>
      New release
    </Link>
  ),
};
