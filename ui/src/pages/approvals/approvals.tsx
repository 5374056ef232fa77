/** The open approvals, oldest first. */

import type { Approval } from 'durable-workflow-engine-client';
import { UserCheck } from 'lucide-react';
import { type ReactNode, useEffect, useState } from 'react';
import { Link } from 'wouter';
import { useEngine } from '../../api/engine.tsx';
import { useRead } from '../../api/read.ts';
import { Button } from '../../components/button.tsx';
import { Empty } from '../../components/error-box.tsx';
import { FilterField } from '../../components/field.tsx';
import { undoLast } from '../../components/held.tsx';
import { NO_MORE, useList } from '../../components/list.tsx';
import { Loaded } from '../../components/loaded.tsx';
import { Page, Panel } from '../../components/page.tsx';
import { SequenceField } from '../../components/sequence-field.tsx';
import { useSteady } from '../../components/steady.ts';
import { Pager } from '../../components/table.tsx';
import { useFilters } from '../../lib/address.ts';
import { isShortcut, useSingleKeys } from '../../lib/keys.ts';
import { ApprovalCard, type Current } from './approval-card.tsx';
import styles from './approvals.module.css';

export default function Approvals() {
  const { allowed, tenant } = useEngine();
  const [{ sequence, group }, , at] = useFilters();
  const list = useList('approvals.list', [{ sequence, group }], { live: true });
  return (
    <Page
      title="Approvals"
      about="Instances that wait for an answer from a user, longest wait first."
    >
      <div className={styles.filters}>
        {allowed.readSequences && <SequenceField isFilter {...at('sequence')} />}
        {tenant !== undefined && <FilterField label="Group" {...at('group')} />}
      </div>
      <Loaded query={list.query} height={320}>
        {({ items, nextCursor }) => (
          <Questions
            items={items}
            of={list.of}
            empty={
              list.cursor === undefined ? (
                <NoApprovals isNarrowed={sequence !== undefined || group !== undefined} />
              ) : (
                NO_MORE
              )
            }
          >
            <Pager cursor={list.cursor} next={nextCursor} onPage={list.onPage} />
          </Questions>
        )}
      </Loaded>
    </Page>
  );
}

/**
 * Answered approvals stay in place until the user removes them: if the list moved up, a second click would answer
 * another one.
 */
function Questions(props: {
  readonly items: readonly Approval[];
  readonly of: string;
  readonly empty: ReactNode;
  readonly children: ReactNode;
}) {
  const { items, of, empty, children } = props;
  const [cleared, setCleared] = useState(0);
  const { rows } = useSteady(items, idOf, { isHeld: true, appends: true, of: `${cleared} ${of}` });
  const ids = rows.map(({ row }) => row.id);
  const currentOf = useCurrent(ids);
  const [areKeysOn] = useSingleKeys();
  const gone = rows.filter(({ isGone }) => isGone).length;
  return (
    <Panel
      title="Open approvals"
      isFlush
      actions={
        <Button disabled={gone === 0} onClick={() => setCleared(cleared + 1)}>
          Remove closed approvals
        </Button>
      }
    >
      {rows.length === 0 ? (
        empty
      ) : (
        <ul className={styles.list}>
          {rows.map(({ row, isGone }) => (
            <li key={row.id}>
              <ApprovalCard approval={row} isClosed={isGone} current={currentOf(row.id)} />
            </li>
          ))}
        </ul>
      )}
      {rows.length > 0 && areKeysOn && (
        <p className={styles.keys}>
          <kbd>j</kbd> <kbd>k</kbd> next, previous · <kbd>1</kbd> … <kbd>9</kbd> answer ·{' '}
          <kbd>u</kbd> undo · <kbd>Enter</kbd> data and flow
        </p>
      )}
      {children}
    </Panel>
  );
}

const idOf = ({ id }: Approval) => id;

/** The approval that the keys of the page act on: at first the one that has waited longest. */
function useCurrent(ids: readonly string[]): (id: string) => Current {
  const [chosen, setChosen] = useState<string>();
  const [isByKey, setByKey] = useState(false);
  const [open, setOpen] = useState<string>();
  const current = chosen !== undefined && ids.includes(chosen) ? chosen : ids[0];
  const select = (id: string | undefined, byKey: boolean) => {
    setChosen(id);
    setByKey(byKey);
  };
  const toggle = (id: string | undefined) => setOpen(open === id ? undefined : id);
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (!isShortcut(event)) return;
      const at = ids.indexOf(current ?? '');
      if (event.key === 'j') select(ids[Math.min(at + 1, ids.length - 1)], true);
      else if (event.key === 'k') select(ids[Math.max(at - 1, 0)], true);
      else if (event.key === 'u') undoLast();
      // On a button or link, Enter has its usual meaning.
      else if (event.key === 'Enter' && !isOnControl(event.target)) toggle(current);
    };
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  });
  return (id) => ({
    isCurrent: id === current,
    isByKey,
    isOpen: id === open,
    onSelect: () => select(id, false),
    onToggle: () => toggle(id),
  });
}

const isOnControl = (target: EventTarget | null) =>
  target instanceof Element && target.closest('button, a, summary') !== null;

/** More open approvals than this are shown as `100+`. */
const COUNTED = 100;

/** The approvals that have waited longest. */
export function useOpenApprovals() {
  return useRead('approvals.list', [{ limit: COUNTED }], { live: 'all' });
}

function NoApprovals({ isNarrowed }: { readonly isNarrowed: boolean }) {
  if (isNarrowed) {
    return (
      <Empty title="No open approvals for this filter" icon={UserCheck}>
        <p>
          Others may be open. <Link href="/approvals">Show all approvals</Link>
        </p>
      </Empty>
    );
  }
  return (
    <Empty title="No open approvals" icon={UserCheck}>
      <p>
        A step with <code>wait_for_input</code> waits for an answer, which you can give here.{' '}
        <Link href="/sequences">Go to the sequences</Link>
      </p>
    </Empty>
  );
}
