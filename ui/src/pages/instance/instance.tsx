/** The page of one instance: what it is doing and why, everything it has produced, and the actions for it. */

import { type UseQueryResult, useQueryClient } from '@tanstack/react-query';
import { EngineError } from 'durable-workflow-engine-client';
import { SearchX } from 'lucide-react';
import { type ReactNode, useMemo, useState } from 'react';
import { useLocation, useParams } from 'wouter';
import { useEngine } from '../../api/engine.tsx';
import { summaryIn } from '../../api/sequences.ts';
import { StateBadge } from '../../components/badge.tsx';
import { LinkButton } from '../../components/button.tsx';
import { CopyMenu } from '../../components/copy-menu.tsx';
import { CloseContext } from '../../components/dialog.tsx';
import { Empty, ErrorBox } from '../../components/error-box.tsx';
import { Place } from '../../components/later.tsx';
import { NotReadAgain } from '../../components/loaded.tsx';
import { Page, type Tab, useTabs } from '../../components/page.tsx';
import type { TabMark } from '../../components/tab-mark.ts';
import { outlineOf } from '../../flow/outline.ts';
import { hrefOf } from '../../lib/address.ts';
import { shortIdOf } from '../../lib/format.ts';
import { useDefinition } from '../sequences/use-definition.ts';
import { ActionBar } from './action-bar.tsx';
import { ActionDialog, type Asked } from './action-dialog.tsx';
import { Children } from './children-tab.tsx';
import { isOpen } from './choices.ts';
import { Compare } from './compare-tab.tsx';
import { copiedOf } from './copied.ts';
import { Data } from './data-tab.tsx';
import { FlowTab } from './flow-tab.tsx';
import { AboutLine, InstanceFacts } from './head.tsx';
import { History } from './history-tab.tsx';
import styles from './instance.module.css';
import { Logs } from './logs-tab.tsx';
import { Now } from './now.tsx';
import { OutLinks } from './out-links.tsx';
import { pollMsOf, type Run, useExplanation, useFollowed, useInstance } from './run.ts';
import { Signals } from './signals-tab.tsx';
import { TimelineTab } from './timeline-tab.tsx';

const TABS: readonly Tab<(props: { readonly run: Run }) => ReactNode>[] = [
  ['', 'Flow', FlowTab],
  ['timeline', 'Timeline', TimelineTab],
  ['data', 'Data', Data],
  ['logs', 'Logs', Logs],
  ['signals', 'Signals', Signals],
  ['history', 'History', History],
  ['children', 'Children', Children],
  ['compare', 'Compare', Compare],
];

const TRAIL = [{ href: '/instances', label: 'Instances' }];

export default function InstancePage() {
  const { id = '' } = useParams<{ id: string }>();
  // Another instance is another page and shares no state with this one.
  return <Instance key={id} id={id} />;
}

function Instance({ id }: { readonly id: string }) {
  const base = `/instances/${id}`;
  const [tabs, Part] = useTabs('Sections of the instance', base, TABS);
  const [, navigate] = useLocation();
  const [asked, setAsked] = useState<Asked>();
  const queries = useQueryClient();
  const [isFollowed, setFollowed] = useState(false);
  const query = useInstance(id, isFollowed);
  const instance = query.data;
  useFollowed(id, instance !== undefined && isOpen(instance.state), setFollowed);
  const explaining = useExplanation(instance);
  const reading = useDefinition(instance?.sequence_id);
  const sequence = reading.data;
  const outline = useMemo(() => sequence && outlineOf(sequence), [sequence]);
  // The explanation and the name are at the top, and would move the rest if they came later.
  const isRead = !isFirstRead(explaining) && !isFirstRead(reading);
  if (instance === undefined || !isRead) {
    return (
      <Page title="Instance" trail={TRAIL}>
        {query.error ? <NoInstance id={id} error={query.error} /> : <Place height={420} />}
      </Page>
    );
  }
  const run: Run = {
    instance,
    explanation: explaining.data,
    sequence,
    queries: { explanation: explaining, sequence: reading },
    named: sequence ?? summaryIn(queries, instance.sequence_id),
    outline,
    isOpen: isOpen(instance.state),
    pollMs: pollMsOf(instance, isFollowed),
    ask: (action, block) => setAsked({ action, block }),
    hrefOfBlock: (block, iteration) => hrefOf(base, { block, pass: iteration }),
  };
  return (
    <Page
      title={run.named?.name ?? 'Instance'}
      tabTitle={[run.named?.name ?? 'Instance', instance.state, shortIdOf(id)].join(' · ')}
      mark={markOf(run)}
      trail={TRAIL}
      beside={<StateBadge state={instance.state} />}
      about={<AboutLine run={run} />}
      actions={
        <>
          <ActionBar run={run} />
          <CopyMenu copied={copiedOf(run)} tenantId={instance.tenant_id} />
        </>
      }
    >
      <NotReadAgain query={query} />
      <Now run={run} />
      <InstanceFacts run={run} />
      <OutLinks run={run} />
      {tabs}
      <Part run={run} />
      {asked && (
        <CloseContext value={() => setAsked(undefined)}>
          <ActionDialog run={run} asked={asked} onLead={(href) => navigate(href)} />
        </CloseContext>
      )}
    </Page>
  );
}

function markOf({ instance, explanation, isOpen }: Run): TabMark | undefined {
  if (instance.state === 'failed') return 'failed';
  const isAsking = isOpen && explanation?.waiting_for.some(({ kind }) => kind === 'approval');
  return isAsking ? 'waiting' : undefined;
}

/** Neither answered nor failed yet: what cannot be read must not block the rest. */
function isFirstRead({ isLoading, failureCount }: UseQueryResult): boolean {
  return isLoading && failureCount === 0;
}

/** The engine does not reveal whether another tenant has it. */
function NoInstance({ id, error }: { readonly id: string; readonly error: Error }) {
  const { tenant } = useEngine();
  const isUnknown = error instanceof EngineError && [400, 404].includes(error.status);
  if (!isUnknown) return <ErrorBox error={error} />;
  return (
    <div role="alert">
      <Empty title="Instance not found" icon={SearchX}>
        <p>
          {tenant === undefined ? 'No tenant' : <>Tenant {tenant}</>} has no instance{' '}
          <code className={styles.id}>{id}</code>. It may have been removed after its retention, or
          be of another tenant.
        </p>
        <LinkButton href="/instances">View all instances</LinkButton>
      </Empty>
    </div>
  );
}
