/** Commands for the cells of a cluster, which use its directory and no engine. */

import type { Cell, TenantMove } from '../../schema/cell.js';
import { CLUSTER_OPTION } from '../cluster-option.js';
import { type Argument, type Command, listing, type Option } from '../command.js';
import { ago, type Column, durationText } from '../table.js';

const NAME: Argument = {
  name: 'name',
  about: 'The name of the cell, which is also its schema (ENGINE_DB_SCHEMA).',
};

export const YES_OPTION: Option = { flags: '--yes', about: 'Do not ask for confirmation.' };

const DATABASE_OPTION: Option = {
  flags: '--database <url>',
  about: 'The URL of its Postgres, without a password.',
};

const ENGINE_OPTION: Option = {
  flags: '--engine <address>',
  about: 'Address of one of its engines for proxies, as host:port; may be repeated.',
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

/** Loaded on demand, since it takes long to load. */
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
        about: 'No new tenants until cells open; use it while none of its engines runs.',
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
    summary: 'Change the database URL or the engine addresses of a cell.',
    args: [NAME],
    options: [
      DATABASE_OPTION,
      {
        ...ENGINE_OPTION,
        about:
          'Address of one of its engines for proxies, as host:port; replaces all addresses; may be repeated.',
      },
      CLUSTER_OPTION,
    ],
    run: async (session, given) => (await work()).changeCell(session, given),
  },
  listing<TenantMove>({
    name: 'cells moves',
    summary: 'List the moves of tenants between cells, newest first.',
    options: [{ flags: '--under-way', about: 'Only moves in progress.' }, CLUSTER_OPTION],
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
    summary: 'Close a cell to new tenants; its own tenants stay.',
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
        about: 'The target cell; default: spread over the open cells.',
      },
      { flags: '--wait', about: 'Wait until no tenant is left, at most --timeout.' },
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
