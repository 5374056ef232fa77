/** The open approvals, oldest first. */

import { useQuery } from '@tanstack/react-query';
import type { Approval } from 'durable-workflow-engine-client';
import { UserCheck } from 'lucide-react';
import { type ReactNode, useState } from 'react';
import { Link } from 'wouter';
import { useEngine } from '../../api/engine.tsx';
import { Button } from '../../components/button.tsx';
import { Empty } from '../../components/error-box.tsx';
import { NO_MORE, useList } from '../../components/list.tsx';
import { Loaded } from '../../components/loaded.tsx';
import { Page, Panel } from '../../components/page.tsx';
import { SequenceField } from '../../components/sequence-field.tsx';
import { useSteady } from '../../components/steady.ts';
import { Pager } from '../../components/table.tsx';
import { useFilters } from '../../lib/address.ts';
import { ApprovalCard } from './approval-card.tsx';
import styles from './approvals.module.css';

export default function Approvals() {
  const { client, allowed } = useEngine();
  const [filters, change] = useFilters();
  const { sequence } = filters;
  const list = useList<Approval>(
    ['approvals.list', sequence],
    (page, options) => client.approvals.list({ ...page, sequence }, options),
    { live: true },
  );
  return (
    <Page
      title="Approvals"
      about="Instances that wait for an answer from a user, longest wait first."
    >
      {allowed.readSequences && (
        <div className={styles.filter}>
          <SequenceField
            isFilter
            value={sequence ?? ''}
            onChange={(name) => change({ sequence: name })}
          />
        </div>
      )}
      <Loaded query={list.query} height={320}>
        {({ items, nextCursor }) => (
          <Questions
            items={items}
            of={list.of}
            empty={
              list.cursor === undefined ? (
                <NoApprovals isNarrowed={sequence !== undefined} />
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
              <ApprovalCard approval={row} isClosed={isGone} />
            </li>
          ))}
        </ul>
      )}
      {children}
    </Panel>
  );
}

const idOf = ({ id }: Approval) => id;

/** More open approvals than this are shown as `100+`. */
const COUNTED = 100;

/** The approvals that have waited longest. */
export function useOpenApprovals() {
  const { client } = useEngine();
  return useQuery({
    queryKey: ['approvals.list', 'longest'],
    queryFn: async ({ signal }) => client.approvals.list({ limit: COUNTED }, { signal }),
    meta: { live: 'all' },
  });
}

function NoApprovals({ isNarrowed }: { readonly isNarrowed: boolean }) {
  if (isNarrowed) {
    return (
      <Empty title="No open approvals for this sequence" icon={<UserCheck size={26} aria-hidden />}>
        <p>
          Other sequences may have some. <Link href="/approvals">Show all approvals</Link>
        </p>
      </Empty>
    );
  }
  return (
    <Empty title="No open approvals" icon={<UserCheck size={26} aria-hidden />}>
      <p>
        A step with <code>wait_for_input</code> waits for an answer, which you can give here.{' '}
        <Link href="/sequences">Go to the sequences</Link>
      </p>
    </Empty>
  );
}
