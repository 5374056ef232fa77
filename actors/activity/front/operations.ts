/**
 * Statistics of instances and tasks (docs/operate/statistics.md), each over a bounded number of
 * rows that is read by an index in its order.
 */

import {
  ACTIVITY_ROWS_MAX,
  type Activity,
  FAILURE_GROUPS_MAX,
  FAILURES_LOOKED_AT_MAX,
  type FailureGroup,
  type FailureGroups,
  INTERVALS_MAX,
  OUTCOMES_LOOKED_AT_MAX,
  QUEUED_TASKS_LOOKED_AT_MAX,
  type Queues,
  type ReleaseSeries,
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
import type { FrontKernel, FrontRoom } from '../../../src/http/front-room.js';
import { jsonReply, listQuery, listTenant, type Operation } from '../../../src/http/operation.js';
import { SEQUENCES } from '../../catalog/tables.js';
import { IS_OPEN, OPEN_TASKS } from '../../instance/old-tables.js';
import { DEAD_LETTERS } from '../../instance/tables.js';
import { WORKER_TASKS } from '../../instance/task-tables.js';
import {
  type OpenPolls,
  type Outcomes,
  type QueueServers,
  type QueueTasks,
  queuesOf,
  releasePoints,
} from '../../queue/core/statistics.js';
import type { queueOperations } from '../../queue/room.js';
import { releaseNamed } from '../../release/front/operations.js';
import type { Shards } from '../../runtime/shards.js';
import { ACTIVITY_KEPT_MS } from '../activity.js';
import { ActivityLines, type StoredMinute } from '../core/activity.js';
import { ACTIVITY } from '../tables.js';

/** Each aggregated row has the number of rows read. */
interface LookedAt {
  readonly looked_at: number;
}

const failures: Operation<'instances.failures'> = async (deps, call) => {
  // There is always a row, which has no count if there are no groups.
  const rows = await deps.reads.rowsOf<LookedAt & (FailureGroup | { count: null })>(
    failuresQuery(listQuery(call)),
    'name the tenant',
  );
  const found = rows[0]?.looked_at ?? 0;
  const groups = rows.flatMap(({ looked_at: _, ...row }) => (row.count === null ? [] : [row]));
  const answer: FailureGroups = {
    groups: groups.slice(0, FAILURE_GROUPS_MAX),
    looked_at: Math.min(found, FAILURES_LOOKED_AT_MAX),
    complete: found <= FAILURES_LOOKED_AT_MAX && groups.length <= FAILURE_GROUPS_MAX,
  };
  return jsonReply(JSON.stringify(answer));
};

type Kernel = Pick<FrontKernel<Shards<typeof queueOperations>>, 'client' | 'settings'>;

/** Shards report their waiting polls on demand. */
async function openPolls(
  { client, settings: { shards } }: Kernel,
  tenant: string,
): Promise<OpenPolls[]> {
  const requests = Array.from({ length: shards }, async (_, shard) => {
    const { body } = await client.ask(shard, 'queues.openPolls', tenant, '', undefined);
    return JSON.parse(body) as OpenPolls[];
  });
  return (await Promise.all(requests)).flat();
}

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

const activity: Operation<'activity.get'> = async (deps, call) => {
  const { query } = call;
  const now = deps.now();
  const requested = query.since === undefined ? now - HOUR_MS : Date.parse(query.since);
  const kept = Math.min(now, Math.max(requested, now - ACTIVITY_KEPT_MS));
  const since = kept - (kept % MINUTE_MS);
  const least = Math.ceil((now - since) / INTERVALS_MAX / MINUTE_MS) * MINUTE_MS;
  const stepMs = Math.max(query.step * 1_000, least);
  const lines = new ActivityLines(since, now, stepMs);
  const tenant = listTenant(call, query.tenant_id);
  const cheaper = 'name the tenant, or a later since';
  let found = 0;
  await deps.reads.each<StoredMinute>(minutesQuery(tenant, since), cheaper, (minute) => {
    found += 1;
    if (found <= ACTIVITY_ROWS_MAX) lines.add(minute);
  });
  const answer: Activity = {
    since: isoTime(since),
    step_secs: stepMs / 1_000,
    intervals: lines.intervals,
    complete: found <= ACTIVITY_ROWS_MAX,
  };
  return jsonReply(JSON.stringify(answer));
};

/** The default step results in this many intervals. */
const INTERVALS = 60;

/** A release whose canary has not begun has no points. */
const series: Operation<'releases.series'> = async (deps, call) => {
  const release = await releaseNamed(deps, call);
  const now = deps.now();
  const since = Date.parse(release.canary_started_at ?? isoTime(now));
  const age = Math.max(1, Math.ceil((now - since) / 1_000));
  const requested = call.query.step ?? Math.ceil(age / INTERVALS);
  const step = Math.max(requested, Math.ceil(age / INTERVALS_MAX));
  const rows = await deps.reads.rowsOf<Outcomes & LookedAt>(
    outcomesQuery(release.id, since, step),
    'ask again for a larger step',
  );
  const answer: ReleaseSeries = {
    since: isoTime(since),
    step_secs: step,
    points: releasePoints(rows, release.candidate_sequence_id),
    complete: (rows[0]?.looked_at ?? 0) <= OUTCOMES_LOOKED_AT_MAX,
  };
  return jsonReply(JSON.stringify(answer));
};

export function openActivityFront(kernel: Kernel) {
  return {
    operations: {
      'instances.failures': failures,
      'queues.list': async ({ reads, now }, call) => {
        const tenant = listTenant(call, call.query.tenant_id);
        const since = Math.max(0, now() - call.query.alive_within_secs * 1_000);
        const cheaper = 'name the tenant';
        const tasks = await reads.rowsOf<QueueTasks & LookedAt>(openTasksQuery(tenant), cheaper);
        const servers = await reads.rowsOf<QueueServers>(workersQuery(tenant, since), cheaper);
        const answer: Queues = {
          queues: queuesOf(tasks, servers, await openPolls(kernel, tenant ?? '')),
          complete: (tasks[0]?.looked_at ?? 0) <= QUEUED_TASKS_LOOKED_AT_MAX,
        };
        return jsonReply(JSON.stringify(answer));
      },
      'activity.get': activity,
      'releases.series': series,
    },
  } satisfies FrontRoom;
}

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
type FailureFilter = Narrowing<keyof typeof FAILURE_FILTERS | keyof typeof NAME_FILTERS>;
const GROUPED_BY = 'namespace, sequence_id, failure_code, block_id, handler, folded_reason';

/** One row beyond the bound shows that there are more. */
export function failuresQuery(filter: FailureFilter): Query {
  const walked = new Conditions();
  narrow(walked, filtersOf(DEAD_LETTERS, ['tenant_id']), filter);
  const conditions = new Conditions(walked.values);
  narrow(conditions, FAILURE_FILTERS, filter);
  conditions.add(`d.failure_code is not null and ${isPresent('d')}`);
  if (isAsked(filter.sequence_name)) {
    const named = new Conditions(walked.values);
    narrow(named, NAME_FILTERS, filter);
    conditions.add(`d.sequence_id = any(array(select id from sequences ${named.where}))`);
  }
  const newest = 'order by failed_at desc, created_at desc, instance_id desc';
  return walked.query(
    `with walked as materialized (select instance_id, created_at, failed_at, ${GROUPED_BY} ` +
      `from dead_letters ${walked.where} ` +
      // The order of the index, also without a tenant; the first tenants are then read.
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

/** Oldest tasks first, so that the age of the oldest waiting task is exact. */
function openTasksQuery(tenant: string | undefined): Query {
  const conditions = new Conditions();
  conditions.add(IS_OPEN);
  narrow(conditions, filtersOf(WORKER_TASKS, ['tenant_id'], 'o'), { tenant_id: tenant });
  return conditions.query(
    'select handler_name as handler, queue_name as queue, ' +
      'count(*) filter (where claimed_at is null) as waiting, ' +
      'count(*) filter (where claimed_at is not null) as claimed, ' +
      'min(created_at) filter (where claimed_at is null) as oldest_waiting_since, ' +
      'sum(count(*)) over ()::bigint as looked_at from (' +
      `select handler_name, queue_name, claimed_at, created_at from ${OPEN_TASKS} o ${conditions.where} ` +
      `order by tenant_id desc, created_at, id limit ${QUEUED_TASKS_LOOKED_AT_MAX + 1}) o ` +
      'group by handler_name, queue_name order by handler_name, queue_name nulls first',
  );
}

function workersQuery(tenant: string | undefined, since: UnixMs): Query {
  const conditions = new Conditions();
  // A worker that polls without a tenant takes tasks of every tenant.
  if (tenant) conditions.add(`tenant_id in (${conditions.param(tenant)}::text, '')`);
  conditions.add(`last_seen_at >= ${conditions.param(isoTime(since))}::timestamptz`);
  return conditions.query(
    'select handler_name as handler, queue_name as queue, array_agg(distinct worker_id) as workers ' +
      `from workers ${conditions.where} group by handler_name, queue_name`,
  );
}

/** Newest first, one more than a response has. */
export function minutesQuery(tenant: string | undefined, since: UnixMs): Query {
  const conditions = new Conditions();
  narrow(conditions, filtersOf(ACTIVITY, ['tenant_id']), { tenant_id: tenant });
  conditions.add(`at >= ${conditions.param(isoTime(since))}::timestamptz`);
  return conditions.query(
    'select at, created, completed, failed, cancelled, durations ' +
      `from activity ${conditions.where} order by at desc limit ${ACTIVITY_ROWS_MAX + 1}`,
  );
}

/** @param since the beginning of the first interval */
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
