/** Filters of instances, in lists and bulk changes (docs/reference/instances.md). */

import { type Static, Type } from '@sinclair/typebox';
import {
  allOptional,
  CREATED_BETWEEN,
  InstanceStateWord,
  noted,
  oneOfWords,
  optional,
  Timestamp,
  Uuid,
  Version,
} from './common.js';
import { strictObject } from './strict.js';

/** Top-level string equality on `metadata`; all must match. */
const MetadataFilter = Type.Unsafe<Record<string, string>>({
  type: 'object',
  additionalProperties: { type: 'string' },
});

/** An empty filter is probably a missing value, and must not select everything. */
const SelectedText = Type.String({ minLength: 1 });

/** The most that people select on pages. */
export const IDS_MAX = 1_000;
const OPEN_WAITS = [
  'task',
  'handler',
  'approval',
  'sleep',
  'delay',
  'retry',
  'child',
  'rate_limit',
  'event',
  'slot',
] as const;
export type OpenWait = (typeof OPEN_WAITS)[number];

/**
 * Filters of instances for lists and bulk actions; all given ones must match. In a query, an empty value means no
 * filter.
 */
export const SELECTION = {
  tenant_id: Type.String(),
  namespace: SelectedText,
  sequence_id: Uuid,
  sequence_name: noted(SelectedText, 'Includes every version of the sequences with this name.'),
  sequence: noted(SelectedText, 'Alias of sequence_name.'),
  sequence_version: noted(Version, 'Version of the sequence.'),
  parent_instance_id: noted(Uuid, 'Children of this instance.'),
  ids: noted(Type.Array(Uuid, { minItems: 1, maxItems: IDS_MAX }), `At most ${IDS_MAX} instances.`),
  waiting_for: oneOfWords(
    OPEN_WAITS,
    'Instances with a step that waits for it; see /instances/{id}/explain.',
  ),
  ...CREATED_BETWEEN,
  updated_after: noted(Timestamp, 'Exclusive.'),
  updated_before: noted(Timestamp, 'Exclusive.'),
  failure: noted(SelectedText, "Part of the failure's message or code; case-insensitive."),
  failure_code: noted(SelectedText, 'Code of the failure.'),
  failure_block: noted(SelectedText, 'block_id of the failure.'),
  failure_handler: noted(SelectedText, 'Handler of the failure.'),
  failure_reason: noted(SelectedText, 'reason in /instances/failures.'),
  metadata: MetadataFilter,
};

/** For bulk actions. No `states`, null or an empty list: every state. */
export const InstanceFilter = strictObject({
  ...allOptional(SELECTION),
  states: optional(Type.Array(InstanceStateWord)),
});
export type InstanceFilter = Static<typeof InstanceFilter>;
