/** Tables of collected creations and of the instances that they start. Pure. */

import { clear, drop, insert, mutations, set, update } from '../../src/db/mutation.js';
import { columnsBut, table } from '../../src/db/table.js';
import { INSTANCE_KEYS } from '../instance/tables.js';

export const PENDING_STARTS = table('pending_starts', ['id'], {
  id: 'uuid',
  key_id: 'uuid',
  tenant_id: 'text',
  namespace: 'text',
  sequence: 'text',
  kind: 'text',
  key: 'text?',
  creation: 'json',
  count: 'integer',
  cancelled: 'integer',
  bytes: 'integer',
  created_at: 'timestamptz',
  starts_at: 'timestamptz',
  error: 'text?',
});

const FIRST = [
  'id',
  'key_id',
  'tenant_id',
  'namespace',
  'sequence',
  'kind',
  'key',
  'created_at',
] as const;

export const PENDING_START = mutations('pendingStart', {
  clear: clear(PENDING_STARTS),
  set: set(PENDING_STARTS, columnsBut(PENDING_STARTS, ...FIRST)),
  update: update(PENDING_STARTS, ['count', 'cancelled', 'bytes', 'starts_at', 'error']),
});

export const COLLECTED_ITEMS = table(
  'collected_items',
  ['pending_id', 'seq'],
  {
    pending_id: 'uuid',
    seq: 'integer',
    tenant_id: 'text',
    data: 'json',
  },
  {
    follows: 'pending_starts',
    ofTenant: 'pending_id in (select id from pending_starts where tenant_id = $T)',
  },
);

export const COLLECTED_ITEM = mutations('collectedItem', {
  insert: insert(COLLECTED_ITEMS),
  // An item is inserted before it, and none after it.
  clear: {
    ...drop(COLLECTED_ITEMS, 'pending_id', {}),
    merge: 'latest',
    group: 'collected_items.all',
  },
  /** One that is taken out, which was inserted by an earlier flush. */
  remove: clear(COLLECTED_ITEMS),
});

/** Keys are inserted by collected creations, and stay with the instance unless it is dropped before it starts. */
export const START_KEY = mutations('startKey', { drop: drop(INSTANCE_KEYS, 'instance_id', {}) });

export const PENDING_START_STORE = [PENDING_START, COLLECTED_ITEM, START_KEY];
