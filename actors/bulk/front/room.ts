/**
 * Bulk changes on the front thread, which finds the matches; the owner of each instance changes it. Each change is a
 * job, so that it is listed and can be cancelled. Its request runs it unless it takes long or has the preference.
 */

import { randomUUID } from 'node:crypto';
import type { BulkJob, RetryOutcome } from '../../../schema/bulk-job.js';
import type { Clock } from '../../../src/base/clock.js';
import { invalid } from '../../../src/base/errors.js';
import { LIMITS } from '../../../src/base/limits.js';
import { checkTenant } from '../../../src/base/tenancy.js';
import { isoTime } from '../../../src/base/time.js';
import { filtersOf } from '../../../src/db/reads/filters.js';
import { list } from '../../../src/db/reads/list.js';
import { lookup, rowOf } from '../../../src/db/reads/lookup.js';
import { orderBy } from '../../../src/db/reads/order.js';
import type { Reader } from '../../../src/db/reads/reader.js';
import { columnsBut, selected } from '../../../src/db/table.js';
import type { FrontKernel, FrontRoom } from '../../../src/http/front-room.js';
import {
  type AnyCall,
  type FrontDeps,
  type FrontOperations,
  jsonReply,
  listBy,
} from '../../../src/http/operation.js';
import { prefers } from '../../../src/http/request-head.js';
import type { RequestedAction } from '../../../src/http/requested-action.js';
import type { HttpReply } from '../../../src/http/server.js';
import { candidates } from '../../instance/front/instance-reads.js';
import { ManyInstances } from '../../instance/front/many-instances.js';
import { RetryPreviews } from '../../instance/front/retry-previews.js';
import type { instanceOperations } from '../../instance/operations.js';
import type { Shards } from '../../runtime/shards.js';
import type { BeginBulkJob, BulkJobs as Owner } from '../jobs.js';
import { BULK_SQL, type BulkJobRow, wireJob } from '../loads.js';
import { BULK_JOBS } from '../tables.js';
import { BulkJobs } from './jobs.js';
import { migrationOfMany } from './migrate-many.js';
import {
  added,
  type BulkCounts,
  type BulkRequest,
  type BulkWork,
  changeWindow,
  NOTHING_YET,
  type WindowDeps,
  windowSize,
  workOf,
} from './work.js';

const COLUMNS = selected(columnsBut(BULK_JOBS));

/** `BulkJob` records, newest first. */
export const bulkJobList = list({
  columns: COLUMNS,
  from: 'bulk_jobs',
  by: filtersOf(BULK_JOBS, ['tenant_id', 'state']),
  order: orderBy(BULK_JOBS, ['created_at', 'id'], 'descending'),
  toText: (row: BulkJobRow) => JSON.stringify(wireJob(row)),
});

const bulkJobById = lookup<BulkJobRow>('read_bulk_job', BULK_SQL.bulkJob);

const RESTS = "next_at > $1::timestamptz and state = 'running'";

/** The oldest job of each tenant that is open and does not rest. */
export const openBulkJobs = lookup<{ readonly id: string }>(
  'read_open_bulk_jobs',
  `select distinct on (tenant_id) id from bulk_jobs where ended_at is null and (${RESTS}) is not true ` +
    'order by tenant_id, created_at, id limit $2::int',
);

/** When the first resting job continues. */
export const restingBulkJobs = lookup<{ readonly next_at: string | null }>(
  'read_resting_bulk_jobs',
  `select min(next_at) as next_at from bulk_jobs where ended_at is null and ${RESTS}`,
);

/** The states of the instances that a job has retried. */
export const retryOutcome = lookup<{ readonly state: string; readonly count: number }>(
  'read_retry_outcome',
  'select i.state, count(*)::integer as count from bulk_retries r ' +
    'cross join lateral (select state from instances where id = r.instance_id offset 0) i ' +
    'where r.job_id = $1::uuid group by i.state',
);

export interface BulkJobStanding extends BulkJobRow {
  /** Changed but uncounted instances, as JSON. */
  readonly uncounted: string;
}

export const bulkJobStanding = lookup<BulkJobStanding>(
  'read_bulk_job_standing',
  `select ${COLUMNS}, (select coalesce(json_agg(instance_id), '[]') from bulk_changes ` +
    'where job_id = id)::text as uncounted from bulk_jobs where id = $1::uuid',
);

type JobClient = Shards<() => Owner['operations']>;
type Kernel = FrontKernel<JobClient & Shards<typeof instanceOperations>>;

export function openBulkFront({ client, reads, clock, now, log }: Kernel) {
  const many = new ManyInstances(client);
  const previews = new RetryPreviews(client);
  const owner: JobClient = client;
  const lookups: Pick<WindowDeps, 'repeating' | 'orphans'> = {
    repeating: (tenant, ids) => previews.repeating(tenant, ids),
    orphans: (tenant, ids) => previews.orphans(tenant, ids),
  };
  const jobs = new BulkJobs({
    clock,
    now,
    log,
    open: (rows) => openBulkJobs.rows(reads, isoTime(now()), rows),
    nextAt: async () => {
      const next = (await restingBulkJobs.row(reads, isoTime(now())))?.next_at;
      return next == null ? undefined : Date.parse(next);
    },
    standing: (id) => bulkJobStanding.row(reads, id),
    candidates: ({ tenant, filter }, limit, place) =>
      candidates(reads.of(tenant), filter, limit, place),
    change: (job, tenant, ids, change) => many.change(tenant, ids, change, job),
    ...lookups,
    progress: async (id, progress) => {
      const { body } = await owner.ask(0, 'bulkJobs.progress', '', id, progress);
      return JSON.parse(body) as BulkJob;
    },
  });
  const begin: BulkDeps['begin'] = async (tenant, job, action) => {
    const { body } = await owner.ask(0, 'bulkJobs.begin', tenant, '', job, { action });
    return JSON.parse(body) as BulkJob;
  };
  return {
    parts: [jobs],
    operations: {
      ...bulkOperations({
        clock,
        jobs,
        begin,
        changeMany: (tenant, ids, change) => many.change(tenant, ids, change),
        ...lookups,
      }),
      'sequences.migrateInstances': migrationOfMany(client, clock),
    },
  } satisfies FrontRoom;
}

export interface BulkDeps extends WindowDeps {
  readonly clock: Pick<Clock, 'monotonic'>;
  readonly jobs: Pick<BulkJobs, 'runInline' | 'wake'>;
  readonly begin: (
    tenant: string,
    job: BeginBulkJob,
    action: RequestedAction | undefined,
  ) => Promise<BulkJob>;
}

export function bulkOperations(bulk: BulkDeps) {
  return {
    'instances.bulkState': (deps, call) =>
      changeAll(bulk, deps, call, { operation: 'state', request: call.body }, countReply),
    'instances.bulkReschedule': (deps, call) =>
      changeAll(bulk, deps, call, { operation: 'reschedule', request: call.body }, countReply),
    'instances.batchAction': (deps, call) =>
      changeAll(bulk, deps, call, { operation: 'batch_action', request: call.body }, actionReply),
    'bulkJobs.list': listBy(bulkJobList),
    'bulkJobs.get': async ({ reads, now }, { tenant, params: { id } }) => {
      const job = wireJob(await rowOf(reads, bulkJobById, 'job', id, tenant));
      const isKept = Date.parse(job.created_at) > now() - LIMITS.bulkJobKeptMs;
      const isRetry = job.request.action === 'retry' && job.request.dry_run !== true;
      const outcome = isRetry && isKept ? await outcomeOf(reads.of(job.tenant_id), id) : null;
      return jsonReply(JSON.stringify({ ...job, outcome } satisfies BulkJob));
    },
  } satisfies Partial<FrontOperations>;
}

async function outcomeOf(reads: Reader, job: string): Promise<RetryOutcome> {
  const outcome = { completed: 0, failed: 0, cancelled: 0, open: 0 };
  for (const { state, count } of await retryOutcome.rows(reads, job)) {
    const isEnd = state === 'completed' || state === 'failed' || state === 'cancelled';
    outcome[isEnd ? state : 'open'] += count;
  }
  return outcome;
}

/** Changes made before an error stay. */
async function changeAll(
  bulk: BulkDeps,
  deps: FrontDeps,
  call: AnyCall & { readonly query: { readonly async: boolean } },
  asked: BulkRequest,
  reply: (counts: BulkCounts, isDryRun: boolean, id: string | undefined) => HttpReply,
): Promise<HttpReply> {
  const { clock, begin, jobs } = bulk;
  const { traceparent, by, action } = call;
  const tenant = tenantOf(call, asked.request.filter.tenant_id);
  const work = workOf(asked, tenant, { traceparent, by });
  const id = randomUUID();
  const beginJob = () => begin(tenant, { id, ...asked, traceparent, by }, action);
  const endsAt = clock.monotonic() + LIMITS.bulkAnswerMs;
  const isLate = () => clock.monotonic() >= endsAt;
  if (call.query.async || prefers(call, 'respond-async') || work.perMinute !== undefined) {
    const job = await beginJob();
    jobs.wake();
    return jobReply(call, job);
  }
  if (work.isDryRun) {
    const counts = await counted(bulk, deps, work, isLate);
    if (counts !== undefined) return reply(counts, true, undefined);
    const job = await beginJob();
    jobs.wake();
    return jobReply(call, job);
  }
  const { counts, job } = await jobs.runInline(id, work, beginJob, isLate);
  if (job === undefined) return reply(counts, false, id);
  jobs.wake();
  return jobReply(call, job);
}

/** A dry run; undefined when it takes too long. */
async function counted(
  bulk: BulkDeps,
  { reads }: FrontDeps,
  work: BulkWork,
  isLate: () => boolean,
): Promise<BulkCounts | undefined> {
  let counts = NOTHING_YET;
  let place: string | undefined;
  for (;;) {
    const size = windowSize(work, counts.matched);
    if (size === 0) return counts;
    const { found, next } = await candidates(reads, work.filter, size, place);
    counts = added(counts, await changeWindow(work, found, bulk));
    if (next === undefined) return counts;
    if (isLate()) return undefined;
    place = next;
  }
}

/** Keeps the prefix of the request's path. */
function jobReply({ path }: AnyCall, job: BulkJob): HttpReply {
  const prefix = path.slice(0, path.lastIndexOf('/instances/'));
  const location = `${prefix}/instances/bulk/jobs/${job.id}`;
  return { status: 202, body: JSON.stringify(job), headers: [['location', location]] };
}

function countReply({ applied: count, repeats_effects }: BulkCounts, isDryRun: boolean): HttpReply {
  const counts = isDryRun
    ? { count, updated: 0, dry_run: true, ...(repeats_effects > 0 && { repeats_effects }) }
    : { count, updated: count };
  return jsonReply(JSON.stringify(counts));
}

function actionReply(counts: BulkCounts, isDryRun: boolean, job_id: string | undefined): HttpReply {
  return jsonReply(JSON.stringify({ ...counts, dry_run: isDryRun, job_id }));
}

/** The tenant of the header or, without one, of the filter. */
function tenantOf(call: AnyCall, filtered: string | null | undefined): string {
  const tenant = filtered?.trim() ? filtered : undefined;
  if (call.tenant === '') {
    if (tenant === undefined) throw invalid('filter.tenant_id is required');
    return tenant;
  }
  if (tenant !== undefined) checkTenant(call.tenant, tenant, 'filter.');
  return call.tenant;
}
