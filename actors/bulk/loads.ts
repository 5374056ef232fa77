/** Statements of bulk jobs. */

import type { BulkJob, BulkJobState, BulkOperation } from '../../schema/bulk-job.js';
import { columnsBut, type StoredRow, selected } from '../../src/db/table.js';
import { idsOf, type Queries } from '../runtime/queries.js';
import { BULK_JOBS } from './tables.js';

export type BulkJobRow = StoredRow<typeof BULK_JOBS>;

export function wireJob({
  place: _place,
  traceparent: _trace,
  asked_by: requested_by,
  ...row
}: BulkJobRow): BulkJob {
  return {
    ...row,
    requested_by,
    operation: row.operation as BulkOperation,
    state: row.state as BulkJobState,
    request: JSON.parse(row.request) as BulkJob['request'],
  };
}

export const BULK_SQL = {
  bulkJob: `select ${selected(columnsBut(BULK_JOBS))} from bulk_jobs where id = $1::uuid`,
  openBulkJobs:
    'select count(*)::int as count from bulk_jobs where tenant_id = $1 and ended_at is null',
  oldBulkJobs:
    'select id from bulk_jobs where tenant_id = $1 and created_at < $2::timestamptz ' +
    'and ended_at < $2::timestamptz order by created_at, id limit $3::bigint',
  oldestRetry: 'select retried_at from bulk_retries order by retried_at limit 1',
} as const;

export function bulkLoads(queries: Queries) {
  const sql = queries.of(BULK_SQL);
  return {
    bulkJob: (id: string) => sql.one<BulkJobRow>('bulkJob', [id]),
    async openBulkJobs(tenant: string): Promise<number> {
      return (await sql.one<{ count: number }>('openBulkJobs', [tenant]))?.count ?? 0;
    },
    /** Jobs that ended before the given time, oldest first. */
    oldBulkJobs: async (tenant: string, before: string, limit: number) =>
      idsOf(await sql.all('oldBulkJobs', [tenant, before, limit])),
    oldestRetry: () => sql.time('oldestRetry', 'retried_at'),
  };
}

export type BulkLoads = ReturnType<typeof bulkLoads>;
