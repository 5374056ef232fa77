/** Sequences and API keys on the front thread. All live keys are loaded before requests are served. */

import type { FrontKernel, FrontRoom } from '../../../src/http/front-room.js';
import type { Shards } from '../../runtime/shards.js';
import type { keyOperations, sequenceOperations as ownerOperations } from '../operations.js';
import { KeyOperations } from './api-keys.js';
import { liveKeys } from './key-reads.js';
import { sequenceDeletion, sequenceOperations } from './sequences.js';

type Client = Shards<typeof keyOperations> & Shards<typeof ownerOperations>;

/** @param sequenceDeleted called when a deleted sequence may have instances to remove */
export function openCatalogFront(kernel: FrontKernel<Client>, sequenceDeleted: () => void) {
  const { client, reads, keys } = kernel;
  const page = (after: string, limit: number) => liveKeys.rows(reads, after, limit);
  return {
    parts: [new KeyOperations({ ...kernel, registry: keys })],
    operations: {
      ...sequenceOperations,
      'sequences.delete': sequenceDeletion(client, sequenceDeleted),
    },
    prepare: () => keys.load(page),
    tenantComes: (tenant) => keys.reload(tenant, page),
  } satisfies FrontRoom;
}
