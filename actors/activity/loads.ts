/** Statements of activity. */

import type { UnixMs } from '../../src/base/time.js';
import type { Queries } from '../runtime/queries.js';

export const ACTIVITY_SQL = {
  oldestActivity: 'select at from activity order by at limit 1',
} as const;

export function activityLoads(queries: Queries) {
  const sql = queries.of(ACTIVITY_SQL);
  return {
    async oldestActivity(): Promise<UnixMs | undefined> {
      const oldest = await sql.one<{ at: string }>('oldestActivity', []);
      return oldest && Date.parse(oldest.at);
    },
  };
}

export type ActivityLoads = ReturnType<typeof activityLoads>;
