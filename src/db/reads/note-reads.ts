/**
 * What is kept with an instance and changes nothing of its course: checkpoints and logged lines, as
 * JSON text. Reads only.
 *
 * Checkpoints are read from the end of their primary key. Lines are found by the primary key of their
 * table and sorted, all of one instance: a worker says itself when it wrote a line, so that no index
 * could have them in order.
 */

import { selected } from '../tables.js';
import { filtersOf } from './filters.js';
import { list } from './list.js';
import { TRY_LATER } from './lookup.js';
import { CHECKPOINT_COLUMNS, checkpointText } from './wire.js';

/** `Checkpoint` records, newest first. */
export const checkpointList = list({
  columns: selected(CHECKPOINT_COLUMNS),
  from: 'checkpoints',
  of: filtersOf('checkpoints', ['instance_id']),
  order: 'id desc',
  toText: checkpointText,
  cheaper: TRY_LATER,
});

/** `StepLogLine` records by their times, oldest first; equal times in the order of arrival. */
export const lineList = list({
  columns: 'line',
  from: 'step_logs cross join lateral json_array_elements(entries) with ordinality as e(line, place)',
  of: filtersOf('step_logs', ['instance_id']),
  order: `line ->> 'ts' collate "C", id, place`,
  toText: (row: { readonly line: string }) => row.line,
  cheaper: 'ask for a smaller offset and limit',
});
