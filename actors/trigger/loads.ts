/** Statements of triggers. */

import { columnsBut, type StoredRow, selected } from '../../src/db/table.js';
import type { Queries } from '../runtime/queries.js';
import { TRIGGERS } from './tables.js';

export type TriggerRow = StoredRow<typeof TRIGGERS>;

export const TRIGGER_SQL = {
  trigger: `select ${selected(columnsBut(TRIGGERS))} from triggers where slug = $1`,
} as const;

export function triggerLoads(queries: Queries) {
  const sql = queries.of(TRIGGER_SQL);
  return {
    trigger: (slug: string) => sql.one<TriggerRow>('trigger', [slug]),
  };
}

export type TriggerLoads = ReturnType<typeof triggerLoads>;
