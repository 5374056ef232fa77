/** The signals sent to the instance, and their status. */

import type { StoredSignal } from 'durable-workflow-engine-client';
import { Radio } from 'lucide-react';
import { Link } from 'wouter';
import { useEngine } from '../../api/engine.tsx';
import { Button } from '../../components/button.tsx';
import { Empty } from '../../components/error-box.tsx';
import { ListTable, useList } from '../../components/list.tsx';
import { Panel } from '../../components/page.tsx';
import { StateWord } from '../../components/state-word.tsx';
import type { Column } from '../../components/table.tsx';
import { Time } from '../../components/time.tsx';
import { choicesOf } from './choices.ts';
import styles from './instance.module.css';
import { pathIn, type Run } from './run.ts';

export function Signals({ run }: { readonly run: Run }) {
  const { allowed } = useEngine();
  const { id } = run.instance;
  const list = useList('instances.signals', [id, {}], { cursorName: 'signals', live: id });
  const canSend = choicesOf(run.instance, allowed).menu.includes('signal');
  const send = canSend && <Button onClick={() => run.ask('signal')}>Send a signal…</Button>;
  const columns: readonly Column<StoredSignal>[] = [
    { name: 'Signal', cell: ({ signal_type }) => <code>{signal_type}</code> },
    {
      name: 'Status',
      cell: ({ status, taken_by }) => (
        <>
          <StateWord state={status} />{' '}
          {taken_by !== null && (
            <>
              by <Link href={run.hrefOfBlock(pathIn(run, taken_by))}>{taken_by}</Link>
            </>
          )}
        </>
      ),
    },
    {
      name: 'Payload',
      cell: ({ payload }) =>
        payload === null ? '' : <code className={styles.mono}>{JSON.stringify(payload)}</code>,
    },
    {
      name: 'Sent',
      cell: ({ created_at, sent_by }) => (
        <>
          <Time at={created_at} />
          {sent_by !== null && <span className="dim"> by {sent_by}</span>}
        </>
      ),
    },
  ];
  return (
    <Panel title="Signals, oldest first" actions={send} isFlush>
      <ListTable
        list={list}
        label="Signals"
        columns={columns}
        idOf={(row) => row.id}
        empty={
          <Empty title="No signals" icon={Radio}>
            <p>
              Pausing, resuming and cancelling are signals, and so are the signals that a step of
              this instance waits for.
            </p>
            {send}
          </Empty>
        }
      />
    </Panel>
  );
}
