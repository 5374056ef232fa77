/**
 * Reads of tasks, attempts, workers and handler names. A withdrawn task is neither listed nor
 * counted, but its history stays readable (docs/limits.md).
 */

import { TASK_STATES, type TaskState } from '../../../schema/states.js';
import type { TaskStats, WorkerInfo } from '../../../schema/worker.js';
import { valueFor } from '../../../src/base/quota/last-used.js';
import { isoTime, type UnixMs } from '../../../src/base/time.js';
import { BUILTIN_NAMES } from '../../../src/core/builtin.js';
import { filtersOf, type Narrowing, narrow, timeFilters } from '../../../src/db/reads/filters.js';
import { list } from '../../../src/db/reads/list.js';
import { lookup, rowOf, TRY_LATER } from '../../../src/db/reads/lookup.js';
import { orderBy } from '../../../src/db/reads/order.js';
import { Conditions, IS_PRESENT, type PageBounds } from '../../../src/db/reads/query.js';
import type { PageRequest, Reader } from '../../../src/db/reads/reader.js';
import { columnsOf, type StoredRow, selected } from '../../../src/db/table.js';
import {
  type FrontOperations,
  jsonReply,
  listBy,
  listQuery,
  listTenant,
  pageReply,
} from '../../../src/http/operation.js';
import { SEQUENCE_NAME } from '../../instance/front/instance-reads.js';
import { POLLERS } from '../../instance/front/pollers.js';
import {
  IN_ITS_BRANCH,
  IS_OPEN,
  OPEN_TASKS,
  TASKS,
  TASKS_OF_TENANT,
} from '../../instance/old-tables.js';
import { WORKER_TASKS } from '../../instance/task-tables.js';
import {
  TASK_COLUMNS,
  TASK_INSTANCE_COLUMNS,
  type TaskWireRow,
  taskText,
} from '../../instance/wire-texts.js';
import { historyOf } from '../../instance/worker-task.js';
import { WORKERS } from '../tables.js';

const operations = {
  'workers.tasks': listBy(taskList),
  'workers.stats': async ({ reads }, call) => {
    const tenant = listTenant(call, call.query.tenant_id);
    return jsonReply(JSON.stringify(await taskCounts(reads, tenant)));
  },
  'workers.attempts': async ({ reads }, call) => {
    const { query, params, tenant } = call;
    const task = await rowOf(reads, taskHistory, 'worker task', params.id, tenant);
    const entries = historyOf(task);
    const shown = entries.slice(query.offset, query.offset + (query.limit ?? entries.length));
    const text = JSON.stringify(shown);
    return pageReply(call, query, { text, count: shown.length, isCut: false, isWalked: false });
  },
  'workers.list': async ({ reads, now }, call) => {
    const { query } = call;
    // The parameter has no upper bound, so the difference may be negative.
    const since = Math.max(0, now() - query.alive_within_secs * 1_000);
    const seenSince = query.include_stale ? null : since;
    const rows = await workers(reads, listTenant(call, query.tenant_id), seenSince);
    const records = rows.map(({ in_flight, ...row }) => ({
      ...row,
      alive: Date.parse(row.last_seen_at) >= since,
      in_flight,
    }));
    return jsonReply(JSON.stringify(records));
  },
  handlers: async ({ reads }, call) => {
    const external = await reads.page(handlerNameList(listQuery(call)));
    const builtin = JSON.stringify([...BUILTIN_NAMES]);
    return jsonReply(`{"builtin":${builtin},"external":${external.text}}`);
  },
} satisfies Partial<FrontOperations>;

export const openQueueFront = () => ({ operations });
const CREATED = timeFilters(WORKER_TASKS, 'created_at', 't');

const FILTERS = {
  ...filtersOf(WORKER_TASKS, ['tenant_id', 'handler_name', 'queue_name', 'worker_id'], 't'),
  sequence_name: SEQUENCE_NAME,
  created_after: CREATED.after,
  created_before: CREATED.before,
};

/** Looks up one row by its key for each scanned row. */
const joined = (table: string, key: string, alias: string) =>
  `join lateral (select * from ${table} ${alias} where ${key} offset 0) ${alias} on true`;

const WITH_INSTANCE = joined('instances', 'i.id = t.instance_id', 'i');

const TASK_LIST = {
  columns: `${selected(TASK_COLUMNS, 't')}, ${selected(TASK_INSTANCE_COLUMNS, 'i')}`,
  always: `not t.withdrawn and ${IS_PRESENT}`,
  walk: {
    alias: 't',
    along: ['tenant_id'],
    within: ['created_after', 'created_before'],
    join: `left ${WITH_INSTANCE}`,
  },
  toText: taskText,
  cheaper: 'name the tenant, ask for pending or claimed tasks only, or use a smaller offset',
} as const;

/** Walks `worker_tasks_ended_by_tenant` and `worker_tasks_open_by_tenant`. */
const allTaskList = list({
  ...TASK_LIST,
  from: `${TASKS_OF_TENANT} t join instances i on i.id = t.instance_id`,
  always: `${TASK_LIST.always} and ${IN_ITS_BRANCH}`,
  walk: { ...TASK_LIST.walk, table: `${TASKS_OF_TENANT} t`, only: IN_ITS_BRANCH },
  by: { ...FILTERS, ...filtersOf(WORKER_TASKS, ['state'], 't') },
  order: orderBy(WORKER_TASKS, ['created_at', 'id'], 'descending', 't'),
});

const OPENED = timeFilters(WORKER_TASKS, 'created_at', 'o');
const WITH_TASK = joined(TASKS, 't.id = o.id', 't');

/** Walks `worker_tasks_open_by_tenant`: open tasks are found quickly beside a long history. */
function openTasks(condition: string) {
  return list({
    ...TASK_LIST,
    from: `${OPEN_TASKS} o ${WITH_TASK} join instances i on i.id = t.instance_id`,
    by: {
      ...FILTERS,
      ...filtersOf(WORKER_TASKS, ['tenant_id'], 'o'),
      created_after: OPENED.after,
      created_before: OPENED.before,
    },
    always: `${TASK_LIST.always} and ${IS_OPEN} and ${condition}`,
    walk: {
      ...TASK_LIST.walk,
      table: `${OPEN_TASKS} o`,
      alias: 'o',
      only: IS_OPEN,
      join: `left ${WITH_TASK} left ${WITH_INSTANCE}`,
    },
    order: orderBy(WORKER_TASKS, ['created_at', 'id'], 'descending', 'o'),
  });
}

const openTaskList = openTasks('true');
const pendingTaskList = openTasks('o.claimed_at is null');
const claimedTaskList = openTasks('o.claimed_at is not null');

type TaskQuery = Narrowing<keyof typeof FILTERS> &
  PageBounds & { readonly state?: readonly TaskState[] | undefined };

export function taskList(query: TaskQuery): PageRequest<TaskWireRow> {
  const states = new Set(query.state);
  if (states.has('completed') || states.has('failed') || states.size === 0) {
    return allTaskList(query);
  }
  const [isPending, isClaimed] = [states.has('pending'), states.has('claimed')];
  if (isPending && isClaimed) return openTaskList(query);
  return isPending ? pendingTaskList(query) : claimedTaskList(query);
}

const HISTORY_COLUMNS = columnsOf(
  WORKER_TASKS,
  ...(['id', 'tenant_id', 'state', 'worker_id', 'claim_epoch'] as const),
  ...(['claimed_at', 'completed_at', 'history'] as const),
);

type HistoryRow = StoredRow<typeof WORKER_TASKS, (typeof HISTORY_COLUMNS)[number]> & {
  readonly state: TaskState;
};

export const taskHistory = lookup<HistoryRow>(
  'reads_task_history',
  `select ${selected(HISTORY_COLUMNS, 't')} from ${TASKS} t ` +
    'join instances i on i.id = t.instance_id ' +
    `where t.id = $1::uuid and ${IS_PRESENT}`,
);

/** Reads every task of the tenant, so it serves reports rather than gauges. */
export async function taskCounts(reads: Reader, tenant: string | undefined): Promise<TaskStats> {
  const cheaper = 'count the tasks of one tenant, or list those that are pending or claimed';
  const all = new Conditions();
  all.add('not withdrawn');
  if (tenant !== undefined) all.add(IN_ITS_BRANCH);
  narrow(all, filtersOf(WORKER_TASKS, ['tenant_id'], 't'), { tenant_id: tenant });
  const rows = await reads.rowsOf<{ state: TaskState; handler_name: string; tasks: number }>(
    all.query(
      `select state, handler_name, count(*) as tasks from ${tenant === undefined ? TASKS : TASKS_OF_TENANT} t ` +
        `${all.where} group by state, handler_name order by handler_name, state`,
    ),
    cheaper,
  );
  const open = new Conditions();
  const workers = await reads.rowsOf<{ worker_id: string }>(
    open.query(`select distinct o.worker_id ${claimed(open, tenant)} order by o.worker_id`),
    cheaper,
  );
  const byState = noTasks();
  const byHandler = new Map<string, Record<TaskState, number>>();
  for (const { state, handler_name: handler, tasks } of rows) {
    byState[state] += tasks;
    valueFor(byHandler, handler, noTasks)[state] = tasks;
  }
  return {
    by_state: byState,
    by_handler: Object.fromEntries(byHandler),
    active_workers: workers.map((worker) => worker.worker_id),
  };
}

function noTasks(): Record<TaskState, number> {
  const counts = TASK_STATES.map((state) => [state, 0]);
  return Object.fromEntries(counts) as Record<TaskState, number>;
}

/** Open tasks, which include the claimed ones, are few compared with all tasks. */
function claimed(conditions: Conditions, tenant: string | undefined): string {
  conditions.add(`${IS_OPEN} and o.claimed_at is not null`);
  narrow(conditions, filtersOf(WORKER_TASKS, ['tenant_id'], 'o'), { tenant_id: tenant });
  return `from ${OPEN_TASKS} o ${conditions.where}`;
}

/**
 * One row per worker and tenant, most recently seen first. A worker that polls without a tenant has
 * the tenant '' and may have claims of every tenant.
 *
 * @param seenSince omits workers with an earlier last poll; null: omits none
 */
export function workers(
  reads: Reader,
  tenant: string | undefined,
  seenSince: UnixMs | null,
): Promise<Omit<WorkerInfo, 'alive'>[]> {
  const conditions = new Conditions();
  const claims = `select o.tenant_id, o.worker_id, count(*) as tasks ${claimed(conditions, tenant)}`;
  const own = tenant ? `where w.tenant_id = ${conditions.param(tenant)}::text` : '';
  const alive =
    seenSince === null
      ? ''
      : `having max(w.last_seen_at) >= ${conditions.param(isoTime(seenSince))}::timestamptz`;
  const query = conditions.query(
    `with claimed as (${claims} group by o.tenant_id, o.worker_id) ` +
      'select w.worker_id, array_agg(distinct w.handler_name) as handlers, ' +
      "coalesce(array_agg(distinct w.queue_name) filter (where w.queue_name <> ''), '{}') as queues, " +
      '(array_agg(w.version order by w.last_seen_at desc))[1] as version, ' +
      'max(w.last_seen_at) as last_seen_at, ' +
      'coalesce((select sum(c.tasks) from claimed c where c.worker_id = w.worker_id ' +
      "and (w.tenant_id = '' or c.tenant_id = w.tenant_id)), 0)::bigint as in_flight " +
      `from ${POLLERS} w ${own} group by w.tenant_id, w.worker_id ${alive} ` +
      'order by max(w.last_seen_at) desc, w.worker_id, w.tenant_id',
  );
  return reads.rowsOf(query, TRY_LATER);
}

export const handlerNameList = list({
  columns: 'distinct handler_name',
  from: `${POLLERS} w`,
  by: filtersOf(WORKERS, ['tenant_id'], 'w'),
  order: 'handler_name',
  toText: (row: StoredRow<typeof WORKERS, 'handler_name'>) => JSON.stringify(row.handler_name),
  cheaper: TRY_LATER,
});
