/** Lists of rate limits and tenants, limits of tenants, and the rows that count against them. */

import { invalid } from '../../../src/base/errors.js';
import { pageCursor, placeIn } from '../../../src/core/page-cursor.js';
import { filtersOf } from '../../../src/db/reads/filters.js';
import { list } from '../../../src/db/reads/list.js';
import { lookup } from '../../../src/db/reads/lookup.js';
import type { PageRequest } from '../../../src/db/reads/reader.js';
import { type TenantRow, tenantsText } from '../../../src/db/reads/tenant-reads.js';
import { columnsBut, columnsOf, type StoredRow, selected } from '../../../src/db/table.js';
import { TENANT_LIMITS } from '../../catalog/tables.js';
import { RATE_LIMITS } from '../tables.js';

/** `RateLimit` records by tenant and key, in the order of code points. */
export const rateLimitList = list({
  columns: 'tenant_id, limit_key as key, max_count, window_seconds, updated_at',
  from: 'rate_limits',
  by: filtersOf(RATE_LIMITS, ['tenant_id']),
  order: 'tenant_id collate "C", limit_key collate "C"',
});

export const ownRateLimit = lookup<StoredRow<typeof RATE_LIMITS>>(
  'reads_rate_limit',
  `select ${selected(columnsBut(RATE_LIMITS))} from rate_limits where id = $1::uuid`,
);

/** The patterns of a tenant. */
export const ratePatterns = lookup<StoredRow<typeof RATE_LIMITS>>(
  'reads_rate_patterns',
  `select ${selected(columnsBut(RATE_LIMITS))} from rate_limits where tenant_id = $1::text ` +
    "and strpos(limit_key, '*') > 0",
);

/** Every known tenant has rows in one of these tables. */
export const TENANTS_TEXT = tenantsText(['sequences', 'instances', 'api_keys', 'tenant_limits']);
const ORDER = 'tenants.tenant_id';

/** `Tenant` records. @throws EngineError 400 for a cursor of another list */
export function tenantList(bounds: {
  readonly limit: number;
  readonly cursor?: string | undefined;
}): PageRequest<TenantRow> {
  const place = bounds.cursor === undefined ? [''] : placeIn(ORDER, ['text'], bounds.cursor);
  if (place === undefined) {
    throw invalid('cursor is not one that an earlier page of this list gave');
  }
  return {
    query: { text: TENANTS_TEXT, values: [...place, bounds.limit] },
    toText: (row) => JSON.stringify(row),
    cheaper: 'ask for a smaller limit',
    cursorAfter: ({ tenant_id }) => pageCursor(ORDER, [tenant_id]),
  };
}

const LIMIT_COLUMNS = columnsOf(TENANT_LIMITS, 'tenant_id', 'limits', 'set_at');
export type StoredLimitsRow = StoredRow<typeof TENANT_LIMITS, (typeof LIMIT_COLUMNS)[number]>;

export const tenantLimitRows = lookup<StoredLimitsRow>(
  'reads_tenant_limits_after',
  `select ${selected(LIMIT_COLUMNS)} from tenant_limits where tenant_id > $1::text ` +
    'order by tenant_id limit $2::bigint',
);

export const tenantLimitRow = lookup<StoredLimitsRow>(
  'reads_tenant_limits_get',
  `select ${selected(LIMIT_COLUMNS)} from tenant_limits where tenant_id = $1::text`,
);

interface Counted {
  readonly count: number;
}

export const scheduleCount = lookup<Counted>(
  'reads_tenant_schedule_count',
  'select count(*)::integer as count from (select from cron_schedules where tenant_id = $1::text ' +
    'limit $2::bigint) s',
);

/** Those from before migration 0040 are in a table of their own (`actors/instance/old-tables.ts`). */
const OPEN_TASKS =
  '(select handler_name, tenant_id, rank from worker_tasks union all ' +
  'select handler_name, tenant_id, rank from open_tasks)';
const IS_OPEN = 'o.rank is not null';

/**
 * Open tasks of the tenant `$1`, up to `$2`. The index begins with the handler, so the statement
 * steps from handler to handler and reads no task of another tenant.
 */
export const openTaskCount = lookup<Counted>(
  'reads_tenant_open_task_count',
  'with recursive handlers as (' +
    `(select handler_name from ${OPEN_TASKS} o where ${IS_OPEN} order by handler_name limit 1) union all ` +
    `select (select o.handler_name from ${OPEN_TASKS} o where ${IS_OPEN} and o.handler_name > h.handler_name ` +
    'order by o.handler_name limit 1) from handlers h where h.handler_name is not null) ' +
    'select count(*)::integer as count from (select from handlers h cross join lateral (' +
    `select from ${OPEN_TASKS} o where ${IS_OPEN} and o.handler_name = h.handler_name and o.tenant_id = $1::text ` +
    'limit $2::bigint) t limit $2::bigint) found',
);

export const instancesThere = lookup<{ readonly id: string }>(
  'reads_tenant_instances_there',
  'select id from instances where id = any($1::uuid[]) and tenant_id = $2::text',
);
