/** The list of sequences: a row for each name, with its newest version. */

import type { SequenceListed } from 'durable-workflow-engine-client';
import { GitBranch, Plus } from 'lucide-react';
import { Link } from 'wouter';
import { useEngine, useMaySee } from '../../api/engine.tsx';
import { LinkButton } from '../../components/button.tsx';
import { CopyButton } from '../../components/copy.tsx';
import { Empty } from '../../components/error-box.tsx';
import { FilterField } from '../../components/field.tsx';
import { JsonView } from '../../components/json-view.tsx';
import { ListTable, useList } from '../../components/list.tsx';
import { Page, Panel } from '../../components/page.tsx';
import type { Column } from '../../components/table.tsx';
import { Time } from '../../components/time.tsx';
import { hrefOf, useFilters } from '../../lib/address.ts';
import { formatCount } from '../../lib/format.ts';
import { SAMPLE } from './samples.ts';
import styles from './sequences.module.css';
import { SequenceStatus } from './status.tsx';

const COLUMNS: readonly Column<SequenceListed>[] = [
  { name: 'Name', cell: ({ id, name }) => <Link href={`/sequences/${id}`}>{name}</Link> },
  { name: 'Namespace', cell: ({ namespace }) => namespace },
  { name: 'Newest', isNumber: true, cell: ({ version }) => `version ${version}` },
  {
    name: 'Versions',
    isNumber: true,
    cell: ({ id, versions = 1 }) => (
      <Link href={`/sequences/${id}/versions`}>{formatCount(versions)}</Link>
    ),
  },
  { name: 'Status', cell: (sequence) => <SequenceStatus sequence={sequence} /> },
  { name: 'Published', cell: ({ created_at }) => <Time at={created_at} /> },
];

const INSTANCES: Column<SequenceListed> = {
  name: 'Instances',
  cell: ({ name }) => <Link href={hrefOf('/instances', { sequence: name })}>Show</Link>,
};

export default function Sequences() {
  const { allowed } = useEngine();
  const maySee = useMaySee();
  const [{ name, namespace }, , at] = useFilters();
  const asked = { name_contains: name, namespace, newest_only: true, include_definition: false };
  const list = useList('sequences.list', [asked]);
  const isFiltered = name !== undefined || namespace !== undefined;
  return (
    <Page
      title="Sequences"
      about="Workflow definitions, each with its versions."
      actions={
        allowed.publish && (
          <LinkButton href="/sequences/new" kind="primary" icon={Plus}>
            New sequence
          </LinkButton>
        )
      }
    >
      <search className={styles.filters}>
        <FilterField label="Name" type="search" placeholder="Part of the name" {...at('name')} />
        <FilterField label="Namespace" type="search" {...at('namespace')} />
      </search>
      <Panel title="Sequences by name" isFlush>
        <ListTable
          list={list}
          label="Sequences"
          columns={maySee('/instances') ? [...COLUMNS, INSTANCES] : COLUMNS}
          idOf={({ id }) => id}
          empty={isFiltered ? <NothingFound /> : <NoSequences mayPublish={allowed.publish} />}
        />
      </Panel>
    </Page>
  );
}

function NothingFound() {
  return (
    <Empty title="No matching sequences" icon={GitBranch}>
      <p>
        <Link href="/sequences">Show all sequences</Link>
      </p>
    </Empty>
  );
}

function NoSequences({ mayPublish }: { readonly mayPublish: boolean }) {
  return (
    <Empty title="No sequences yet" icon={GitBranch}>
      <p>
        A sequence defines the steps of an instance.{' '}
        {mayPublish
          ? 'Save this example as hello.json, or open it in the editor.'
          : 'Publishing needs a key with the capability publisher.'}
      </p>
      {mayPublish && (
        <div className={styles.sample}>
          <JsonView label="Example definition" value={SAMPLE} />
          <CommandLine command="durable-workflow-engine sequences apply hello.json" />
          <span>
            <LinkButton href="/sequences/new" kind="primary">
              Open in the editor
            </LinkButton>
          </span>
        </div>
      )}
    </Empty>
  );
}

/** A shell command to copy. */
function CommandLine({ command }: { readonly command: string }) {
  return (
    <p className={styles.command}>
      <code>{command}</code>
      <CopyButton text={command} label="Copy the command" />
    </p>
  );
}
