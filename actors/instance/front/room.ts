/** Instances on the front thread: reads, approvals, and removal. */

import type { FrontKernel, FrontRoom } from '../../../src/http/front-room.js';
import type { Catalog } from '../../catalog/catalog.js';
import type { Shards } from '../../runtime/shards.js';
import type { instanceOperations as ownerOperations } from '../operations.js';
import { approvalOperations } from './approvals.js';
import { instanceExplanation } from './explanation.js';
import { instanceOperations } from './instances.js';
import { ManyInstances } from './many-instances.js';
import { endedPage, orphans, Retention, SequenceRemoval } from './removal.js';
import { RetryPreviews } from './retry-previews.js';
import { searchOperations } from './search.js';

type Sequences = Shards<() => Catalog['operations']>;
const DAY_MS = 86_400_000;

export function openInstanceFront(kernel: FrontKernel<Sequences & Shards<typeof ownerOperations>>) {
  const { reads, client, settings, placement } = kernel;
  const { publicUrl, retentionDays } = settings;
  const catalog: Sequences = client;
  const many = new ManyInstances(client);
  const removal = new SequenceRemoval({
    ...kernel,
    orphans: (rows) => orphans.rows(reads, rows),
    remove: (ids) => many.purge(ids, null),
    forget: (id) => catalog.ask(0, 'catalog.forget', '', id, undefined),
  });
  const retention = new Retention({
    ...kernel,
    keepMs: retentionDays * DAY_MS,
    page: (after, before, rows) => endedPage(reads, after, before, rows),
    remove: (ids, before) => many.purge(ids, before),
  });
  const room = {
    parts: [removal, retentionDays === 0 ? undefined : retention],
    operations: {
      ...instanceOperations,
      ...searchOperations,
      'instances.explain': instanceExplanation(new RetryPreviews(client)),
      ...approvalOperations(client, { publicUrl, mustNameTenant: placement !== undefined }),
    },
  } satisfies FrontRoom;
  return { ...room, removal };
}
