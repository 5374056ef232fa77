/** The slowest of the newest instances of a version, as a whole or at one block. */

import type { SequenceDefinition, SlowRun } from 'durable-workflow-engine-client';
import { Link } from 'wouter';
import { useMaySee } from '../../api/engine.tsx';
import { useRead } from '../../api/read.ts';
import { StateBadge } from '../../components/badge.tsx';
import { ShortId } from '../../components/copy.tsx';
import { Loaded } from '../../components/loaded.tsx';
import { type Column, Table, TableNote } from '../../components/table.tsx';
import { Time } from '../../components/time.tsx';
import type { OutlineBlock } from '../../flow/outline.ts';
import { hrefOf } from '../../lib/address.ts';
import { formatDuration } from '../../lib/format.ts';

/** Each read examines thousands of instances. */
const READ_EVERY_MS = 30_000;
const SHOWN = 10;
/** Beside the graph each run takes several lines. */
const SHOWN_BESIDE = 5;

export function SlowestRuns(props: {
  readonly sequence: SequenceDefinition;
  readonly block?: OutlineBlock;
}) {
  const { sequence, block } = props;
  const maySee = useMaySee();
  const limit = block === undefined ? SHOWN : SHOWN_BESIDE;
  const asked = { sequence_id: sequence.id, block: block?.id, limit };
  const query = useRead('instances.slowest', [asked], { live: 'all', paceMs: READ_EVERY_MS });
  const columns: readonly Column<SlowRun>[] = [
    {
      name: 'Instance',
      cell: ({ instance_id: id }) =>
        maySee('/instances') ? (
          <Link href={hrefOf(`/instances/${id}`, { block: block?.path })}>
            <ShortId id={id} />
          </Link>
        ) : (
          <ShortId id={id} />
        ),
    },
    { name: 'State', cell: ({ state }) => <StateBadge state={state} /> },
    {
      name: 'Duration',
      cell: ({ duration_ms, is_open }) =>
        `${formatDuration(duration_ms)}${is_open ? ' so far' : ''}`,
      isNumber: true,
    },
    ...(block === undefined
      ? [{ name: 'Created', cell: ({ created_at }: SlowRun) => <Time at={created_at} /> }]
      : []),
  ];
  return (
    <Loaded query={query} height={120}>
      {({ runs, complete }) => (
        <>
          <Table
            label={block === undefined ? 'Slowest instances' : `Slowest runs of ${block.id}`}
            columns={columns}
            rows={runs}
            idOf={({ instance_id }) => instance_id}
            empty={<TableNote>No instance has {block ? 'reached it' : 'started'}.</TableNote>}
          />
          {!complete && <TableNote>Of the newest 3,000 instances.</TableNote>}
        </>
      )}
    </Loaded>
  );
}
