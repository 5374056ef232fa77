/** Lists and lookups of bulk jobs. */

import { filtersOf } from '../../../src/db/reads/filters.js';
import { list } from '../../../src/db/reads/list.js';
import { lookup } from '../../../src/db/reads/lookup.js';
import { orderBy } from '../../../src/db/reads/order.js';
import { columnsBut, type StoredRow, selected } from '../../../src/db/table.js';
import { BULK_JOBS } from '../tables.js';

const COLUMNS = columnsBut(BULK_JOBS);

export type BulkJobRow = StoredRow<typeof BULK_JOBS>;

/** `BulkJob` records, newest first. */
export const bulkJobList = list({
  columns: selected(COLUMNS),
  from: 'bulk_jobs',
  by: filtersOf(BULK_JOBS, ['tenant_id', 'state']),
  order: orderBy(BULK_JOBS, ['created_at', 'id'], 'descending'),
  toText: bulkJobText,
});

export const bulkJobById = lookup<BulkJobRow>(
  'read_bulk_job',
  `select ${selected(COLUMNS)} from bulk_jobs where id = $1::uuid`,
);

/** The oldest open job of each tenant. */
export const openBulkJobs = lookup<{ readonly id: string }>(
  'read_open_bulk_jobs',
  'select distinct on (tenant_id) id from bulk_jobs where ended_at is null ' +
    'order by tenant_id, created_at, id limit $1::int',
);

export interface BulkJobStanding extends BulkJobRow {
  /** Changed but uncounted instances, as JSON. */
  readonly uncounted: string;
}

export const bulkJobStanding = lookup<BulkJobStanding>(
  'read_bulk_job_standing',
  `select ${selected(COLUMNS)}, (select coalesce(json_agg(instance_id), '[]') from bulk_changes ` +
    'where job_id = id)::text as uncounted from bulk_jobs where id = $1::uuid',
);

export function bulkJobText({
  place: _place,
  traceparent: _trace,
  asked_by: _by,
  ...row
}: BulkJobRow): string {
  return JSON.stringify({ ...row, request: JSON.parse(row.request) });
}
