/** The list of triggers, without their secrets, and the lookup for a request, with it. */

import { REDACTED } from '../../../schema/common.js';
import { filtersOf } from '../../../src/db/reads/filters.js';
import { list } from '../../../src/db/reads/list.js';
import { lookup } from '../../../src/db/reads/lookup.js';
import { orderBy } from '../../../src/db/reads/order.js';
import { columnsBut, type StoredRow, selected } from '../../../src/db/table.js';
import { TRIGGERS } from '../tables.js';

const COLUMNS = columnsBut(TRIGGERS, 'event_name');

export type TriggerRow = StoredRow<typeof TRIGGERS, (typeof COLUMNS)[number]>;

/** `Trigger` records, oldest first. */
export const triggerList = list({
  columns: selected(COLUMNS),
  from: 'triggers',
  by: filtersOf(TRIGGERS, ['tenant_id', 'namespace', 'sequence_name', 'trigger_type']),
  order: orderBy(TRIGGERS, ['created_at', 'slug']),
  toText: triggerText,
});

export const triggerBySlug = lookup<TriggerRow>(
  'read_trigger',
  `select ${selected(COLUMNS)} from triggers where slug = $1`,
);

export function triggerText({ config, secret, ...row }: TriggerRow): string {
  const shown = secret === null ? null : REDACTED;
  return JSON.stringify({ ...row, config: JSON.parse(config), secret: shown });
}
