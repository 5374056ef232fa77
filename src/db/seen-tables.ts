/** The tables of what was noticed lately, for people to look at; see `tables.ts`. Pure. */

import { table } from './table.js';

export const SEEN_TABLES = {
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
  workers: table(['tenant_id', 'worker_id', 'handler_name', 'queue_name'], {
    tenant_id: 'text',
    worker_id: 'text',
    handler_name: 'text',
    queue_name: 'text',
    version: 'text?',
    last_seen_at: 'timestamptz',
  }),
} as const;
