/** Wire shapes and routes of the cells of a cluster and of the moves of tenants between them; for the root key. */

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
import { listOf, type RouteRow, read, refusals } from './route-row.js';

/** open: takes new tenants. closed: keeps those it has. draining: its tenants are being moved away. */
export const CELL_STATES = ['open', 'closed', 'draining'] as const;
export const MOVE_STATES = ['copying', 'switched', 'done', 'given_up'] as const;

export const CellEngine = named('CellEngine', 'As the engine last said of itself.', {
  address: Type.String(),
  role: oneOfWords(['owner', 'standby']),
  version: Type.String(),
  lag_ms: noted(
    orNull(Type.Integer()),
    'How long its writer takes for what is not committed yet; null: it does not write.',
  ),
  seen_at: Timestamp,
  is_silent: noted(Type.Boolean(), 'It has said nothing for 15 seconds: it is taken for gone.'),
});
export type CellEngine = Static<typeof CellEngine>;

export const Cell = named('Cell', {
  name: noted(Type.String(), 'And of its schema.'),
  state: oneOfWords(CELL_STATES),
  database_url: noted(Type.String(), 'Without a password.'),
  addresses: noted(Type.Array(Type.String()), 'Where proxies find its engines.'),
  engines: Type.Array(CellEngine),
  tenants: noted(Type.Integer(), 'That are settled there.'),
  moves_under_way: noted(Type.Integer(), 'From it or to it.'),
  created_at: Timestamp,
});
export type Cell = Static<typeof Cell>;

export const Cells = named('Cells', {
  cluster: noted(Type.Boolean(), 'Without one there are no cells to list.'),
  own: noted(Type.String(), 'The cell of the engine that answers.'),
  cells: Type.Array(Cell),
});
export type Cells = Static<typeof Cells>;

export const TenantMove = named('TenantMove', {
  id: Uuid,
  tenant_id: Type.String(),
  from_cell: Type.String(),
  to_cell: Type.String(),
  state: oneOfWords(MOVE_STATES),
  rows: noted(AnyJson, 'What was copied, by table; null before it was.'),
  error: orNull(Type.String()),
  started_at: Timestamp,
  updated_at: Timestamp,
  ended_at: orNull(Timestamp),
});
export type TenantMove = Static<typeof TenantMove>;

export const MoveListQuery = Type.Object({
  under_way: Type.Optional(
    noted(Type.Boolean({ default: false }), 'Only those that have not ended.'),
  ),
  limit: Limit(100, 1_000),
  cursor: Cursor,
});
export type MoveListQuery = Static<typeof MoveListQuery>;

// ---------------------------------------------------------------- routes

export const CELL_ROWS = {
  'cells.list': {
    ...read,
    path: '/cells',
    summary: 'List the cells of the cluster with their engines, as the directory knows them.',
    isTenantless: true,
    isAlwaysServed: true,
    replies: { 200: Cells },
  },
  'cells.moves': {
    ...read,
    path: '/cells/moves',
    summary: 'List the moves of tenants between cells, newest first.',
    query: MoveListQuery,
    isTenantless: true,
    isAlwaysServed: true,
    replies: { 200: listOf(TenantMove), ...refusals(400) },
  },
} as const satisfies Record<string, RouteRow>;
