/** The limits that the operator has set for tenants, and the rows that count against them. */

import { lookup } from '../../../src/db/reads/lookup.js';
import { columnsOf, selected } from '../../../src/db/table.js';
import { TENANT_LIMITS } from '../../catalog/tables.js';

export interface StoredLimitsRow {
  readonly tenant_id: string;
  /** JSON. */
  readonly limits: string;
  readonly set_at: string;
}

const COLUMNS = columnsOf(TENANT_LIMITS, 'tenant_id', 'limits', 'set_at');

/** By tenant, after `$1`. */
export const tenantLimitRows = lookup<StoredLimitsRow>(
  'reads_tenant_limits_after',
  `select ${selected(COLUMNS)} from tenant_limits where tenant_id > $1::text ` +
    'order by tenant_id limit $2::bigint',
);

export const tenantLimitRow = lookup<StoredLimitsRow>(
  'reads_tenant_limits_get',
  `select ${selected(COLUMNS)} from tenant_limits where tenant_id = $1::text`,
);

interface Counted {
  readonly count: number;
}

/** Schedules of the tenant `$1`, up to `$2`. */
export const scheduleCount = lookup<Counted>(
  'reads_tenant_schedule_count',
  'select count(*)::integer as count from (select from cron_schedules where tenant_id = $1::text ' +
    'limit $2::bigint) s',
);

/**
 * Open tasks of the tenant `$1`, up to `$2`. The index begins with the handler: one step for each handler
 * with open tasks, so that no task of another tenant is read.
 */
export const openTaskCount = lookup<Counted>(
  'reads_tenant_open_task_count',
  'with recursive handlers as (' +
    '(select handler_name from open_tasks order by handler_name limit 1) union all ' +
    'select (select o.handler_name from open_tasks o where o.handler_name > h.handler_name ' +
    'order by o.handler_name limit 1) from handlers h where h.handler_name is not null) ' +
    'select count(*)::integer as count from (select from handlers h cross join lateral (' +
    'select from open_tasks o where o.handler_name = h.handler_name and o.tenant_id = $1::text ' +
    'limit $2::bigint) t limit $2::bigint) found',
);

/** The ids among `$1` of instances of the tenant `$2`. */
export const instancesThere = lookup<{ readonly id: string }>(
  'reads_tenant_instances_there',
  'select id from instances where id = any($1::uuid[]) and tenant_id = $2::text',
);
