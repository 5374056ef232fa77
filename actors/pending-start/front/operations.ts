/** Reads of instances that are yet to start from collected creations. */

import type { PendingStart } from '../../../schema/pending-start.js';
import { filtersOf } from '../../../src/db/reads/filters.js';
import { list } from '../../../src/db/reads/list.js';
import { lookup, rowOf } from '../../../src/db/reads/lookup.js';
import { orderBy } from '../../../src/db/reads/order.js';
import { columnsBut, selected } from '../../../src/db/table.js';
import type { FrontRoom } from '../../../src/http/front-room.js';
import { jsonReply, listBy } from '../../../src/http/operation.js';
import { PENDING_STARTS } from '../tables.js';

const COLUMNS = selected(columnsBut(PENDING_STARTS, 'key_id', 'creation', 'bytes'));

/** `PendingStart` records, oldest first. */
export const pendingStartList = list({
  columns: COLUMNS,
  from: 'pending_starts',
  by: filtersOf(PENDING_STARTS, ['tenant_id', 'namespace', 'sequence']),
  order: orderBy(PENDING_STARTS, ['created_at', 'id']),
});

const pendingStartById = lookup<PendingStart>(
  'read_pending_start',
  `select ${COLUMNS} from pending_starts where id = $1::uuid`,
);

export function openPendingStartFront() {
  return {
    operations: {
      'pendingStarts.list': listBy(pendingStartList),
      'pendingStarts.get': async ({ reads }, { tenant, params: { id } }) =>
        jsonReply(
          JSON.stringify(await rowOf(reads, pendingStartById, 'pending start', id, tenant)),
        ),
    },
  } satisfies FrontRoom;
}
