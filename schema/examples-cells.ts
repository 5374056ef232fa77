/** Examples of cells and of moves between them. */

import type { JsonValue } from '../src/base/json.js';
import { EXAMPLE_TENANT } from './example-ids.js';

const owner = {
  address: '10.0.0.1:8080',
  role: 'owner',
  version: '1.0.0',
  lag_ms: 4,
  seen_at: '2026-01-31T12:00:03.000Z',
  is_silent: false,
};

const cell = {
  name: 'east',
  state: 'open',
  database_url: 'postgresql://engine@db:5432/app',
  addresses: ['10.0.0.1:8080', '10.0.0.2:8080'],
  engines: [owner, { ...owner, address: '10.0.0.2:8080', role: 'standby', lag_ms: null }],
  tenants: 120,
  moves_under_way: 0,
  created_at: '2026-01-01T09:00:00.000Z',
};

export const CELL_EXAMPLES: Readonly<Record<string, JsonValue>> = {
  CellEngine: owner,
  Cell: cell,
  Cells: { cluster: true, own: 'east', cells: [cell] },
  TenantMove: {
    id: '0190b5c0-0000-7000-8000-000000000001',
    tenant_id: EXAMPLE_TENANT,
    from_cell: 'east',
    to_cell: 'west',
    state: 'done',
    rows: null,
    error: null,
    started_at: '2026-01-31T12:00:00.000Z',
    updated_at: '2026-01-31T12:00:09.000Z',
    ended_at: '2026-01-31T12:00:09.000Z',
  },
};
