/**
 * Statistics of instances and tasks (docs/operate/statistics.md), each over a bounded number of
 * rows that is read by an index in its order.
 */

import {
  ACTIVITY_ROWS_MAX,
  type Activity,
  INTERVALS_MAX,
  OUTCOMES_LOOKED_AT_MAX,
  QUEUED_TASKS_LOOKED_AT_MAX,
  type QueueSeries,
  type Queues,
  type ReleaseSeries,
} from '../../../schema/statistics.js';
import { isoTime, type UnixMs } from '../../../src/base/time.js';
import { filtersOf, type Narrowing, narrow } from '../../../src/db/reads/filters.js';
import { Conditions, type Query } from '../../../src/db/reads/query.js';
import type { FrontKernel, FrontRoom } from '../../../src/http/front-room.js';
import {
  type FrontDeps,
  jsonReply,
  listTenant,
  type Operation,
} from '../../../src/http/operation.js';
import { POLLERS } from '../../instance/front/pollers.js';
import { IS_OPEN, OPEN_TASKS } from '../../instance/old-tables.js';
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
import { ActivityLines, type StoredMinute } from '../core/activity.js';
import { QueueLines, type StoredQueueMinute } from '../core/queues.js';
import { ACTIVITY, QUEUE_MINUTES } from '../tables.js';
import { failureAttributes, failures, type LookedAt } from './failures.js';
import { stepOperations } from './steps.js';
import { keptSince } from './window.js';

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

const activity: Operation<'activity.get'> = async (deps, call) => {
  const { query } = call;
  const { since, stepMs, now } = windowOf(query, deps.now());
  const lines = new ActivityLines(since, now, stepMs);
  const minutes = minutesQuery(listTenant(call, query.tenant_id), since);
  const complete = await readMinutes<StoredMinute>(deps, minutes, (minute) => lines.add(minute));
  const answer: Activity = {
    since: isoTime(since),
    step_secs: stepMs / 1_000,
    intervals: lines.intervals,
    complete,
  };
  return jsonReply(JSON.stringify(answer));
};

const queueSeries: Operation<'queues.series'> = async (deps, call) => {
  const { query } = call;
  const { since, stepMs, now } = windowOf(query, deps.now());
  const lines = new QueueLines(since, now, stepMs);
  const minutes = queueMinutesQuery(
    { tenant_id: listTenant(call, query.tenant_id), handler_name: query.handler },
    query.queue ?? '',
    since,
  );
  const complete = await readMinutes<StoredQueueMinute>(deps, minutes, (one) => lines.add(one));
  const answer: QueueSeries = {
    since: isoTime(since),
    step_secs: stepMs / 1_000,
    intervals: lines.intervals,
    complete,
  };
  return jsonReply(JSON.stringify(answer));
};

interface Window {
  readonly since?: string | undefined;
  readonly step: number;
}

/** At most `INTERVALS_MAX` intervals, within what is kept. */
function windowOf({ since: requested, step }: Window, now: UnixMs) {
  const since = keptSince(requested, now, MINUTE_MS);
  const least = Math.ceil((now - since) / INTERVALS_MAX / MINUTE_MS) * MINUTE_MS;
  return { since, now, stepMs: Math.max(step * 1_000, least) };
}

/** @returns whether all rows were taken */
async function readMinutes<Row extends object>(
  { reads }: Pick<FrontDeps, 'reads'>,
  query: Query,
  take: (row: Row) => void,
): Promise<boolean> {
  let found = 0;
  await reads.each<Row>(query, 'name the tenant, or a later since', (row) => {
    found += 1;
    if (found <= ACTIVITY_ROWS_MAX) take(row);
  });
  return found <= ACTIVITY_ROWS_MAX;
}

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
      'instances.failureAttributes': failureAttributes,
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
      'queues.series': queueSeries,
      'activity.get': activity,
      'releases.series': series,
      ...stepOperations(),
    },
  } satisfies FrontRoom;
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
      `from ${POLLERS} w ${conditions.where} group by handler_name, queue_name`,
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

/** The same of a queue. */
export function queueMinutesQuery(
  place: Narrowing<'tenant_id' | 'handler_name'>,
  queue: string,
  since: UnixMs,
): Query {
  const conditions = new Conditions();
  narrow(conditions, filtersOf(QUEUE_MINUTES, ['tenant_id', 'handler_name']), place);
  conditions.add(`queue_name = ${conditions.param(queue)}::text`);
  conditions.add(`at >= ${conditions.param(isoTime(since))}::timestamptz`);
  return conditions.query(
    'select at, arrived, taken, withdrawn, ended, longest_wait::double precision as longest_wait ' +
      `from queue_minutes ${conditions.where} order by at desc limit ${ACTIVITY_ROWS_MAX + 1}`,
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
