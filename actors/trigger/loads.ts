/** Statements of triggers. */

import { REDACTED } from '../../schema/common.js';
import type { Trigger } from '../../schema/trigger.js';
import type { TriggerPublish } from '../../schema/trigger-parts.js';
import type { JsonObject } from '../../src/base/json.js';
import { columnsBut, type StoredRow, selected } from '../../src/db/table.js';
import type { Queries } from '../runtime/queries.js';
import type { Verification } from './core/schemes.js';
import { TRIGGERS } from './tables.js';

export type TriggerRow = StoredRow<typeof TRIGGERS>;

export const publishIn = ({ publish }: Pick<TriggerRow, 'publish'>) =>
  JSON.parse(publish ?? 'null') as TriggerPublish | null;

export const verificationIn = ({ verify }: Pick<TriggerRow, 'verify'>) =>
  JSON.parse(verify ?? 'null') as Verification | null;

/** Without its secrets. */
export function wireTrigger({ event_name: _, config, secret, ...row }: TriggerRow): Trigger {
  const verify = verificationIn(row);
  return {
    ...row,
    trigger_type: row.trigger_type as Trigger['trigger_type'],
    config: JSON.parse(config) as JsonObject,
    publish: publishIn(row),
    secret: secret === null || verify !== null ? null : REDACTED,
    verify: verify && { ...verify, secret: REDACTED },
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
