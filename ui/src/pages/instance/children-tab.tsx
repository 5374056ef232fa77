/** The child instances of this instance, and its parent. */

import type { InstanceState, TaskInstance } from 'durable-workflow-engine-client';
import { GitFork } from 'lucide-react';
import { Link } from 'wouter';
import { StateBadge } from '../../components/badge.tsx';
import { ShortId } from '../../components/copy.tsx';
import { Select } from '../../components/field.tsx';
import { InstanceLink } from '../../components/instance-link.tsx';
import { useList } from '../../components/list.tsx';
import { ListPanel } from '../../components/list-panel.tsx';
import { Panel } from '../../components/page.tsx';
import type { Column } from '../../components/table.tsx';
import { Elapsed, Time } from '../../components/time.tsx';
import { useFilters } from '../../lib/address.ts';
import { useDefinition } from '../sequences/use-definition.ts';
import { isOpen } from './choices.ts';
import styles from './instance.module.css';
import { type Run, useInstance } from './run.ts';

const STATES: readonly InstanceState[] = [
  ...(['scheduled', 'running', 'waiting', 'paused', 'failed'] as const),
  ...(['completed', 'cancelled'] as const),
];

const OPTIONS = [
  { value: '', label: 'All states' },
  ...STATES.map((state) => ({ value: state as string, label: state })),
];

const COLUMNS: readonly Column<TaskInstance>[] = [
  { name: 'Instance', cell: ({ id }) => <InstanceLink id={id} /> },
  { name: 'State', cell: ({ state }) => <StateBadge state={state} /> },
  { name: 'Failure', cell: ({ failure }) => failure?.message ?? '' },
  { name: 'Created', cell: ({ created_at }) => <Time at={created_at} /> },
  {
    name: 'Elapsed',
    cell: ({ created_at, updated_at, state }) => (
      <Elapsed from={created_at} to={isOpen(state) ? undefined : updated_at} />
    ),
  },
];

export function Children({ run }: { readonly run: Run }) {
  const [filters, , at] = useFilters();
  const { id, parent_instance_id: parent } = run.instance;
  const state = STATES.find((one) => one === filters.state);
  const asked = state ? { state: [state] } : {};
  const list = useList('instances.children', [id, asked], { live: true });
  return (
    <div className={styles.stack}>
      {parent !== undefined && <Parent id={parent} />}
      <div className={styles.filter}>
        <Select label="State" options={OPTIONS} {...at('state')} />
      </div>
      <ListPanel
        title="Children, oldest first"
        label="Children"
        list={list}
        columns={COLUMNS}
        idOf={(row) => row.id}
        empty={{
          title: 'No children',
          icon: GitFork,
          about: (
            <>
              A <code>sub_sequence</code> block starts a child instance, which is listed here.
            </>
          ),
        }}
      />
    </div>
  );
}

function Parent({ id }: { readonly id: string }) {
  const { data } = useInstance(id, false);
  const sequence = useDefinition(data?.sequence_id).data;
  return (
    <Panel title="Parent">
      <p className={styles.about}>
        <Link href={`/instances/${id}`}>{sequence?.name ?? <ShortId id={id} />}</Link>
        {data && <StateBadge state={data.state} />}
        <code className={styles.id}>{id}</code>
      </p>
    </Panel>
  );
}
