/** The tables of changes of many instances that go on behind their answer; see `tables.ts`. Pure. */

import { belonging, table } from './table.js';

export const BULK_TABLES = {
  bulk_jobs: table(['id'], {
    id: 'uuid',
    tenant_id: 'text',
    operation: 'text',
    request: 'json',
    state: 'text',
    matched: 'integer',
    applied: 'integer',
    skipped: 'integer',
    failed: 'integer',
    repeats_effects: 'integer',
    error: 'text?',
    place: 'text?',
    traceparent: 'text?',
    asked_by: 'text?',
    created_at: 'timestamptz',
    updated_at: 'timestamptz',
    ended_at: 'timestamptz?',
  }),
  bulk_changes: belonging(['job_id', 'instance_id'], { job_id: 'uuid', instance_id: 'uuid' }),
} as const;
