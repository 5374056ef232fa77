/** Created and ended instances and tasks of queues by minute, and ended blocks of versions by five minutes. */

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

export const STEP_ACTIVITY = table(
  'step_activity',
  ['tenant_id', 'sequence_id', 'at', 'shard'],
  { tenant_id: 'text', sequence_id: 'uuid', at: 'timestamptz', shard: 'smallint', blocks: 'json' },
  { follows: 'what its instances did' },
);

export const STEP_LINE = mutations('stepActivity', {
  prune: prune(STEP_ACTIVITY, ['at']),
  set: set(STEP_ACTIVITY, ['blocks']),
});

export const QUEUE_MINUTES = table(
  'queue_minutes',
  ['tenant_id', 'handler_name', 'queue_name', 'at', 'shard'],
  {
    tenant_id: 'text',
    handler_name: 'text',
    queue_name: 'text',
    at: 'timestamptz',
    shard: 'smallint',
    arrived: 'integer',
    taken: 'integer',
    withdrawn: 'integer',
    ended: 'integer',
    longest_wait: 'bigint',
  },
  { follows: 'what its instances did' },
);

export const QUEUE_LINE = mutations('queueMinute', {
  prune: prune(QUEUE_MINUTES, ['at']),
  set: set(QUEUE_MINUTES, ['arrived', 'taken', 'withdrawn', 'ended', 'longest_wait']),
});

export const ACTIVITY_STORE = [ACTIVITY_LINE, STEP_LINE, QUEUE_LINE];
