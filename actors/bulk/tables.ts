/** The table of bulk jobs. Pure. */

import { clear, insert, mutations, update } from '../../src/db/mutation.js';
import { columnsBut, table } from '../../src/db/table.js';

export const BULK_JOBS = table('bulk_jobs', ['id'], {
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
  next_at: 'timestamptz?',
});

/** Never changed. */
const ORIGIN = ['operation', 'request', 'traceparent', 'asked_by'] as const;

export const BULK_JOB = mutations('bulkJob', {
  insert: insert(BULK_JOBS),
  update: update(BULK_JOBS, columnsBut(BULK_JOBS, 'id', 'tenant_id', 'created_at', ...ORIGIN)),
  clear: clear(BULK_JOBS),
});

export const BULK_STORE = [BULK_JOB];
