/** Failed instances grouped by sequence and reason, with bulk actions on each group. */

import { useQuery } from '@tanstack/react-query';
import type { FailureGroup } from 'durable-workflow-engine-client';
import { CircleCheck } from 'lucide-react';
import { useState } from 'react';
import { Link } from 'wouter';
import { useEngine } from '../../api/engine.tsx';
import { type BulkAction, BulkDialog, type BulkFilter } from '../../components/bulk-dialog.tsx';
import { Button, ButtonRow } from '../../components/button.tsx';
import { Empty } from '../../components/error-box.tsx';
import { FieldRow } from '../../components/field.tsx';
import { Loaded } from '../../components/loaded.tsx';
import { Page, Panel } from '../../components/page.tsx';
import { SequenceField } from '../../components/sequence-field.tsx';
import { type Column, Table, TableNote } from '../../components/table.tsx';
import { Time } from '../../components/time.tsx';
import { hrefOf, useFilters } from '../../lib/address.ts';
import { formatCount } from '../../lib/format.ts';
import styles from './failures.module.css';

interface Chosen {
  readonly action: BulkAction;
  readonly group: FailureGroup;
}

export default function Failures() {
  const { allowed } = useEngine();
  const [filters, change] = useFilters();
  const [chosen, setChosen] = useState<Chosen>();
  const { sequence } = filters;
  const groups = useFailureGroups(sequence);
  const actions: Column<FailureGroup> = {
    name: 'Action',
    cell: (group) => (
      <ButtonRow>
        <Button onClick={() => setChosen({ action: 'retry', group })}>Retry all</Button>
        <Button onClick={() => setChosen({ action: 'cancel', group })}>Cancel all</Button>
      </ButtonRow>
    ),
  };
  return (
    <Page title="Failures" about="Failed instances, grouped by reason. Largest groups first.">
      <FieldRow>
        <SequenceField
          isFilter
          value={sequence ?? ''}
          onChange={(name) => change({ sequence: name })}
        />
      </FieldRow>
      <Panel title="By reason" isFlush>
        <Loaded query={groups} height={320}>
          {({ groups: rows, complete, looked_at }) => (
            <>
              <FailureTable
                rows={rows}
                liveOf={`failures ${sequence ?? ''}`}
                more={allowed.operate ? [actions] : []}
              />
              {!complete && (
                <TableNote>
                  Of the newest {formatCount(looked_at)} failed instances; there are more.
                </TableNote>
              )}
            </>
          )}
        </Loaded>
      </Panel>
      {chosen && (
        <BulkDialog
          action={chosen.action}
          filter={filterOf(chosen.group)}
          among={{ namespace: chosen.group.namespace, sequence_id: chosen.group.sequence_id }}
          onClose={() => setChosen(undefined)}
        >
          <p>
            Instances of <strong>{chosen.group.sequence_name}</strong>, version{' '}
            {chosen.group.version}, that failed of:
          </p>
          <p className={styles.reason}>{chosen.group.reason}</p>
          <Wider group={chosen.group} />
        </BulkDialog>
      )}
    </Page>
  );
}

const PACE_MS = 5000;

export function useFailureGroups(sequence?: string) {
  const { client } = useEngine();
  return useQuery({
    queryKey: ['instances.failures', sequence],
    queryFn: ({ signal }) => client.instances.failures({ sequence_name: sequence }, { signal }),
    // The engine examines thousands of instances for it.
    meta: { live: 'all', paceMs: PACE_MS },
  });
}

const COLUMNS: readonly Column<FailureGroup>[] = [
  {
    name: 'Count',
    isNumber: true,
    cell: (group) => (
      <Link href={hrefOf('/instances', addressOf(group))} className={styles.count}>
        {formatCount(group.count)}
      </Link>
    ),
  },
  {
    name: 'Reason',
    cell: (group) => (
      <>
        <Link href={`/instances/${group.example_instance_id}`} title={group.example_message}>
          {group.reason}
        </Link>{' '}
        <code className="dim small">{group.code}</code>
      </>
    ),
  },
  {
    name: 'Where',
    cell: ({ sequence_id, sequence_name, version, block_id, handler }) => (
      <>
        <Link href={`/sequences/${sequence_id}`}>{sequence_name}</Link>{' '}
        <span className="dim small">
          version {version}
          {block_id !== null && (
            <>
              {' '}
              at <code>{block_id}</code>
            </>
          )}
          {handler !== null && ` (${handler})`}
        </span>
      </>
    ),
  },
  { name: 'First', cell: ({ first_at }) => <Time at={first_at} /> },
  { name: 'Last', cell: ({ last_at }) => <Time at={last_at} /> },
];

/** @param props.more columns after the default ones */
export function FailureTable(props: {
  readonly rows: readonly FailureGroup[];
  readonly more?: readonly Column<FailureGroup>[];
  readonly liveOf?: string;
}) {
  return (
    <Table
      label="Failures by reason"
      columns={[...COLUMNS, ...(props.more ?? [])]}
      rows={props.rows}
      liveOf={props.liveOf}
      idOf={({ namespace, sequence_id, block_id, handler, code, reason }) =>
        JSON.stringify([namespace, sequence_id, block_id, handler, code, reason])
      }
      empty={
        <Empty title="No failed instances" icon={<CircleCheck size={26} aria-hidden />}>
          <p>Failed instances are listed here until they are retried, cancelled or deleted.</p>
        </Empty>
      }
    />
  );
}

/**
 * The filter for the instances of a group. The engine has no filter for failures without a block or handler, so it may
 * match more; `Wider` tells the user.
 */
function filterOf(group: FailureGroup): BulkFilter {
  return {
    states: ['failed'],
    namespace: group.namespace,
    sequence_id: group.sequence_id,
    failure_code: group.code,
    failure_reason: group.reason,
    failure_block: group.block_id,
    failure_handler: group.handler,
  };
}

function Wider({ group: { block_id, handler } }: { readonly group: FailureGroup }) {
  if (block_id !== null && handler !== null) return null;
  const where = block_id === null ? 'at any block' : 'at this block, with any handler';
  return (
    <p>
      This includes instances that failed for the same reason {where}: they cannot be excluded. The
      number below includes them.
    </p>
  );
}

/** The same filter for the address of the list of instances. */
function addressOf(group: FailureGroup): Readonly<Record<string, string | undefined>> {
  return {
    state: 'failed',
    namespace: group.namespace,
    sequence_id: group.sequence_id,
    failure_code: group.code,
    failure_reason: group.reason,
    failure_block: group.block_id ?? undefined,
    failure_handler: group.handler ?? undefined,
  };
}
