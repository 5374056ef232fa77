/** Wire shapes and routes of the cells of a cluster and of tenant moves between them; for the root key. */

import { type Static, Type } from '@sinclair/typebox';
import {
  AnyJson,
  Cursor,
  Limit,
  named,
  noted,
  oneOfWords,
  orNull,
  Timestamp,
  Uuid,
} from './common.js';
import { get, listOf, type RouteRow, read } from './route-row.js';

/** open: takes new tenants. closed: keeps those it has. draining: its tenants are being moved away. */
export const CELL_STATES = ['open', 'closed', 'draining'] as const;
export const MOVE_STATES = ['copying', 'switched', 'done', 'given_up'] as const;

export const CellEngine = named('CellEngine', 'As last reported by the engine.', {
  address: Type.String(),
  role: oneOfWords(['owner', 'standby']),
  version: Type.String(),
  lag_ms: noted(orNull(Type.Integer()), 'Delay in ms of uncommitted writes; null: no writes.'),
  seen_at: Timestamp,
  is_silent: noted(Type.Boolean(), 'Not reported for 15 seconds: considered down.'),
});
export type CellEngine = Static<typeof CellEngine>;

export const Cell = named('Cell', {
  name: noted(Type.String(), 'Also the name of its Postgres schema.'),
  state: oneOfWords(CELL_STATES),
  database_url: noted(Type.String(), 'Without password.'),
  addresses: noted(Type.Array(Type.String()), 'Address of its engines for proxies.'),
  engines: Type.Array(CellEngine),
  tenants: noted(Type.Integer(), 'Tenants that it owns.'),
  moves_under_way: noted(Type.Integer(), 'Tenants moving from or to it.'),
  created_at: Timestamp,
});
export type Cell = Static<typeof Cell>;

export const Cells = named('Cells', {
  cluster: noted(Type.Boolean(), 'Without a directory there are no cells to list.'),
  own: noted(Type.String(), 'The cell of the answering engine.'),
  cells: Type.Array(Cell),
});
export type Cells = Static<typeof Cells>;

export const TenantMove = named('TenantMove', {
  id: Uuid,
  tenant_id: Type.String(),
  from_cell: Type.String(),
  to_cell: Type.String(),
  state: oneOfWords(MOVE_STATES),
  rows: noted(AnyJson, 'Copied rows by table; null before the copy.'),
  error: orNull(Type.String()),
  started_at: Timestamp,
  updated_at: Timestamp,
  ended_at: orNull(Timestamp),
});
export type TenantMove = Static<typeof TenantMove>;

const MoveListQuery = Type.Object({
  under_way: Type.Optional(noted(Type.Boolean({ default: false }), 'Only unfinished moves.')),
  limit: Limit(100, 1_000),
  cursor: Cursor,
});

export const CELL_ROWS = {
  'cells.list': {
    ...read,
    path: '/cells',
    summary: 'List the cells of the cluster with their engines, from the directory.',
    isTenantless: true,
    isAlwaysServed: true,
    replies: { 200: Cells },
  },
  'cells.moves': get('/cells/moves', 'List tenant moves, newest first.', listOf(TenantMove), {
    query: MoveListQuery,
    isTenantless: true,
    isAlwaysServed: true,
  }),
} as const satisfies Record<string, RouteRow>;
