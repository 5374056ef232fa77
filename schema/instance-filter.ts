/** Filters of instances, in lists and bulk changes (docs/reference/instances.md). */

import * as t from './common.js';
import { words } from './states.js';

/** Top-level string equality on `metadata`; all must match. */
const MetadataFilter = t.typed<Record<string, string>>({
  type: 'object',
  additionalProperties: { type: 'string' },
});

/** An empty filter is probably a missing value, and must not select everything. */
const SelectedText = t.text({ minLength: 1 });

/** The most that people select on pages. */
export const IDS_MAX = 1_000;
const OPEN_WAITS = words('task handler approval sleep delay retry child rate_limit event slot');
export type OpenWait = (typeof OPEN_WAITS)[number];

/**
 * Filters of instances for lists and bulk actions; all given ones must match. In a query, an empty value means no
 * filter.
 */
export const SELECTION = {
  tenant_id: t.text(),
  namespace: SelectedText,
  sequence_id: t.Uuid,
  sequence_name: t.noted(SelectedText, 'Includes every version of the sequences with this name.'),
  sequence: t.noted(SelectedText, 'Alias of sequence_name.'),
  sequence_version: t.noted(t.Version, 'Version of the sequence.'),
  parent_instance_id: t.noted(t.Uuid, 'Children of this instance.'),
  ids: t.noted(t.list(t.Uuid, { minItems: 1, maxItems: IDS_MAX }), `At most ${IDS_MAX} instances.`),
  waiting_for: t.oneOf(OPEN_WAITS, 'Instances with a step that waits for it (see explain).'),
  ...t.CREATED_BETWEEN,
  updated_after: t.noted(t.Timestamp, 'Only instances changed after this time.'),
  updated_before: t.noted(t.Timestamp, 'Only instances changed before this time.'),
  failed_after: t.noted(t.Timestamp, 'Only instances that failed after this time.'),
  failed_before: t.noted(t.Timestamp, 'Only instances that failed before this time.'),
  failure: t.noted(SelectedText, "Part of the failure's message or code; case-insensitive."),
  failure_code: t.noted(SelectedText, 'Code of the failure.'),
  failure_block: t.noted(SelectedText, 'block_id of the failure.'),
  failure_handler: t.noted(SelectedText, 'Handler of the failure.'),
  failure_reason: t.noted(SelectedText, 'Reason of the failure, as in /instances/failures.'),
  metadata: MetadataFilter,
};

/** For bulk actions. No `states`, null or an empty list: every state. */
export const InstanceFilter = t.strictObject({
  ...t.allNullish(SELECTION),
  states: t.nullish(t.list(t.InstanceStateWord)),
});
