/** What people are asked: each question with its choices, oldest first. */

import { useQuery } from '@tanstack/react-query';
import type { Approval } from 'durable-workflow-engine-client';
import { UserCheck } from 'lucide-react';
import { Link } from 'wouter';
import { useEngine } from '../../api/engine.tsx';
import { Empty } from '../../components/error-box.tsx';
import { NO_MORE, useList } from '../../components/list.tsx';
import { Loaded } from '../../components/loaded.tsx';
import { Page, Panel } from '../../components/page.tsx';
import { SequenceField } from '../../components/sequence-field.tsx';
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
      about="Instances that wait for the answer of a person, the longest wait first."
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
      <Panel title="Open questions" isFlush>
        <Loaded query={list.query} height={320}>
          {({ items, nextCursor }) =>
            items.length === 0 && list.cursor === undefined ? (
              <NoApprovals isNarrowed={sequence !== undefined} />
            ) : (
              <>
                {items.length === 0 && NO_MORE}
                <ul className={styles.list}>
                  {items.map((approval) => (
                    <li key={approval.id}>
                      <ApprovalCard approval={approval} />
                    </li>
                  ))}
                </ul>
                <Pager cursor={list.cursor} next={nextCursor} onPage={list.onPage} />
              </>
            )
          }
        </Loaded>
      </Panel>
    </Page>
  );
}

/** More open questions than these are told as `100+`. */
const COUNTED = 100;

/** Those that wait longest. */
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
      <Empty title="This sequence asks nobody" icon={<UserCheck size={26} aria-hidden />}>
        <p>
          Others may. <Link href="/approvals">Show all questions</Link>
        </p>
      </Empty>
    );
  }
  return (
    <Empty title="Nobody is asked anything" icon={<UserCheck size={26} aria-hidden />}>
      <p>
        A step with <code>wait_for_input</code> asks a person, and its question stands here.{' '}
        <Link href="/sequences">To the sequences</Link>
      </p>
    </Empty>
  );
}
