/** The instance beside another run of its sequence: by default the last one that completed. */

import { useQuery } from '@tanstack/react-query';
import { GitCompare } from 'lucide-react';
import { useMemo, useState } from 'react';
import { Link } from 'wouter';
import { useEngine } from '../../api/engine.tsx';
import { useRead } from '../../api/read.ts';
import { useSequence } from '../../api/sequences.ts';
import { Badge } from '../../components/badge.tsx';
import { Button, ButtonRow } from '../../components/button.tsx';
import { Dialog } from '../../components/dialog.tsx';
import { Empty } from '../../components/error-box.tsx';
import { InstanceLink } from '../../components/instance-link.tsx';
import { TextDiff } from '../../components/later.tsx';
import { Panel } from '../../components/page.tsx';
import { type Column, Table } from '../../components/table.tsx';
import { Time } from '../../components/time.tsx';
import { StateMark } from '../../flow/block-state.tsx';
import { hrefOf, useFilters } from '../../lib/address.ts';
import { formatDuration } from '../../lib/format.ts';
import { Awaited } from './awaited.tsx';
import styles from './instance.module.css';
import { type Run, useInstance } from './run.ts';
import { type BlockSide, type ComparedBlock, comparedBlocks } from './run-differences.ts';

export function Compare({ run }: { readonly run: Run }) {
  const [filters] = useFilters();
  const { id } = run.instance;
  const good = useLastGood(run, filters.with === undefined);
  const other = filters.with ?? good.data?.find((one) => one.id !== id)?.id;
  if (other !== undefined) {
    const isChosen = filters.with !== undefined;
    return <Beside key={other} run={run} other={other} isChosen={isChosen} />;
  }
  if (good.data === undefined) return <Awaited query={good} height={320} />;
  return (
    <Empty title="Nothing to compare with" icon={GitCompare}>
      <p>No other instance of this sequence has completed.</p>
    </Empty>
  );
}

/** Two, since the newest may be the instance itself. */
const CANDIDATES = 2;

function useLastGood({ named }: Run, isWanted: boolean) {
  const { name: sequence, namespace } = named ?? {};
  const asked = { sequence, namespace, state: ['completed' as const], limit: CANDIDATES };
  return useRead('instances.list', [asked], {
    enabled: isWanted && named !== undefined,
    select: ({ items }) => items,
  });
}

function Beside(props: {
  readonly run: Run;
  readonly other: string;
  /** By the address. */
  readonly isChosen: boolean;
}) {
  const { run, other, isChosen } = props;
  const { instance, outline } = run;
  const [shown, show] = useState<ComparedBlock>();
  const otherQuery = useInstance(other, false);
  const goodQuery = useRunData(other);
  const ownQuery = useRunData(instance.id);
  const [good, own] = [goodQuery.data, ownQuery.data];
  const rows = useMemo(
    () => outline && good && own && comparedBlocks(outline, good, own),
    [outline, good, own],
  );
  if (otherQuery.data === undefined || rows === undefined) {
    const reads = [otherQuery, goodQuery, ownQuery, run.queries.sequence];
    return <Awaited query={reads.find(({ error }) => error) ?? goodQuery} height={320} />;
  }
  const isWhole = good?.isWhole && own?.isWhole;
  return (
    <Panel
      title={isChosen ? 'Compared with another run' : 'Compared with the last completed run'}
      isFlush
    >
      <p className={styles.compared}>
        <span>
          <InstanceLink id={other} />, {otherQuery.data.state}{' '}
          <Time at={otherQuery.data.updated_at} />
        </span>
        <OtherVersion run={run} sequenceId={otherQuery.data.sequence_id} />
        {!isWhole && <span>Only the first outputs of the runs are compared.</span>}
      </p>
      <Table
        label="Blocks of both runs"
        columns={[...COLUMNS, outputs(show)]}
        rows={rows}
        idOf={({ path }) => path}
        empty={<p className={styles.compared}>Neither run has reached a block.</p>}
      />
      {shown && (
        <Dialog title={`Output of ${shown.id}`} isWide onClose={() => show(undefined)}>
          <p className="dim small">From the other run to this one.</p>
          <TextDiff
            label={`Differences of the output of ${shown.id}`}
            before={shown.good?.output ?? ''}
            after={shown.own?.output ?? ''}
          />
        </Dialog>
      )}
    </Panel>
  );
}

function OtherVersion({ run, sequenceId }: { readonly run: Run; readonly sequenceId: string }) {
  const version = useSequence(sequenceId)?.version;
  const own = run.instance.sequence_id;
  if (sequenceId === own || version === undefined) return null;
  return (
    <Link href={hrefOf(`/sequences/${own}/versions`, { from: sequenceId, to: own })}>
      It ran version {version}: show the changes
    </Link>
  );
}

const OUTPUTS_READ = 500;
const BYTES = 1024 * 1024;

function useRunData(id: string) {
  const { client } = useEngine();
  return useQuery({
    queryKey: ['instances.outputs', id, 'compared'],
    queryFn: async ({ signal }) => {
      const query = { limit: OUTPUTS_READ, max_bytes: BYTES };
      const [tree, { items, nextCursor }] = await Promise.all([
        client.instances.tree(id, {}, { signal }),
        client.instances.outputs(id, query, { signal }),
      ]);
      return { tree, outputs: items, isWhole: nextCursor === undefined };
    },
    meta: { live: id },
  });
}

const COLUMNS: readonly Column<ComparedBlock>[] = [
  {
    name: 'Block',
    cell: ({ id, depth, isFirst }) => (
      <span style={{ paddingInlineStart: `${depth}em` }}>
        <code>{id}</code> {isFirst && <Badge tone="danger">first difference</Badge>}
      </span>
    ),
  },
  { name: 'Other run', cell: ({ good }) => <Side side={good} /> },
  { name: 'This run', cell: ({ own }) => <Side side={own} /> },
];

function Side({ side }: { readonly side: BlockSide | undefined }) {
  if (side === undefined) return <span className="dim">not in this run</span>;
  const { state, durationMs } = side;
  return (
    <>
      <StateMark state={state} />{' '}
      {durationMs !== undefined && state !== 'skipped' && (
        <span className="dim">{formatDuration(durationMs)}</span>
      )}
    </>
  );
}

const WORDS: Readonly<Record<ComparedBlock['difference'] & string, string>> = {
  state: 'Other state',
  shape: 'Other members',
  values: 'Other values',
};

const outputs = (show: (row: ComparedBlock) => void): Column<ComparedBlock> => ({
  name: 'Difference',
  cell: (row) => {
    const { difference, good, own } = row;
    if (difference === undefined) return <span className="dim">none</span>;
    if (good?.output === own?.output) return WORDS[difference];
    return (
      <ButtonRow>
        {WORDS[difference]}
        <Button onClick={() => show(row)}>Show outputs</Button>
      </ButtonRow>
    );
  },
});
