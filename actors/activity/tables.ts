/** Created and ended instances by tenant and minute. */

import { mutations, set, special } from '../../src/db/mutation.js';
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
  prune: special(
    ACTIVITY,
    'latest',
    { before: 'timestamptz' },
    (rows) => `
delete from activity a using ${rows} cross join lateral (
  select tenant_id, at, shard from activity where at < r.before
  order by at limit 1000 offset 0) as old
where a.tenant_id = old.tenant_id and a.at = old.at and a.shard = old.shard`,
  ),
  set: set(ACTIVITY, ['created', 'completed', 'failed', 'cancelled', 'durations']),
});

export const ACTIVITY_STORE = [ACTIVITY_LINE];
