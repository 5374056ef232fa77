/** By what instances are selected: the filters of their lists, and of changes of many (docs/reference/instances.md). */

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
import { strict } from './strict.js';

/** Top-level string equality on `metadata`, all of them at once. */
const MetadataFilter = Type.Unsafe<Record<string, string>>({
  type: 'object',
  additionalProperties: { type: 'string' },
});

/** Nothing has an empty name: it is a value that the caller lacks, and must not select everything. */
const SelectedText = Type.String({ minLength: 1 });

/** As many as a person selects on pages. */
export const IDS_MAX = 1_000;
/** What steps can wait for, and instances be looked for by. */
export const OPEN_WAITS = [
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
 * By what instances are selected, in lists and by actions on many; all that is given must hold. In the
 * query of a list, no value means no filter.
 */
export const SELECTION = {
  tenant_id: Type.String(),
  namespace: SelectedText,
  sequence_id: Uuid,
  sequence_name: noted(SelectedText, 'Every version of the sequences with this name.'),
  sequence: noted(SelectedText, 'The same.'),
  sequence_version: noted(Version, 'Of its sequence.'),
  parent_instance_id: noted(Uuid, 'Those that this instance started.'),
  ids: Type.Array(Uuid, {
    minItems: 1,
    maxItems: IDS_MAX,
    description: `These and no others, at most ${IDS_MAX}.`,
  }),
  waiting_for: oneOfWords(
    OPEN_WAITS,
    'Those with a step that waits for it: see /instances/{id}/explain.',
  ),
  ...CREATED_BETWEEN,
  updated_after: noted(Timestamp, 'Exclusive.'),
  updated_before: noted(Timestamp, 'Exclusive.'),
  failure: noted(SelectedText, 'A part of the message or code of its failure, in any case.'),
  failure_code: noted(SelectedText, 'The code of its failure.'),
  failure_block: noted(SelectedText, 'The block_id of its failure.'),
  failure_handler: noted(SelectedText, 'The handler of its failure.'),
  failure_reason: noted(SelectedText, 'The reason as /instances/failures tells it.'),
  metadata: MetadataFilter,
};

/** Of actions on many. No `states`, null or an empty list: every state. */
export const InstanceFilter = strict(
  Type.Object({ ...allOptional(SELECTION), states: optional(Type.Array(InstanceStateWord)) }),
);
export type InstanceFilter = Static<typeof InstanceFilter>;
