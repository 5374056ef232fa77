/**
 * What is summed up over many rows. Reads only, and a bounded number of rows: failed instances walk
 * `dead_letters_by_tenant` and open tasks `open_tasks_by_tenant` in their order, the outcomes of a release
 * `release_outcomes_by_release`; instances are fetched by their keys, one for each row.
 */

import type { Failure } from '../../../schema/failure.js';
import {
  ACTIVITY_ROWS_MAX,
  FAILURES_LOOKED_AT_MAX,
  OUTCOMES_LOOKED_AT_MAX,
  QUEUED_TASKS_LOOKED_AT_MAX,
} from '../../../schema/statistics.js';
import type { StoredMinute } from '../../core/activity.js';
import type { FailedRow } from '../../core/failure-groups.js';
import { isoTime, type UnixMs } from '../../core/time.js';
import { type Filter, filtersOf, type Narrowing, narrow, timeFilters } from './filters.js';
import { Conditions, IS_PRESENT, type Query } from './query.js';
import type { Reader } from './reader.js';

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

const FAILED = timeFilters('dead_letters', 'failed_at', 'd');
const FAILURE_FILTERS = {
  ...filtersOf('instances', ['namespace'], 'i'),
  sequence_name: { column: 's.name', type: 'text' } satisfies Filter,
  failed_after: FAILED.after,
  failed_before: FAILED.before,
};
export type FailuresAsked = Narrowing<keyof typeof FAILURE_FILTERS | 'tenant_id'>;

/** A failed instance that was looked at, also one that the filters leave out. */
interface LookedAt extends Omit<FailedRow, keyof Failure> {
  readonly is_match: boolean;
  /** The text of a `Failure`. */
  readonly failure: string;
}

/** Calls `take` with the newest failed instances, of as many as are looked at. @throws EngineError 503 */
export function failedInstances(
  reads: Reader,
  asked: FailuresAsked,
  take: (row: FailedRow) => void,
): Promise<Extent> {
  const max = FAILURES_LOOKED_AT_MAX;
  return upTo<LookedAt>(reads, failedQuery(asked), 'name the tenant', max, (looked) => {
    const { is_match, failure, ...row } = looked;
    if (!is_match) return;
    const { code, message, block_id, handler } = JSON.parse(failure) as Failure;
    take({ ...row, code, message, block_id, handler });
  });
}

/** One row more than are looked at shows that there are more. */
export function failedQuery(asked: FailuresAsked): Query {
  const walked = new Conditions();
  narrow(walked, filtersOf('dead_letters', ['tenant_id']), asked);
  const conditions = new Conditions(walked.values);
  narrow(conditions, FAILURE_FILTERS, asked);
  conditions.add(`i.failure is not null and ${IS_PRESENT}`);
  const matches = `${conditions.all} is true`;
  return walked.query(
    `select ${matches} as is_match, d.instance_id as id, i.namespace, ` +
      `i.sequence_id, s.name as sequence_name, s.version, ` +
      // As a whole: each member that Postgres takes out of it costs as much as all the rest of the row.
      'i.failure, d.failed_at ' +
      `from (select * from dead_letters ${walked.where} ` +
      // The order of the index, also without a tenant: then it is that of the first tenants.
      `order by tenant_id, created_at desc, instance_id desc limit ${FAILURES_LOOKED_AT_MAX + 1}) d ` +
      'left join lateral (select sequence_id, tenant_id, namespace, failure from instances ' +
      'where id = d.instance_id offset 0) i on true ' +
      'left join sequences s on s.id = i.sequence_id',
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

/** The oldest first, so that the age of what waits longest is right however many there are. */
export function openTasksQuery(tenant: string | undefined): Query {
  const conditions = new Conditions();
  narrow(conditions, filtersOf('open_tasks', ['tenant_id']), { tenant_id: tenant });
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

/** Who polls for what, of those seen since. @throws EngineError 503 */
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

/** Calls `take` with the newest, as many as an answer is made of. @throws EngineError 503 */
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
  narrow(conditions, filtersOf('activity', ['tenant_id']), { tenant_id: tenant });
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
