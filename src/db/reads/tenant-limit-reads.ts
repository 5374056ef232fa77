/** What of tenants is counted against their limits. Reads only. */

import { lookup } from './lookup.js';

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
 * Open tasks of the tenant `$1`, up to `$2`. The index begins with the handler: it is entered once for each
 * handler that has any, so that no task of another tenant is read.
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

/** Which of the instances `$1` the tenant `$2` has. */
export const instancesThere = lookup<{ readonly id: string }>(
  'reads_tenant_instances_there',
  'select id from instances where id = any($1::uuid[]) and tenant_id = $2::text',
);
