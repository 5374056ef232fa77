/** Statements of activity. */

import type { Queries } from '../runtime/queries.js';

export const ACTIVITY_SQL = {
  oldestActivity: 'select at from activity order by at limit 1',
  oldestSteps: 'select at from step_activity order by at limit 1',
  oldestQueueMinutes: 'select at from queue_minutes order by at limit 1',
} as const;

export function activityLoads(queries: Queries) {
  const sql = queries.of(ACTIVITY_SQL);
  return {
    oldestActivity: () => sql.time('oldestActivity', 'at'),
    oldestSteps: () => sql.time('oldestSteps', 'at'),
    oldestQueueMinutes: () => sql.time('oldestQueueMinutes', 'at'),
  };
}

export type ActivityLoads = ReturnType<typeof activityLoads>;
