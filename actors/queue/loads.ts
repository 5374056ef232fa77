/** Statements that read waiting tasks. */

import { isoTime, type UnixMs } from '../../src/base/time.js';
import type { StoredRow } from '../../src/db/table.js';
import { IS_OPEN, OPEN_TASKS } from '../instance/old-tables.js';
import type { WORKER_TASKS } from '../instance/task-tables.js';
import type { Queries } from '../runtime/queries.js';

type Columns = 'id' | 'instance_id' | 'tenant_id' | 'queue_name' | 'created_at';
export type OpenTaskRow = StoredRow<typeof WORKER_TASKS, Columns> & { readonly rank: number };

export interface PollScope {
  readonly handler: string;
  /** '' for all. */
  readonly tenant: string;
  /** '' for any queue name or none. */
  readonly queue: string;
}

/** A position in the order of offers: by priority, then by age. */
export interface TaskPlace {
  readonly rank: number;
  readonly createdAt: UnixMs;
  readonly id: string;
}

/** `$2 … $4` is the position of the last task read. */
function readyTasks(condition: string): string {
  return (
    'select o.id, o.instance_id, o.tenant_id, o.queue_name, o.rank, o.created_at ' +
    `from ${OPEN_TASKS} o where ${IS_OPEN} and o.handler_name = $1 ${condition}and o.claimed_at is null and ` +
    '(o.rank, o.created_at, o.id) > ($2::smallint, $3::timestamptz, $4::uuid) ' +
    'order by o.rank, o.created_at, o.id limit $5'
  );
}

export const QUEUE_SQL = {
  // Each kind of poll has an index with exactly its conditions and order.
  readyTasks: readyTasks(''),
  readyTasksOfTenant: readyTasks('and o.tenant_id = $6 '),
  readyTasksOfQueue: readyTasks('and o.queue_name = $6 '),
  readyTasksOfTenantQueue: readyTasks('and o.tenant_id = $6 and o.queue_name = $7 '),
} as const;

export function queueLoads(queries: Queries) {
  const sql = queries.of(QUEUE_SQL);
  return {
    readyTasks(scope: PollScope, after: TaskPlace, limit: number): Promise<OpenTaskRow[]> {
      const { handler, tenant, queue } = scope;
      const ofAll = queue === '' ? 'readyTasks' : 'readyTasksOfQueue';
      const ofTenant = queue === '' ? 'readyTasksOfTenant' : 'readyTasksOfTenantQueue';
      const place = [after.rank, isoTime(after.createdAt), after.id];
      const names = [tenant, queue].filter((text) => text !== '');
      return sql.all(tenant === '' ? ofAll : ofTenant, [handler, ...place, limit, ...names]);
    },
  };
}

export type QueueLoads = ReturnType<typeof queueLoads>;
