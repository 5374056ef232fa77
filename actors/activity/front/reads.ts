/**
 * Aggregates over a bounded number of rows. Failed instances walk `dead_letters_by_tenant`, open tasks
 * `open_tasks_by_tenant`, and outcomes of a release `release_outcomes_by_release` in their order; the latter look up
 * each instance by key.
 */

import {
  ACTIVITY_ROWS_MAX,
  FAILURE_GROUPS_MAX,
  FAILURES_LOOKED_AT_MAX,
  type FailureGroup,
  OUTCOMES_LOOKED_AT_MAX,
  QUEUED_TASKS_LOOKED_AT_MAX,
} from '../../../schema/statistics.js';
import { isoTime, type UnixMs } from '../../../src/base/time.js';
import {
  type Filter,
  filtersOf,
  isAsked,
  type Narrowing,
  narrow,
  timeFilters,
} from '../../../src/db/reads/filters.js';
import { Conditions, isPresent, type Query } from '../../../src/db/reads/query.js';
import type { Reader } from '../../../src/db/reads/reader.js';
import { SEQUENCES } from '../../catalog/tables.js';
import { DEAD_LETTERS } from '../../instance/tables.js';
import { OPEN_TASKS } from '../../instance/task-tables.js';
import type { StoredMinute } from '../core/activity.js';
import { ACTIVITY } from '../tables.js';

export interface Extent {
  readonly lookedAt: number;
  readonly isComplete: boolean;
}

/** Calls `take` with the first rows; one more shows that there are more. */
async function upTo<Row>(
  reads: Reader,
  query: Query,
  cheaper: string,
  max: number,
  take: (row: Row) => void,
): Promise<Extent> {
  let found = 0;
  await reads.each<Row>(query, cheaper, (row) => {
    found += 1;
    if (found <= max) take(row);
  });
  return { lookedAt: Math.min(found, max), isComplete: found <= max };
}

// ---------------------------------------------------------------- failures

const FAILED = timeFilters(DEAD_LETTERS, 'failed_at', 'd');
const FAILURE_FILTERS = {
  ...filtersOf(DEAD_LETTERS, ['namespace'], 'd'),
  failed_after: FAILED.after,
  failed_before: FAILED.before,
};
const NAME_FILTERS = {
  ...filtersOf(SEQUENCES, ['tenant_id', 'namespace']),
  sequence_name: { column: 'sequences.name', type: 'text' } satisfies Filter,
};
export type FailuresAsked = Narrowing<keyof typeof FAILURE_FILTERS | keyof typeof NAME_FILTERS>;

export interface FailuresFound extends Extent {
  /** The largest first, then those with the newest failure; one more than a response has. */
  readonly groups: readonly FailureGroup[];
}

/** The newest failed instances by reason, up to a bound. @throws EngineError 503 */
export async function failuresByReason(
  reads: Reader,
  asked: FailuresAsked,
): Promise<FailuresFound> {
  // There is at least one row, without a group when there is none.
  const rows = await reads.rowsOf<{ looked_at: number } & (FailureGroup | { count: null })>(
    failuresQuery(asked),
    'name the tenant',
  );
  const found = rows[0]?.looked_at ?? 0;
  return {
    groups: rows.flatMap(({ looked_at: _, ...row }) => (row.count === null ? [] : [row])),
    lookedAt: Math.min(found, FAILURES_LOOKED_AT_MAX),
    isComplete: found <= FAILURES_LOOKED_AT_MAX,
  };
}

const GROUPED_BY = 'namespace, sequence_id, failure_code, block_id, handler, folded_reason';

/**
 * One row beyond the bound shows that there are more. Names of sequences, and the newest message of a group, are read
 * for the groups only.
 */
export function failuresQuery(asked: FailuresAsked): Query {
  const walked = new Conditions();
  narrow(walked, filtersOf(DEAD_LETTERS, ['tenant_id']), asked);
  const conditions = new Conditions(walked.values);
  narrow(conditions, FAILURE_FILTERS, asked);
  conditions.add(`d.failure_code is not null and ${isPresent('d')}`);
  if (isAsked(asked.sequence_name)) {
    const named = new Conditions(walked.values);
    narrow(named, NAME_FILTERS, asked);
    conditions.add(`d.sequence_id = any(array(select id from sequences ${named.where}))`);
  }
  const newest = 'order by failed_at desc, created_at desc, instance_id desc';
  return walked.query(
    `with walked as materialized (select instance_id, created_at, failed_at, ${GROUPED_BY} ` +
      `from dead_letters ${walked.where} ` +
      // The order of the index, also without a tenant: then it has the first tenants.
      `order by tenant_id, created_at desc, instance_id desc limit ${FAILURES_LOOKED_AT_MAX + 1}), ` +
      'groups as materialized (select count(*)::integer as count, min(failed_at) as first_at, ' +
      `max(failed_at) as last_at, (array_agg(instance_id ${newest}))[1] as example, ${GROUPED_BY} ` +
      `from (select * from walked limit ${FAILURES_LOOKED_AT_MAX}) d ${conditions.where} ` +
      `group by ${GROUPED_BY} order by count desc, last_at desc limit ${FAILURE_GROUPS_MAX + 1}) ` +
      'select (select count(*)::integer from walked) as looked_at, g.* ' +
      'from (values (1)) one left join (' +
      'select g.namespace, g.sequence_id, s.name as sequence_name, s.version, g.block_id, g.handler, ' +
      'g.failure_code as code, g.folded_reason as reason, g.count, g.first_at, g.last_at, ' +
      'g.example as example_instance_id, d.reason as example_message from groups g ' +
      'cross join lateral (select name, version from sequences where id = g.sequence_id offset 0) s ' +
      'cross join lateral (select reason from dead_letters where instance_id = g.example offset 0) d' +
      ') g on true order by g.count desc, g.last_at desc',
  );
}

// ---------------------------------------------------------------- queues

export interface QueueRow {
  readonly handler: string;
  readonly queue: string | null;
  readonly waiting: number;
  readonly claimed: number;
  readonly oldest_waiting_since: string | null;
  readonly looked_at: number;
}

/** The oldest open tasks by handler and queue. @throws EngineError 503 */
export function openTasksByQueue(reads: Reader, tenant: string | undefined): Promise<QueueRow[]> {
  return reads.rowsOf<QueueRow>(openTasksQuery(tenant), 'name the tenant');
}

/** Oldest first, so that the age of the oldest waiting task is exact. */
export function openTasksQuery(tenant: string | undefined): Query {
  const conditions = new Conditions();
  narrow(conditions, filtersOf(OPEN_TASKS, ['tenant_id']), { tenant_id: tenant });
  return conditions.query(
    'select handler_name as handler, queue_name as queue, ' +
      'count(*) filter (where claimed_at is null) as waiting, ' +
      'count(*) filter (where claimed_at is not null) as claimed, ' +
      'min(created_at) filter (where claimed_at is null) as oldest_waiting_since, ' +
      'sum(count(*)) over ()::bigint as looked_at from (' +
      `select handler_name, queue_name, claimed_at, created_at from open_tasks ${conditions.where} ` +
      `order by tenant_id desc, created_at, task_id limit ${QUEUED_TASKS_LOOKED_AT_MAX + 1}) o ` +
      'group by handler_name, queue_name order by handler_name, queue_name nulls first',
  );
}

export interface ServerRow {
  readonly handler: string;
  /** '': tasks of every queue and none. */
  readonly queue: string;
  readonly workers: readonly string[];
}

/** Workers seen recently, by handler and queue. @throws EngineError 503 */
export function workersByQueue(
  reads: Reader,
  tenant: string | undefined,
  since: UnixMs,
): Promise<ServerRow[]> {
  const conditions = new Conditions();
  // A worker that polls without a tenant takes tasks of every tenant.
  if (tenant) conditions.add(`tenant_id in (${conditions.param(tenant)}::text, '')`);
  conditions.add(`last_seen_at >= ${conditions.param(isoTime(since))}::timestamptz`);
  const query = conditions.query(
    'select handler_name as handler, queue_name as queue, array_agg(distinct worker_id) as workers ' +
      `from workers ${conditions.where} group by handler_name, queue_name`,
  );
  return reads.rowsOf<ServerRow>(query, 'name the tenant');
}

// ---------------------------------------------------------------- activity

/** Calls `take` with the newest rows, up to the bound of a response. @throws EngineError 503 */
export function storedMinutes(
  reads: Reader,
  tenant: string | undefined,
  since: UnixMs,
  take: (minute: StoredMinute) => void,
): Promise<Extent> {
  const cheaper = 'name the tenant, or a later since';
  return upTo(reads, minutesQuery(tenant, since), cheaper, ACTIVITY_ROWS_MAX, take);
}

export function minutesQuery(tenant: string | undefined, since: UnixMs): Query {
  const conditions = new Conditions();
  narrow(conditions, filtersOf(ACTIVITY, ['tenant_id']), { tenant_id: tenant });
  conditions.add(`at >= ${conditions.param(isoTime(since))}::timestamptz`);
  return conditions.query(
    'select at, created, completed, failed, cancelled, durations ' +
      `from activity ${conditions.where} order by at desc limit ${ACTIVITY_ROWS_MAX + 1}`,
  );
}

// ---------------------------------------------------------------- releases

export interface OutcomeRow {
  readonly at: string;
  readonly sequence_id: string;
  readonly ended: number;
  readonly failed: number;
  readonly cancelled: number;
  readonly p50: number;
  readonly p95: number;
  readonly looked_at: number;
}

/** @param since where the first interval begins */
export function outcomesOverTime(
  reads: Reader,
  release: string,
  since: UnixMs,
  stepSecs: number,
): Promise<OutcomeRow[]> {
  return reads.rowsOf<OutcomeRow>(
    outcomesQuery(release, since, stepSecs),
    'ask again for a larger step',
  );
}

export function outcomesQuery(release: string, since: UnixMs, stepSecs: number): Query {
  const conditions = new Conditions();
  const place = conditions.param(release);
  const from = `${conditions.param(isoTime(since))}::timestamptz`;
  const step = `make_interval(secs => ${conditions.param(stepSecs)}::double precision)`;
  const duration = 'extract(epoch from i.updated_at - o.created_at) * 1000';
  const percentile = (part: number) =>
    `coalesce(percentile_cont(${part}) within group (order by ${duration}), 0)::double precision`;
  return conditions.query(
    `select date_bin(${step}, o.created_at, ${from}) as at, o.sequence_id, count(*) as ended, ` +
      "count(*) filter (where o.state = 'failed') as failed, " +
      "count(*) filter (where o.state = 'cancelled') as cancelled, " +
      `${percentile(0.5)} as p50, ${percentile(0.95)} as p95, ` +
      'sum(count(*)) over ()::bigint as looked_at from (' +
      'select instance_id, sequence_id, state, created_at from release_outcomes ' +
      `where release_id = ${place}::uuid and created_at >= ${from} ` +
      `order by created_at desc limit ${OUTCOMES_LOOKED_AT_MAX + 1}) o left join lateral ` +
      '(select updated_at from instances where id = o.instance_id offset 0) i on true ' +
      'group by 1, o.sequence_id order by 1, o.sequence_id',
  );
}
