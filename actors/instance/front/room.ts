/**
 * Instances on the front thread: reads, approvals, and the removal of instances that ended long ago or whose
 * sequence was deleted.
 */

import type { FrontKernel, FrontRoom } from '../../../src/http/front-room.js';
import type { sequenceOperations } from '../../catalog/room.js';
import type { Shards } from '../../runtime/shards.js';
import type { instanceOperations as ownerOperations } from '../operations.js';
import { approvalOperations } from './approvals.js';
import { instanceExplanation } from './explanation.js';
import { instanceOperations } from './instances.js';
import { ManyInstances } from './many-instances.js';
import { Retention } from './retention.js';
import { endedPage, orphans } from './retention-reads.js';
import { RetryPreviews } from './retry-previews.js';
import { SequenceRemoval } from './sequence-removal.js';

type Catalog = Shards<typeof sequenceOperations>;
type Kernel = FrontKernel<Catalog & Shards<typeof ownerOperations>>;

const DAY_MS = 86_400_000;

export function openInstanceFront(kernel: Kernel) {
  const { client, settings, placement } = kernel;
  const many = new ManyInstances(client);
  const removal = removalOf(kernel, many);
  const { publicUrl } = settings;
  const room = {
    parts: [removal, retentionOf(kernel, many)],
    operations: {
      ...instanceOperations,
      'instances.explain': instanceExplanation(new RetryPreviews(client)),
      ...approvalOperations(client, { publicUrl, mustNameTenant: placement !== undefined }),
    },
  } satisfies FrontRoom;
  return { ...room, removal };
}

function removalOf({ reads, client, clock, log }: Kernel, many: ManyInstances): SequenceRemoval {
  const catalog: Catalog = client;
  return new SequenceRemoval({
    clock,
    log,
    orphans: (rows) => orphans.rows(reads, rows),
    remove: (ids) => many.purge(ids, null),
    forget: (id) => catalog.ask(0, 'catalog.forget', '', id, undefined),
  });
}

/** Undefined: ended instances are kept for ever. */
function retentionOf(
  { reads, clock, now, log, settings: { retentionDays } }: Kernel,
  many: ManyInstances,
): Retention | undefined {
  if (retentionDays === 0) return undefined;
  return new Retention({
    clock,
    now,
    keepMs: retentionDays * DAY_MS,
    log,
    page: (after, before, rows) => endedPage(reads, after, before, rows),
    remove: (ids, before) => many.purge(ids, before),
  });
}
