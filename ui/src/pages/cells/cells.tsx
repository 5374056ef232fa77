/** The cells of the cluster: the engines of each, the number of tenants, and moves between cells. */

import type { Cell, Cells as CellList, TenantMove } from 'durable-workflow-engine-client';
import { Boxes, MoveRight } from 'lucide-react';
import { useEngine } from '../../api/engine.tsx';
import { useRead } from '../../api/read.ts';
import { Badge } from '../../components/badge.tsx';
import { Empty } from '../../components/error-box.tsx';
import { useListOf } from '../../components/list.tsx';
import { ListPanel } from '../../components/list-panel.tsx';
import { Loaded } from '../../components/loaded.tsx';
import { Page, Panel } from '../../components/page.tsx';
import { StateWord } from '../../components/state-word.tsx';
import { type Column, Table } from '../../components/table.tsx';
import { Time } from '../../components/time.tsx';
import { countOf, formatCount, formatDuration } from '../../lib/format.ts';

/** The interval at which engines report to the directory. */
const READ_EVERY_MS = 5_000;

const heard = ({ engines }: Cell) => engines.filter(({ is_silent }) => !is_silent);
const ownerOf = (cell: Cell) => heard(cell).find(({ role }) => role === 'owner');

const columnsOf = (own: string): readonly Column<Cell>[] => [
  {
    name: 'Cell',
    cell: ({ name }) => (
      <>
        <strong>{name}</strong> {name === own && <span className="dim small">this one</span>}
      </>
    ),
  },
  { name: 'State', cell: ({ state }) => <StateWord state={state} /> },
  { name: 'Owner', cell: (cell) => <Owner cell={cell} /> },
  {
    name: 'Standbys',
    isNumber: true,
    cell: (cell) => formatCount(heard(cell).filter(({ role }) => role === 'standby').length),
  },
  { name: 'Lag', isNumber: true, cell: (cell) => <Lag cell={cell} /> },
  { name: 'Tenants', isNumber: true, cell: ({ tenants }) => formatCount(tenants) },
  { name: 'Moves', isNumber: true, cell: ({ moves_under_way }) => formatCount(moves_under_way) },
  { name: 'Version', cell: (cell) => ownerOf(cell)?.version ?? '–' },
];

function Owner({ cell }: { readonly cell: Cell }) {
  const owner = ownerOf(cell);
  if (owner !== undefined) return <code>{owner.address}</code>;
  const last = cell.engines.find(({ role }) => role === 'owner');
  return (
    <>
      <Badge tone="danger">no owner</Badge>{' '}
      {last && (
        <span className="dim small">
          last seen <Time at={last.seen_at} />
        </span>
      )}
    </>
  );
}

function Lag({ cell }: { readonly cell: Cell }) {
  const lag = ownerOf(cell)?.lag_ms;
  return lag == null ? '–' : formatDuration(lag);
}

const MOVE_COLUMNS: readonly Column<TenantMove>[] = [
  { name: 'Tenant', cell: ({ tenant_id }) => tenant_id },
  { name: 'From', cell: ({ from_cell }) => from_cell },
  { name: 'To', cell: ({ to_cell }) => to_cell },
  {
    name: 'State',
    cell: ({ state, error }) => (
      <>
        <StateWord state={state} /> {error}
      </>
    ),
  },
  { name: 'Started', cell: ({ started_at }) => <Time at={started_at} /> },
  { name: 'Ended', cell: ({ ended_at }) => (ended_at === null ? '–' : <Time at={ended_at} />) },
];

export default function Cells() {
  const cells = useRead('cells.list', [], { refetchInterval: READ_EVERY_MS });
  return (
    <Page title="Cells" about="Each cell stores some of the tenants and has its own engines.">
      <Loaded query={cells} height={320}>
        {(list) => (list.cluster ? <InCluster list={list} /> : <NoCluster />)}
      </Loaded>
    </Page>
  );
}

function InCluster({ list: { cells, own } }: { readonly list: CellList }) {
  const { client } = useEngine();
  // Read again when a move starts or ends.
  const underWay = cells.map(({ moves_under_way }) => moves_under_way);
  const moves = useListOf(['cells.moves', underWay], (page, options) =>
    client.cells.moves(page, options),
  );
  const tenants = cells.reduce((sum, cell) => sum + cell.tenants, 0);
  return (
    <>
      <Panel title={`${countOf(cells.length, 'cell')}, ${countOf(tenants, 'tenant')}`} isFlush>
        <Table label="Cells" columns={columnsOf(own)} rows={cells} idOf={({ name }) => name} />
      </Panel>
      <ListPanel
        title="Moves of tenants, newest first"
        label="Moves"
        list={moves}
        columns={MOVE_COLUMNS}
        idOf={({ id }) => id}
        empty={{
          title: 'No moves',
          icon: MoveRight,
          about: (
            <>
              <code>tenants move</code> moves a tenant to another cell without stopping it.
            </>
          ),
        }}
      />
    </>
  );
}

function NoCluster() {
  return (
    <Empty title="No cluster" icon={Boxes}>
      <p>
        This server is not part of a cluster. <code>cells create</code> creates a directory for one.
      </p>
    </Empty>
  );
}
