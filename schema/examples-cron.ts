/** Examples of schedules. */

import type { JsonValue } from '../src/base/json.js';
import { AT, EXAMPLE_IDS, EXAMPLE_TENANT } from './example-ids.js';

const schedule = {
  tenant_id: EXAMPLE_TENANT,
  namespace: 'billing',
  sequence_id: EXAMPLE_IDS.sequence,
  cron_expr: '0 30 8 * * MON-FRI *',
  timezone: 'Europe/Berlin',
  metadata: { source: 'nightly' },
  enabled: true,
  overlap_policy: 'skip',
};

const NEXT_FIRE = '2026-11-03T07:30:00.000Z';
const previewed = { at: NEXT_FIRE, local: '2026-11-03T08:30:00.000+01:00' };

export const CRON_EXAMPLES: Readonly<Record<string, JsonValue>> = {
  CreateSchedule: schedule,
  ScheduleCreated: { id: EXAMPLE_IDS.schedule, next_fire_at: NEXT_FIRE },
  UpdateSchedule: { cron_expr: '0 0 9 * * MON-FRI *', enabled: false },
  PreviewSchedule: { cron_expr: '0 30 8 * * MON-FRI *', timezone: 'Europe/Berlin', count: 1 },
  PreviewedFire: previewed,
  SchedulePreview: { timezone: 'Europe/Berlin', fires: [previewed] },
  RunSchedule: { idempotency_key: 'monday' },
  ScheduleRun: {
    id: EXAMPLE_IDS.instance,
    deduplicated: false,
    instance_id: EXAMPLE_IDS.instance,
  },
  CronSchedule: {
    id: EXAMPLE_IDS.schedule,
    ...schedule,
    sequence: null,
    version: null,
    context: { data: { amount: 4_200, size: 'large' }, config: {} },
    priority: 'Normal',
    skipped_fires: 0,
    last_skipped_at: null,
    last_triggered_at: null,
    next_fire_at: NEXT_FIRE,
    last_error: null,
    created_at: AT,
    updated_at: AT,
  },
  NextFires: { fires: [NEXT_FIRE] },
};
