/** Wire shapes and routes of the cells of a cluster and of tenant moves between them; for the root key. */

import * as t from './common.js';
import { front, get, type RouteRow } from './route-row.js';

/** open: takes new tenants. closed: keeps those it has. draining: its tenants are being moved away. */
export const CELL_STATES = ['open', 'closed', 'draining'] as const;
export const MOVE_STATES = ['copying', 'switched', 'done', 'given_up'] as const;

export const CellEngine = t.named('CellEngine', 'An engine of a cell, as it last reported.', {
  address: t.text(),
  role: t.oneOf(['owner', 'standby']),
  version: t.text(),
  lag_ms: t.nullable(t.integer(), 'Delay in ms of uncommitted writes; null: no writes.'),
  seen_at: t.Timestamp,
  is_silent: t.boolean('True: no report for 15 seconds; considered down.'),
});
export type CellEngine = t.Static<typeof CellEngine>;

export const Cell = t.named('Cell', {
  name: t.text('Also the name of its Postgres schema.'),
  state: t.oneOf(CELL_STATES),
  database_url: t.text('Address of the database, without password.'),
  addresses: t.list(t.text(), 'Addresses of its engines, for proxies.'),
  engines: t.list(CellEngine),
  tenants: t.integer('Number of tenants of the cell.'),
  moves_under_way: t.integer('Number of tenants that move from or to the cell.'),
  created_at: t.Timestamp,
});
export type Cell = t.Static<typeof Cell>;

export const Cells = t.named('Cells', {
  cluster: t.boolean('False: without a directory there are no cells.'),
  own: t.text('The cell of the answering engine.'),
  cells: t.list(Cell),
});
export type Cells = t.Static<typeof Cells>;

export const TenantMove = t.named('TenantMove', {
  id: t.Uuid,
  tenant_id: t.text(),
  from_cell: t.text(),
  to_cell: t.text(),
  state: t.oneOf(MOVE_STATES),
  rows: t.noted(t.AnyJson, 'Copied rows by table; null before the copy.'),
  error: t.nullable(t.text()),
  started_at: t.Timestamp,
  updated_at: t.Timestamp,
  ended_at: t.nullable(t.Timestamp),
});
export type TenantMove = t.Static<typeof TenantMove>;

export const CELL_ROWS = {
  'cells.list': front.get('/cells', {
    summary: 'List the cells of the cluster with their engines, from the directory.',
    isTenantless: true,
    isAlwaysServed: true,
    replies: { 200: Cells },
  }),
  'cells.moves': get('/cells/moves', 'List tenant moves, newest first.', t.list(TenantMove), {
    query: t.object({
      under_way: t.optional(t.boolean({ default: false }), 'Only unfinished moves.'),
      limit: t.Limit(100, 1_000),
      cursor: t.Cursor,
    }),
    isTenantless: true,
    isAlwaysServed: true,
  }),
} as const satisfies Record<string, RouteRow>;
