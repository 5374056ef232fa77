/** All versions of a sequence: their status, actions on each, and a comparison of two. */

import type { Client, SequenceDefinition, SequenceListed } from 'durable-workflow-engine-client';
import { useState } from 'react';
import { Link } from 'wouter';
import { useEngine, useMaySee } from '../../api/engine.tsx';
import { useAction } from '../../components/action.ts';
import { Button, ButtonRow } from '../../components/button.tsx';
import { ConfirmDialog } from '../../components/dialog.tsx';
import { Empty } from '../../components/error-box.tsx';
import { ListTable, useList } from '../../components/list.tsx';
import { Panel } from '../../components/page.tsx';
import type { Column } from '../../components/table.tsx';
import { Time } from '../../components/time.tsx';
import { hrefOf } from '../../lib/address.ts';
import { Comparison } from './comparison.tsx';
import { DeleteDialog } from './delete-dialog.tsx';
import { LiftHoldDialog } from './hold.tsx';
import styles from './sequences.module.css';
import { SequenceStatus } from './status.tsx';

/** The query for the newest version of a name, deprecated or not; its data is undefined if there is none. */
export function newestOf(client: Client, named: { namespace: string; name: string }) {
  return {
    queryKey: ['sequences.list', 'newest of', named.namespace, named.name],
    queryFn: async ({ signal }: { signal: AbortSignal }) => {
      const query = { ...named, include_definition: false, limit: 1 };
      const { items } = await client.sequences.list(query, { signal });
      return items[0] ?? null;
    },
  };
}

type Asked = {
  readonly kind: 'lift' | 'deprecate' | 'delete';
  readonly version: SequenceListed;
};

export function VersionsTab({ sequence }: { readonly sequence: SequenceDefinition }) {
  const { client, allowed } = useEngine();
  const maySee = useMaySee();
  const [asked, ask] = useState<Asked>();
  const { namespace, name } = sequence;
  const list = useList<SequenceListed>(
    ['sequences.list', 'versions of', namespace, name],
    (page, options) =>
      client.sequences.list({ ...page, namespace, name, include_definition: false }, options),
  );
  const close = () => ask(undefined);
  const shown = maySee('/instances') ? [...columnsOf(sequence), INSTANCES] : columnsOf(sequence);
  return (
    <div className={styles.stack}>
      <Panel title="Versions, newest first" isFlush>
        <ListTable
          list={list}
          label={`Versions of ${name}`}
          columns={allowed.publish ? [...shown, RELEASE, actions(ask)] : shown}
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
      <Comparison sequence={sequence} versions={list.query.data?.items ?? []} />
      {asked?.kind === 'lift' && <LiftHoldDialog version={asked.version} onClose={close} />}
      {asked?.kind === 'deprecate' && <DeprecateDialog version={asked.version} onClose={close} />}
      {asked?.kind === 'delete' && (
        <DeleteDialog
          version={asked.version}
          isShown={asked.version.id === sequence.id}
          onClose={close}
        />
      )}
    </div>
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

const actions = (ask: (asked: Asked) => void): Column<SequenceListed> => ({
  name: 'Action',
  cell: (version) => (
    <ButtonRow>
      {version.hold && !version.deprecated && (
        <Button onClick={() => ask({ kind: 'lift', version })}>Lift hold</Button>
      )}
      {!version.deprecated && (
        <Button onClick={() => ask({ kind: 'deprecate', version })}>Deprecate</Button>
      )}
      <Button onClick={() => ask({ kind: 'delete', version })}>Delete</Button>
    </ButtonRow>
  ),
});

function DeprecateDialog(props: {
  readonly version: SequenceListed;
  readonly onClose: () => void;
}) {
  const { client } = useEngine();
  const { id, name, version } = props.version;
  const deprecate = useAction(() => client.sequences.deprecate(id), {
    done: () => `Version ${version} was deprecated.`,
    onDone: props.onClose,
  });
  return (
    <ConfirmDialog
      title={`Deprecate version ${version}`}
      action="Deprecate version"
      isBusy={deprecate.isBusy}
      error={deprecate.error}
      onClose={props.onClose}
      onConfirm={() => deprecate.run(undefined)}
    >
      <p>
        Instances started by the name {name} no longer use version {version}. Running instances
        continue, and the version can still be started by its id. This cannot be undone.
      </p>
    </ConfirmDialog>
  );
}
