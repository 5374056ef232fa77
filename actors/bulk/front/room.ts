/** Bulk changes on the front thread: their routes, and the jobs. */

import type { BulkJob } from '../../../schema/bulk-job.js';
import type { FrontKernel, FrontRoom } from '../../../src/http/front-room.js';
import { candidates } from '../../instance/front/instance-reads.js';
import { ManyInstances } from '../../instance/front/many-instances.js';
import { RetryPreviews } from '../../instance/front/retry-previews.js';
import type { instanceOperations } from '../../instance/operations.js';
import type { Shards } from '../../runtime/shards.js';
import type { bulkOperations as ownerOperations } from '../operations.js';
import { BulkJobs } from './jobs.js';
import { migrationOfMany } from './migrate-many.js';
import { type BulkDeps, bulkOperations } from './operations.js';
import { bulkJobStanding, openBulkJobs } from './reads.js';

type Owner = Shards<typeof ownerOperations>;
type Kernel = FrontKernel<Owner & Shards<typeof instanceOperations>>;

export function openBulkFront(kernel: Kernel) {
  const { client, clock } = kernel;
  const many = new ManyInstances(client);
  const previews = new RetryPreviews(client);
  const jobs = jobsOf(kernel, many, previews);
  return {
    parts: [jobs],
    operations: {
      ...bulkOperations({
        clock,
        begin: beginBy(client, jobs),
        changeMany: (tenant, ids, change) => many.change(tenant, ids, change),
        repeating: (tenant, ids) => previews.repeating(tenant, ids),
        orphans: (tenant, ids) => previews.orphans(tenant, ids),
      }),
      'sequences.migrateInstances': migrationOfMany({ client, clock }),
    },
  } satisfies FrontRoom;
}

function beginBy(client: Owner, jobs: BulkJobs): BulkDeps['begin'] {
  return async (tenant, job) => {
    const reply = await client.ask(0, 'bulkJobs.begin', tenant, '', job);
    jobs.wake();
    return JSON.parse(reply.body) as BulkJob;
  };
}

function jobsOf(
  { reads, client, clock, log }: Kernel,
  many: ManyInstances,
  previews: RetryPreviews,
): BulkJobs {
  const owner: Owner = client;
  return new BulkJobs({
    clock,
    log,
    open: (rows) => openBulkJobs.rows(reads, rows),
    standing: (id) => bulkJobStanding.row(reads, id),
    candidates: ({ tenant, filter }, limit, place) =>
      candidates(reads.of(tenant), filter, limit, place),
    change: (job, tenant, ids, change) => many.change(tenant, ids, change, job),
    repeating: (tenant, ids) => previews.repeating(tenant, ids),
    orphans: (tenant, ids) => previews.orphans(tenant, ids),
    progress: (id, progress) => owner.ask(0, 'bulkJobs.progress', '', id, progress),
  });
}
