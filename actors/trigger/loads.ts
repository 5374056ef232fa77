/** Statements of triggers. */

import { REDACTED } from '../../schema/common.js';
import type { Trigger } from '../../schema/trigger.js';
import type { JsonObject } from '../../src/base/json.js';
import { columnsBut, type StoredRow, selected } from '../../src/db/table.js';
import type { Queries } from '../runtime/queries.js';
import { TRIGGERS } from './tables.js';

export type TriggerRow = StoredRow<typeof TRIGGERS>;

/** Without its secret. */
export function wireTrigger({ event_name: _, config, secret, ...row }: TriggerRow): Trigger {
  return {
    ...row,
    trigger_type: row.trigger_type as Trigger['trigger_type'],
    config: JSON.parse(config) as JsonObject,
    secret: secret === null ? null : REDACTED,
  };
}

export const TRIGGER_SQL = {
  trigger: `select ${selected(columnsBut(TRIGGERS))} from triggers where slug = $1`,
} as const;

export function triggerLoads(queries: Queries) {
  const sql = queries.of(TRIGGER_SQL);
  return { trigger: (slug: string) => sql.one<TriggerRow>('trigger', [slug]) };
}

export type TriggerLoads = ReturnType<typeof triggerLoads>;
