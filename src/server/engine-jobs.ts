/** The jobs beside the requests of an engine, put together: what each reads by, and whom it asks. */

import { BulkJobs } from '../../actors/bulk/front/jobs.js';
import { bulkJobStanding, openBulkJobs } from '../../actors/bulk/front/reads.js';
import type { bulkOperations } from '../../actors/bulk/operations.js';
import type { sequenceOperations } from '../../actors/catalog/operations.js';
import { EventFiring } from '../../actors/event/front/firing.js';
import { firingEvents } from '../../actors/event/front/reads.js';
import type { eventOperations } from '../../actors/event/operations.js';
import { candidates } from '../../actors/instance/front/instance-reads.js';
import type { ManyInstances } from '../../actors/instance/front/many-instances.js';
import { orphans } from '../../actors/instance/front/retention-reads.js';
import { RetryPreviews } from '../../actors/instance/front/retry-previews.js';
import { SequenceRemoval } from '../../actors/instance/front/sequence-removal.js';
import type { Shards } from '../../actors/runtime/shards.js';
import type { ShardClient } from '../../actors/shard/client.js';
import { fireByEvent } from '../../actors/trigger/front/operations.js';
import type { Logger } from '../base/log.js';
import { realClock } from '../base/real-clock.js';
import type { Reads } from '../db/reads.js';

export interface EngineJobsDeps {
  readonly reads: Reads;
  readonly client: ShardClient;
  readonly many: ManyInstances;
  readonly log: Logger;
}

/** Removes the instances of deleted sequences. */
export function sequenceRemovalOf({ reads, client, many, log }: EngineJobsDeps): SequenceRemoval {
  const catalog: Shards<typeof sequenceOperations> = client;
  return new SequenceRemoval({
    clock: realClock,
    log,
    orphans: (rows) => orphans.rows(reads, rows),
    remove: (ids) => many.purge(ids, null),
    forget: (id) => catalog.ask(0, 'catalog.forget', '', id, undefined),
  });
}

/** Goes on with changes of many instances behind their answer. */
export function bulkJobsOf({ reads, client, many, log }: EngineJobsDeps): BulkJobs {
  const previews = new RetryPreviews(client);
  const jobs: Shards<typeof bulkOperations> = client;
  return new BulkJobs({
    clock: realClock,
    log,
    open: (rows) => openBulkJobs.rows(reads, rows),
    standing: (id) => bulkJobStanding.row(reads, id),
    candidates: ({ tenant, filter }, limit, place) =>
      candidates(reads.of(tenant), filter, limit, place),
    change: (job, tenant, ids, change) => many.change(tenant, ids, change, job),
    repeating: (tenant, ids) => previews.repeating(tenant, ids),
    orphans: (tenant, ids) => previews.orphans(tenant, ids),
    progress: (id, progress) => jobs.ask(0, 'bulkJobs.progress', '', id, progress),
  });
}

/** Fires the triggers of events that are stored. */
export function eventFiringOf({ reads, client, log }: Omit<EngineJobsDeps, 'many'>): EventFiring {
  const events: Shards<typeof eventOperations> = client;
  return new EventFiring({
    clock: realClock,
    log,
    page: (at, id, rows) => firingEvents.rows(reads, at, id, rows),
    fire: (slug, event) => fireByEvent(client, reads, slug, event),
    fired: ({ id, key_id }, fires) =>
      events.ask(client.shardOf(key_id), 'events.fired', '', '', { id, fires }),
  });
}
