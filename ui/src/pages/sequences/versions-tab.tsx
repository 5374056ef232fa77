/** All versions of a sequence: their status, actions on each, and a comparison of two. */

import type { Release, SequenceDefinition, SequenceListed } from 'durable-workflow-engine-client';
import type { ReactNode } from 'react';
import { Link } from 'wouter';
import { useEngine, useMaySee } from '../../api/engine.tsx';
import { DialogButton } from '../../components/act.tsx';
import { Badge } from '../../components/badge.tsx';
import { ButtonRow } from '../../components/button.tsx';
import { ConfirmDialog } from '../../components/dialog.tsx';
import { Empty } from '../../components/error-box.tsx';
import { ListTable, useList } from '../../components/list.tsx';
import { Panel } from '../../components/page.tsx';
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
  const { allowed } = useEngine();
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
      <Panel title="Versions, newest first" isFlush>
        <ListTable
          list={list}
          label={`Versions of ${name}`}
          columns={allowed.publish ? [...shown, RELEASE, actionsOf(sequence)] : shown}
          idOf={({ id }) => id}
          empty={
            <Empty title="No versions">
              <p>
                All versions were deleted. <Link href="/sequences">View all sequences</Link>
              </p>
            </Empty>
          }
        />
      </Panel>
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

const actionsOf = (shown: SequenceDefinition): Column<SequenceListed> => ({
  name: 'Action',
  cell: (version) => (
    <ButtonRow>
      {version.hold && !version.deprecated && (
        <DialogButton label="Lift hold">
          <LiftHoldDialog version={version} />
        </DialogButton>
      )}
      {!version.deprecated && (
        <DialogButton label="Deprecate">
          <DeprecateDialog version={version} />
        </DialogButton>
      )}
      <DialogButton label="Delete">
        <DeleteDialog version={version} isShown={version.id === shown.id} />
      </DialogButton>
    </ButtonRow>
  ),
});

function DeprecateDialog(props: { readonly version: SequenceListed }) {
  const { client } = useEngine();
  const { id, name, version } = props.version;
  return (
    <ConfirmDialog
      title={`Deprecate version ${version}`}
      action="Deprecate version"
      act={() => client.sequences.deprecate(id)}
      done={() => `Version ${version} was deprecated.`}
    >
      <p>
        Instances started by the name {name} no longer use version {version}. Running instances
        continue, and the version can still be started by its id. This cannot be undone.
      </p>
    </ConfirmDialog>
  );
}
