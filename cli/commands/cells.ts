/** Commands for the cells of a cluster; they ask its directory, and no engine. */

import type { Cell, TenantMove } from '../../schema/cell.js';
import { CLUSTER_OPTION } from '../cluster-option.js';
import { type Argument, type Command, listing, type Option } from '../command.js';
import { ago, type Column, durationText } from '../table.js';

const NAME: Argument = {
  name: 'name',
  about: 'Of the cell: that of its schema, its ENGINE_DB_SCHEMA.',
};

export const YES_OPTION: Option = { flags: '--yes', about: 'Do not ask.' };

const DATABASE_OPTION: Option = {
  flags: '--database <url>',
  about: 'Of its Postgres, without a password.',
};

const ENGINE_OPTION: Option = {
  flags: '--engine <address>',
  about: 'Where proxies find an engine of it, as host:port; may be repeated.',
  isMany: true,
};

const ownerOf = ({ engines }: Cell) =>
  engines.find(({ role, is_silent }) => role === 'owner' && !is_silent);

const standbysOf = ({ engines }: Cell) =>
  engines.filter(({ role, is_silent }) => role === 'standby' && !is_silent).length;

const COLUMNS: readonly Column<Cell>[] = [
  { head: 'CELL', text: ({ name }) => name, isWhole: true },
  {
    head: 'STATE',
    text: ({ state }) => state,
    tone: ({ state }) => (({ open: 'good', closed: 'quiet', draining: 'busy' }) as const)[state],
  },
  {
    head: 'OWNER',
    text: (cell) => ownerOf(cell)?.address ?? 'none',
    tone: (cell) => (ownerOf(cell) === undefined ? 'bad' : undefined),
  },
  { head: 'STANDBYS', text: (cell) => String(standbysOf(cell)) },
  { head: 'TENANTS', text: ({ tenants }) => tenants.toLocaleString('en') },
  { head: 'MOVES', text: ({ moves_under_way }) => String(moves_under_way) },
  {
    head: 'LAG',
    text: (cell) => {
      const lag = ownerOf(cell)?.lag_ms;
      return lag == null ? '-' : lag < 1_000 ? `${lag}ms` : durationText(lag);
    },
  },
  { head: 'VERSION', text: (cell) => ownerOf(cell)?.version ?? '-' },
];

const MOVE_COLUMNS: readonly Column<TenantMove>[] = [
  { head: 'TENANT', text: ({ tenant_id }) => tenant_id, isWhole: true },
  { head: 'FROM', text: ({ from_cell }) => from_cell },
  { head: 'TO', text: ({ to_cell }) => to_cell },
  {
    head: 'STATE',
    text: ({ state }) => state,
    tone: ({ state }) =>
      (({ copying: 'busy', switched: 'busy', done: 'good', given_up: 'quiet' }) as const)[state],
  },
  { head: 'STARTED', text: ({ started_at }, now) => ago(started_at, now) },
  { head: 'ENDED', text: ({ ended_at }, now) => (ended_at === null ? '-' : ago(ended_at, now)) },
  { head: 'ERROR', text: ({ error }) => error ?? '' },
];

/** What takes long to load is loaded by the command that is run. */
const work = () => import('../cells.js');

export const CELL_COMMANDS: readonly Command[] = [
  {
    name: 'cells create',
    summary: 'Add a cell to the directory of the cluster, which is created if missing.',
    args: [NAME],
    options: [
      DATABASE_OPTION,
      ENGINE_OPTION,
      {
        flags: '--closed',
        about: 'It takes no new tenants until cells open: give it while no engine of it runs.',
      },
      CLUSTER_OPTION,
    ],
    run: async (session, given) => (await work()).createCell(session, given),
  },
  listing<Cell>({
    name: 'cells list',
    summary: 'List the cells of the cluster with their engines.',
    options: [CLUSTER_OPTION],
    columns: COLUMNS,
    ask: async (session, given) => (await work()).allCells(session, given),
  }),
  {
    name: 'cells status',
    summary: 'Show the engines, tenants and moves of one cell, or of all.',
    args: [{ ...NAME, isOptional: true }],
    options: [CLUSTER_OPTION],
    run: async (session, given) => (await work()).showCells(session, given),
  },
  {
    name: 'cells set',
    summary: 'Change the addresses of the database or the engines of a cell.',
    args: [NAME],
    options: [
      DATABASE_OPTION,
      {
        ...ENGINE_OPTION,
        about:
          'Where proxies find an engine of it, as host:port, in the place of all; may be repeated.',
      },
      CLUSTER_OPTION,
    ],
    run: async (session, given) => (await work()).changeCell(session, given),
  },
  listing<TenantMove>({
    name: 'cells moves',
    summary: 'List the moves of tenants between cells, newest first.',
    options: [{ flags: '--under-way', about: 'Only those that have not ended.' }, CLUSTER_OPTION],
    columns: MOVE_COLUMNS,
    ask: async (session, given, _page, most) => (await work()).moves(session, given, most),
  }),
  {
    name: 'cells open',
    summary: 'Open a cell to new tenants.',
    args: [NAME],
    options: [CLUSTER_OPTION],
    run: async (session, given) => (await work()).setState(session, given, 'open'),
  },
  {
    name: 'cells close',
    summary: 'Close a cell to new tenants; those that it has stay.',
    args: [NAME],
    options: [CLUSTER_OPTION],
    run: async (session, given) => (await work()).setState(session, given, 'closed'),
  },
  {
    name: 'cells drain',
    summary: 'Close a cell to new tenants, and print the commands that move its tenants away.',
    args: [NAME],
    options: [
      {
        flags: '--to <cell>',
        about: 'Where they are to go; spread over the open cells unless given.',
      },
      { flags: '--wait', about: 'Until none is left, or --timeout is over.' },
      CLUSTER_OPTION,
    ],
    run: async (session, given) => (await work()).drainCell(session, given),
  },
  {
    name: 'cells remove',
    summary: 'Remove a cell without tenants and engines from the directory; its schema stays.',
    args: [NAME],
    options: [YES_OPTION, CLUSTER_OPTION],
    run: async (session, given) => (await work()).removeCell(session, given),
  },
];
