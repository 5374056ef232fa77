/** Statements of activity. */

import type { Queries } from '../runtime/queries.js';

export const ACTIVITY_SQL = {
  oldestActivity: 'select at from activity order by at limit 1',
} as const;

export function activityLoads(queries: Queries) {
  const sql = queries.of(ACTIVITY_SQL);
  return { oldestActivity: () => sql.time('oldestActivity', 'at') };
}

export type ActivityLoads = ReturnType<typeof activityLoads>;
