/** The table of lines over time; see `tables.ts`. Pure. */

import { table } from './table.js';

export const ACTIVITY_TABLES = {
  activity: table(['tenant_id', 'at', 'shard'], {
    tenant_id: 'text',
    at: 'timestamptz',
    shard: 'smallint',
    created: 'integer',
    completed: 'integer',
    failed: 'integer',
    cancelled: 'integer',
    durations: 'json',
  }),
} as const;
