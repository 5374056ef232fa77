/** The audit log of the instance, newest first, and its external effects. */

import type { AuditEntry, InstanceState } from 'durable-workflow-engine-client';
import { History as HistoryIcon } from 'lucide-react';
import { Link } from 'wouter';
import { useEngine } from '../../api/engine.tsx';
import { StateBadge } from '../../components/badge.tsx';
import { Empty } from '../../components/error-box.tsx';
import { ListTable, useList } from '../../components/list.tsx';
import { Panel } from '../../components/page.tsx';
import type { Column } from '../../components/table.tsx';
import { Time } from '../../components/time.tsx';
import { wordsOf } from '../../lib/format.ts';
import { Effects } from './effects.tsx';
import styles from './instance.module.css';
import { pathIn, type Run } from './run.ts';

export function History({ run }: { readonly run: Run }) {
  const { client } = useEngine();
  const { id } = run.instance;
  const list = useList<AuditEntry>(
    ['instances.audit', id],
    (page, options) => client.instances.audit(id, page, options),
    { cursorName: 'entries', live: id },
  );
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
      <Panel title="History, newest first" isFlush>
        <ListTable
          list={list}
          label="History"
          columns={columns}
          idOf={(entry) => entry.id}
          empty={
            <Empty title="No history yet" icon={HistoryIcon}>
              <p>
                Changes of state and actions of users are listed here. The attempts of its steps are
                on the <Link href={`/instances/${id}/timeline`}>timeline</Link>.
              </p>
            </Empty>
          }
        />
      </Panel>
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
