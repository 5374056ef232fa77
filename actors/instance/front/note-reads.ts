/**
 * What is kept with an instance and changes nothing of its course: checkpoints and logged lines, as
 * JSON text. Reads only.
 *
 * Checkpoints are read from the end of their primary key. Lines are found by the primary key of their
 * table and sorted, all of one instance: a worker says itself when it wrote a line, so that no index
 * could have them in order.
 */

import { filtersOf } from '../../../src/db/reads/filters.js';
import { list } from '../../../src/db/reads/list.js';
import { TRY_LATER } from '../../../src/db/reads/lookup.js';
import { orderOf } from '../../../src/db/reads/order.js';
import { selected } from '../../../src/db/table.js';
import { CHECKPOINTS, STEP_LOGS } from '../output-tables.js';
import { CHECKPOINT_COLUMNS, checkpointText } from '../wire-texts.js';

/** `Checkpoint` records, newest first. */
export const checkpointList = list({
  columns: selected(CHECKPOINT_COLUMNS),
  from: 'checkpoints',
  of: filtersOf(CHECKPOINTS, ['instance_id']),
  order: 'id desc',
  toText: checkpointText,
  cheaper: TRY_LATER,
});

/** `StepLogLine` records by their times, oldest first; equal times in the order of arrival. */
export const lineList = list({
  columns: 'l.line, l.ts, l.id, l.place',
  from:
    "(select instance_id, id, line, line ->> 'ts' as ts, place::integer as place from step_logs " +
    'cross join lateral json_array_elements(entries) with ordinality as e(line, place)) l',
  of: filtersOf(STEP_LOGS, ['instance_id'], 'l'),
  by: { block_id: { column: "l.line ->> 'block_id'", type: 'text' } },
  order: orderOf([
    { name: 'ts', type: 'text', column: 'l.ts collate "C"' },
    { name: 'id', type: 'uuid', column: 'l.id' },
    { name: 'place', type: 'integer', column: 'l.place' },
  ]),
  toText: (row: { readonly line: string }) => row.line,
  cheaper: 'go on by the cursor of a page, or ask for one block',
});
