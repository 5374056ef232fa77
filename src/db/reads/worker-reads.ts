/**
 * External work as lists and counts: tasks, their claim histories, and the workers that poll. Reads
 * only. A task that was withdrawn is neither listed nor counted, but its history stays readable
 * (docs/limits.md).
 */

import { TASK_STATES, type TaskState } from '../../core/states.js';
import { isoTime, type UnixMs } from '../../core/time.js';
import { Conditions, IS_PRESENT, type PageBounds, type Query } from './query.js';
import type { Page, Reader } from './reader.js';
import { type TaskWireRow, taskText } from './wire.js';

/** What tasks must have; absent means any, and so does an empty list. */
export interface TaskFilter {
  readonly tenant?: string | undefined;
  readonly states?: readonly TaskState[] | undefined;
  readonly handlerName?: string | undefined;
  readonly workerId?: string | undefined;
  readonly queueName?: string | undefined;
}

/** `WorkerInfo` without `alive`. */
export interface WorkerRow {
  readonly worker_id: string;
  readonly handlers: readonly string[];
  readonly queues: readonly string[];
  readonly version: string | null;
  readonly last_seen_at: string;
  readonly in_flight: number;
}

/** `TaskStats`. */
export interface TaskCounts {
  readonly by_state: Readonly<Record<TaskState, number>>;
  readonly by_handler: Readonly<Record<string, Readonly<Record<TaskState, number>>>>;
  /** Those that hold a claim. */
  readonly active_workers: readonly string[];
}

const TASK_COLUMNS =
  't.id, t.instance_id, t.block_id, t.handler_name, t.queue_name, t.params, t.overlay, ' +
  't.attempt, t.timeout_ms, t.state, t.worker_id, t.claim_epoch, t.claimed_at, t.heartbeat_at, ' +
  't.completed_at, t.output, t.error_message, t.error_retryable, t.checkpoint_seq, ' +
  't.resume_checkpoint, t.created_at, i.data, i.config, i.traceparent';

export const TASK_SQL = {
  history:
    'select t.tenant_id, t.history from worker_tasks t join instances i on i.id = t.instance_id ' +
    `where t.id = $1::uuid and ${IS_PRESENT}`,
} as const;

const CHEAPER_LIST =
  'name the tenant, ask for pending or claimed tasks only, or use a smaller offset';
const CHEAPER_COUNTS = 'count the tasks of one tenant, or list those that are pending or claimed';
const CHEAPER_LOOKUP = 'try again later';

export class WorkerReads {
  readonly #reader: Reader;

  constructor(reader: Reader) {
    this.#reader = reader;
  }

  /** `WorkerTask` records, newest first. */
  tasks(filter: TaskFilter, bounds: PageBounds): Promise<Page> {
    return this.#reader.page<TaskWireRow>({
      query: taskListQuery(filter, bounds),
      toText: taskText,
      cheaper: CHEAPER_LIST,
    });
  }

  /** The `WorkerAttempt` records of a task, oldest first; undefined when the tenant has no such. */
  async attempts(
    taskId: string,
    tenant: string,
    { offset, limit }: PageBounds,
  ): Promise<Page | undefined> {
    const [row] = await this.#reader.rows<{ tenant_id: string; history: string }>({
      name: 'reads_task_history',
      text: TASK_SQL.history,
      values: [taskId],
      cheaper: CHEAPER_LOOKUP,
    });
    if (row === undefined || (tenant !== '' && row.tenant_id !== tenant)) return undefined;
    const entries = JSON.parse(row.history) as unknown[];
    const shown = entries.slice(offset, offset + (limit ?? entries.length));
    return { text: JSON.stringify(shown), count: shown.length, isCut: false };
  }

  /** Reads every task of the tenant: a report, not a gauge. */
  async counts(tenant: string | undefined): Promise<TaskCounts> {
    const rows = await this.#reader.rowsOf<{
      state: TaskState;
      handler_name: string;
      tasks: number;
    }>(taskCountsQuery(tenant), CHEAPER_COUNTS);
    const workers = await this.#reader.rowsOf<{ worker_id: string }>(
      activeWorkersQuery(tenant),
      CHEAPER_COUNTS,
    );
    const byState = noTasks();
    const byHandler = new Map<string, Record<TaskState, number>>();
    for (const { state, handler_name: handler, tasks } of rows) {
      byState[state] += tasks;
      const ofHandler = byHandler.get(handler) ?? noTasks();
      ofHandler[state] = tasks;
      byHandler.set(handler, ofHandler);
    }
    return {
      by_state: byState,
      by_handler: Object.fromEntries(byHandler),
      active_workers: workers.map((worker) => worker.worker_id),
    };
  }

  /** @param seenSince workers that polled last before it are left out; null: none is */
  workers(tenant: string | undefined, seenSince: UnixMs | null): Promise<WorkerRow[]> {
    return this.#reader.rowsOf<WorkerRow>(workersQuery(tenant, seenSince), CHEAPER_LOOKUP);
  }

  /** Names that workers have polled for, in order. */
  async handlerNames(tenant: string | undefined): Promise<string[]> {
    const rows = await this.#reader.rowsOf<{ handler_name: string }>(
      handlerNamesQuery(tenant),
      CHEAPER_LOOKUP,
    );
    return rows.map((row) => row.handler_name);
  }
}

function noTasks(): Record<TaskState, number> {
  const counts = TASK_STATES.map((state) => [state, 0]);
  return Object.fromEntries(counts) as Record<TaskState, number>;
}

const isOpen = (state: TaskState) => state === 'pending' || state === 'claimed';

/**
 * Walks `worker_tasks_by_tenant` in its order. Tasks that are still open have a table of their own,
 * in which a few of them are found at once behind a long history.
 */
export function taskListQuery(filter: TaskFilter, bounds: PageBounds): Query {
  const { tenant, states = [], handlerName, workerId, queueName } = filter;
  const conditions = new Conditions();
  conditions.add('not t.withdrawn');
  conditions.add(IS_PRESENT);
  if (tenant) conditions.add(`t.tenant_id = ${conditions.param(tenant)}::text`);
  if (states.length > 0) conditions.add(`t.state = any(${conditions.param(states)}::text[])`);
  if (handlerName) conditions.add(`t.handler_name = ${conditions.param(handlerName)}::text`);
  if (workerId) conditions.add(`t.worker_id = ${conditions.param(workerId)}::text`);
  if (queueName) conditions.add(`t.queue_name = ${conditions.param(queueName)}::text`);
  const open =
    states.length > 0 && states.every(isOpen) ? 'join open_tasks o on o.task_id = t.id' : '';
  return conditions.query(
    `select ${TASK_COLUMNS} from worker_tasks t join instances i on i.id = t.instance_id ${open} ` +
      `${conditions.where} order by t.created_at desc, t.id desc ${conditions.page(bounds)}`,
  );
}

export function taskCountsQuery(tenant: string | undefined): Query {
  const conditions = new Conditions();
  conditions.add('not withdrawn');
  if (tenant) conditions.add(`tenant_id = ${conditions.param(tenant)}::text`);
  return conditions.query(
    'select state, handler_name, count(*) as tasks from worker_tasks ' +
      `${conditions.where} group by state, handler_name order by handler_name, state`,
  );
}

/** The claimed tasks are among the open ones, which are few beside all tasks that ever were. */
const CLAIMED = 'from open_tasks o join worker_tasks t on t.id = o.task_id';

function claimedOf(conditions: Conditions, tenant: string | undefined): void {
  conditions.add("t.state = 'claimed'");
  if (tenant) conditions.add(`o.tenant_id = ${conditions.param(tenant)}::text`);
}

export function activeWorkersQuery(tenant: string | undefined): Query {
  const conditions = new Conditions();
  claimedOf(conditions, tenant);
  return conditions.query(
    `select distinct t.worker_id ${CLAIMED} ${conditions.where} order by t.worker_id`,
  );
}

/**
 * One row per worker and tenant, most recently seen first. A worker that polls without a tenant has
 * the tenant '' and holds claims of every tenant.
 */
export function workersQuery(tenant: string | undefined, seenSince: UnixMs | null): Query {
  const conditions = new Conditions();
  claimedOf(conditions, tenant);
  const claimed = `select t.tenant_id, t.worker_id, count(*) as tasks ${CLAIMED} ${conditions.where}`;
  const own = tenant ? `where w.tenant_id = ${conditions.param(tenant)}::text` : '';
  const alive =
    seenSince === null
      ? ''
      : `having max(w.last_seen_at) >= ${conditions.param(isoTime(seenSince))}::timestamptz`;
  return conditions.query(
    `with claimed as (${claimed} group by t.tenant_id, t.worker_id) ` +
      'select w.worker_id, array_agg(distinct w.handler_name) as handlers, ' +
      "coalesce(array_agg(distinct w.queue_name) filter (where w.queue_name <> ''), '{}') as queues, " +
      '(array_agg(w.version order by w.last_seen_at desc))[1] as version, ' +
      'max(w.last_seen_at) as last_seen_at, ' +
      'coalesce((select sum(c.tasks) from claimed c where c.worker_id = w.worker_id ' +
      "and (w.tenant_id = '' or c.tenant_id = w.tenant_id)), 0)::bigint as in_flight " +
      `from workers w ${own} group by w.tenant_id, w.worker_id ${alive} ` +
      'order by max(w.last_seen_at) desc, w.worker_id, w.tenant_id',
  );
}

export function handlerNamesQuery(tenant: string | undefined): Query {
  const conditions = new Conditions();
  if (tenant) conditions.add(`tenant_id = ${conditions.param(tenant)}::text`);
  return conditions.query(
    `select distinct handler_name from workers ${conditions.where} order by handler_name`,
  );
}
