/**
 * Bulk changes on the front thread, which finds the matches; the owner of each instance changes it. A request that takes
 * long, or has the preference, continues as a job.
 */

import type { BulkJob } from '../../../schema/bulk-job.js';
import type { Clock } from '../../../src/base/clock.js';
import { invalid } from '../../../src/base/errors.js';
import { LIMITS } from '../../../src/base/limits.js';
import { checkTenant } from '../../../src/base/tenancy.js';
import { filtersOf } from '../../../src/db/reads/filters.js';
import { list } from '../../../src/db/reads/list.js';
import { lookup, rowOf } from '../../../src/db/reads/lookup.js';
import { orderBy } from '../../../src/db/reads/order.js';
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

/** The oldest open job of each tenant. */
export const openBulkJobs = lookup<{ readonly id: string }>(
  'read_open_bulk_jobs',
  'select distinct on (tenant_id) id from bulk_jobs where ended_at is null ' +
    'order by tenant_id, created_at, id limit $1::int',
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

export function openBulkFront({ client, reads, clock, log }: Kernel) {
  const many = new ManyInstances(client);
  const previews = new RetryPreviews(client);
  const owner: JobClient = client;
  const lookups: Pick<WindowDeps, 'repeating' | 'orphans'> = {
    repeating: (tenant, ids) => previews.repeating(tenant, ids),
    orphans: (tenant, ids) => previews.orphans(tenant, ids),
  };
  const jobs = new BulkJobs({
    clock,
    log,
    open: (rows) => openBulkJobs.rows(reads, rows),
    standing: (id) => bulkJobStanding.row(reads, id),
    candidates: ({ tenant, filter }, limit, place) =>
      candidates(reads.of(tenant), filter, limit, place),
    change: (job, tenant, ids, change) => many.change(tenant, ids, change, job),
    ...lookups,
    progress: (id, progress) => owner.ask(0, 'bulkJobs.progress', '', id, progress),
  });
  const begin: BulkDeps['begin'] = async (tenant, job) => {
    const reply = await owner.ask(0, 'bulkJobs.begin', tenant, '', job);
    jobs.wake();
    return JSON.parse(reply.body) as BulkJob;
  };
  return {
    parts: [jobs],
    operations: {
      ...bulkOperations({
        clock,
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
  readonly begin: (tenant: string, job: BeginBulkJob) => Promise<BulkJob>;
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
    'bulkJobs.get': async ({ reads }, { tenant, params: { id } }) =>
      jsonReply(JSON.stringify(wireJob(await rowOf(reads, bulkJobById, 'job', id, tenant)))),
  } satisfies Partial<FrontOperations>;
}

/** Changes made before an error stay. */
async function changeAll(
  bulk: BulkDeps,
  deps: FrontDeps,
  call: AnyCall & { readonly query: { readonly async: boolean } },
  asked: BulkRequest,
  reply: (counts: BulkCounts, isDryRun: boolean) => HttpReply,
): Promise<HttpReply> {
  const { clock, begin } = bulk;
  const { traceparent, by } = call;
  const tenant = tenantOf(call, asked.request.filter.tenant_id);
  const work = workOf(asked, tenant, { traceparent, by });
  const wantsJob = call.query.async || prefers(call, 'respond-async');
  const endsAt = clock.monotonic() + (wantsJob ? 0 : LIMITS.bulkAnswerMs);
  let counts = NOTHING_YET;
  let place: string | undefined;
  while (windowSize(work, counts.matched) > 0) {
    if (clock.monotonic() >= endsAt) {
      const job = await begin(tenant, { ...asked, counts, place: place ?? null, traceparent, by });
      return jobReply(call, job);
    }
    const size = windowSize(work, counts.matched);
    const { found, next } = await candidates(deps.reads, work.filter, size, place);
    counts = added(counts, await changeWindow(work, found, bulk));
    if (next === undefined) break;
    place = next;
  }
  return reply(counts, work.isDryRun);
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

function actionReply(counts: BulkCounts, isDryRun: boolean): HttpReply {
  return jsonReply(JSON.stringify({ ...counts, dry_run: isDryRun }));
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
