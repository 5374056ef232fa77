/** Statements of actions. */

import type { Queries } from '../runtime/queries.js';

export const ACTION_SQL = {
  oldestAction: 'select at from actions order by at, id limit 1',
} as const;

export function actionLoads(queries: Queries) {
  const sql = queries.of(ACTION_SQL);
  return { oldestAction: () => sql.time('oldestAction', 'at') };
}

export type ActionLoads = ReturnType<typeof actionLoads>;
