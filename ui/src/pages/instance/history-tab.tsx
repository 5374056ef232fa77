/** The audit log of the instance, newest first, and its external effects. */

import type { AuditEntry, InstanceState } from 'durable-workflow-engine-client';
import { History as HistoryIcon } from 'lucide-react';
import { Link } from 'wouter';
import { StateBadge } from '../../components/badge.tsx';
import { useList } from '../../components/list.tsx';
import { ListPanel } from '../../components/list-panel.tsx';
import type { Column } from '../../components/table.tsx';
import { Time } from '../../components/time.tsx';
import { wordsOf } from '../../lib/format.ts';
import { Effects } from './effects.tsx';
import styles from './instance.module.css';
import { pathIn, type Run } from './run.ts';

export function History({ run }: { readonly run: Run }) {
  const { id } = run.instance;
  const list = useList('instances.audit', [id, {}], { cursorName: 'entries', live: id });
  const columns: readonly Column<AuditEntry>[] = [
    { name: 'When', cell: ({ created_at }) => <Time at={created_at} /> },
    { name: 'Event', cell: (entry) => <What entry={entry} /> },
    {
      name: 'Block',
      cell: ({ block_id }) =>
        block_id === undefined ? (
          ''
        ) : (
          <Link href={run.hrefOfBlock(pathIn(run, block_id))}>{block_id}</Link>
        ),
    },
    { name: 'Details', cell: (entry) => <Details entry={entry} /> },
  ];
  return (
    <div className={styles.stack}>
      <ListPanel
        title="History, newest first"
        label="History"
        list={list}
        columns={columns}
        idOf={(entry) => entry.id}
        empty={{
          title: 'No history yet',
          icon: HistoryIcon,
          about: (
            <>
              Changes of state and actions of users are listed here. The attempts of its steps are
              on the <Link href={`/instances/${id}/timeline`}>timeline</Link>.
            </>
          ),
        }}
      />
      <Effects run={run} />
    </div>
  );
}

function What({ entry }: { readonly entry: AuditEntry }) {
  const { event_type, from_state, to_state } = entry;
  if (to_state === undefined) return wordsOf(event_type);
  return (
    <>
      {from_state && (
        <>
          <StateBadge state={from_state as InstanceState} /> to{' '}
        </>
      )}
      <StateBadge state={to_state as InstanceState} />
    </>
  );
}

function Details({ entry }: { readonly entry: AuditEntry }) {
  const { details, failure } = entry;
  if (failure !== undefined) return failure.message;
  if (typeof details !== 'object' || details === null || Object.keys(details).length === 0) {
    return '';
  }
  const { message, ...rest } = details as { message?: unknown };
  if (typeof message === 'string' && Object.keys(rest).length === 0) return message;
  return <code className={styles.mono}>{JSON.stringify(details)}</code>;
}
