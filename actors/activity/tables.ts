/** Created and ended instances by tenant and minute. */

import { mutations, set } from '../../src/db/mutation.js';
import { prune } from '../../src/db/statements.js';
import { table } from '../../src/db/table.js';

export const ACTIVITY = table(
  'activity',
  ['tenant_id', 'at', 'shard'],
  {
    tenant_id: 'text',
    at: 'timestamptz',
    shard: 'smallint',
    created: 'integer',
    completed: 'integer',
    failed: 'integer',
    cancelled: 'integer',
    durations: 'json',
  },
  { follows: 'what its instances did' },
);

export const ACTIVITY_LINE = mutations('activity', {
  prune: prune(ACTIVITY, ['at']),
  set: set(ACTIVITY, ['created', 'completed', 'failed', 'cancelled', 'durations']),
});

export const ACTIVITY_STORE = [ACTIVITY_LINE];
