/** The table of schedules. Pure. */

import { clear, mutations, set } from '../../src/db/mutation.js';
import { columnsBut, table } from '../../src/db/table.js';

export const CRON_SCHEDULES = table(
  'cron_schedules',
  ['id'],
  {
    id: 'uuid',
    tenant_id: 'text',
    namespace: 'text',
    sequence_id: 'uuid?',
    sequence: 'text?',
    version: 'integer?',
    cron_expr: 'text',
    timezone: 'text',
    enabled: 'boolean',
    metadata: 'json',
    context: 'json',
    priority: 'text',
    timeout: 'bigint?',
    overlap_policy: 'text',
    skipped_fires: 'integer',
    last_skipped_at: 'timestamptz?',
    last_triggered_at: 'timestamptz?',
    next_fire_at: 'timestamptz?',
    last_error: 'text?',
    created_at: 'timestamptz',
    updated_at: 'timestamptz',
  },
  { sequence: 'sequence_id' },
);

/** Never changed. */
const TARGET = ['namespace', 'sequence_id', 'sequence', 'version'] as const;

export const CRON = mutations('cron', {
  clear: clear(CRON_SCHEDULES),
  set: set(CRON_SCHEDULES, columnsBut(CRON_SCHEDULES, 'id', 'tenant_id', 'created_at', ...TARGET)),
});

export const SCHEDULE_STORE = [CRON];
