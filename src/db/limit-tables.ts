/** The tables of concurrency keys and rate limits; see `tables.ts`. Pure. */

import { belonging, table } from './table.js';

export const LIMIT_TABLES = {
  permit_requests: belonging(['instance_id'], {
    instance_id: 'uuid',
    key_id: 'uuid',
    max_concurrency: 'integer',
    number: 'integer',
    created_at: 'timestamptz',
  }),
  permits: table(['instance_id'], { instance_id: 'uuid', key_id: 'uuid', number: 'integer' }),
  rate_limits: table(['id'], {
    id: 'uuid',
    tenant_id: 'text',
    limit_key: 'text',
    max_count: 'integer',
    window_seconds: 'integer',
    updated_at: 'timestamptz',
  }),
  rate_grants: table(['limit_id', 'granted_at', 'id'], {
    limit_id: 'uuid',
    granted_at: 'timestamptz',
    id: 'uuid',
    count: 'integer',
  }),
} as const;
