/** The page of one version of a sequence: diagram, definition, other versions and the start form. */

import type { SequenceDefinition } from 'durable-workflow-engine-client';
import { Play, Plus } from 'lucide-react';
import { Fragment, type ReactNode } from 'react';
import { Link, useParams } from 'wouter';
import { useEngine, useMaySee } from '../../api/engine.tsx';
import { useRead } from '../../api/read.ts';
import { DialogButton } from '../../components/act.tsx';
import { Badge } from '../../components/badge.tsx';
import { LinkButton } from '../../components/button.tsx';
import { CopyMenu } from '../../components/copy-menu.tsx';
import { Loaded } from '../../components/loaded.tsx';
import { Page, type Tab, useTabs } from '../../components/page.tsx';
import { Time } from '../../components/time.tsx';
import { hrefOf } from '../../lib/address.ts';
import type { Copied } from '../../lib/copy-as.ts';
import { DefinitionTab } from './definition-tab.tsx';
import { FlowTab } from './flow-tab.tsx';
import { LiftHoldDialog } from './hold.tsx';
import styles from './sequences.module.css';
import { Start } from './start.tsx';
import { SequenceStatus } from './status.tsx';
import { useServing } from './use-serving.ts';
import { VersionsTab } from './versions-tab.tsx';

type Part = (props: { readonly sequence: SequenceDefinition }) => ReactNode;

const TABS: readonly Tab<Part>[] = [
  ['', 'Flow', FlowTab],
  ['definition', 'Definition', DefinitionTab],
  ['versions', 'Versions', VersionsTab],
  ['start', 'Start', Start],
];

const TRAIL = [{ href: '/sequences', label: 'Sequences' }];

export default function Sequence() {
  const { id = '' } = useParams();
  const query = useRead('sequences.get', [id]);
  if (query.data === undefined) {
    return (
      <Page title="Sequence" trail={TRAIL}>
        <Loaded query={query} height={480}>
          {() => null}
        </Loaded>
      </Page>
    );
  }
  return <Version key={id} sequence={query.data} />;
}

function Version({ sequence }: { readonly sequence: SequenceDefinition }) {
  const { allowed } = useEngine();
  const maySee = useMaySee();
  const { id, name, version, hold, deprecated } = sequence;
  const address = `/sequences/${id}`;
  const [tabs, Part] = useTabs('Sequence', address, TABS);
  return (
    <Page
      title={name}
      tabTitle={`${name} · version ${version}`}
      trail={TRAIL}
      beside={<Badge>version {version}</Badge>}
      about={<About sequence={sequence} />}
      actions={
        <>
          {allowed.start && (
            <LinkButton href={`${address}/start`} kind="primary" icon={Play}>
              Start
            </LinkButton>
          )}
          {allowed.publish && (
            <LinkButton href={hrefOf('/sequences/new', { from: id })} icon={Plus}>
              New version
            </LinkButton>
          )}
          {allowed.publish && hold && !deprecated && (
            <DialogButton label="Lift hold">
              <LiftHoldDialog version={sequence} />
            </DialogButton>
          )}
          {maySee('/instances') && (
            <LinkButton href={hrefOf('/instances', { sequence: name, version: String(version) })}>
              Instances
            </LinkButton>
          )}
          {maySee('/releases') && (
            <LinkButton href={hrefOf('/releases', { sequence: name })}>Releases</LinkButton>
          )}
          <CopyMenu copied={copiedOf(sequence)} tenantId={sequence.tenant_id} />
        </>
      }
    >
      {tabs}
      <Part sequence={sequence} />
    </Page>
  );
}

function copiedOf({ id, name, version, namespace, tenant_id }: SequenceDefinition): Copied {
  return {
    command: ['sequences', 'get', id],
    request: `/sequences/${id}`,
    page: `/sequences/${id}`,
    note: {
      title: `${name} · version ${version}`,
      facts: [
        ['Sequence', id],
        ['Namespace', namespace],
        ['Tenant', tenant_id],
      ],
    },
  };
}

/** What is read later has lines of its own, so that nothing moves when it comes. */
function About({ sequence }: { readonly sequence: SequenceDefinition }) {
  const { namespace, version, created_at } = sequence;
  const { versions, shares } = useServing(sequence);
  const newest = versions?.[0];
  const serving = versions?.filter(({ id }) => shares?.has(id)) ?? [];
  return (
    <>
      <span className={styles.note}>
        <SequenceStatus sequence={sequence} />
        <span>
          in {namespace}, published <Time at={created_at} />
        </span>
      </span>
      <span className={styles.newest}>
        {newest &&
          (newest.version > version ? (
            <Link href={`/sequences/${newest.id}`}>
              Version {newest.version} is newer{newest.hold && ', on hold'}
            </Link>
          ) : (
            'The newest version'
          ))}
      </span>
      <span className={styles.newest}>
        {serving.map(({ id, version: one }, at) => (
          <Fragment key={id}>
            {at === 0 ? 'Serving: ' : ', '}
            {id === sequence.id ? (
              'this version'
            ) : (
              <Link href={`/sequences/${id}`}>version {one}</Link>
            )}
            {serving.length > 1 && ` (${shares?.get(id)?.percent} %)`}
          </Fragment>
        ))}
      </span>
    </>
  );
}
