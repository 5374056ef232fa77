/** Block outputs of an instance, oldest first, and its timeline. */

import { filtersOf } from '../../../src/db/reads/filters.js';
import { list } from '../../../src/db/reads/list.js';
import { rowOf } from '../../../src/db/reads/lookup.js';
import { orderBy } from '../../../src/db/reads/order.js';
import type { PageRequest } from '../../../src/db/reads/reader.js';
import { selected } from '../../../src/db/table.js';
import { jsonReply, type Operation } from '../../../src/http/operation.js';
import { type ListedOutput, OUTPUT_COLUMNS } from '../loads.js';
import { BLOCK_OUTPUTS, OUTPUT_ROWS } from '../output-tables.js';
import {
  contextText,
  type InstanceWireRow,
  iterationText,
  outputText,
  wholeRow,
} from '../wire-texts.js';
import { transitionList } from './audit-reads.js';
import { instanceById } from './instance-reads.js';

/** Bounds the buffer of a stream with a client that does not read. */
const STREAM_BATCH_BYTES = 1024 * 1024;

const EVERYTHING = {
  columns: selected(OUTPUT_COLUMNS),
  from: `${OUTPUT_ROWS} block_outputs`,
  of: filtersOf(BLOCK_OUTPUTS, ['instance_id']),
  by: filtersOf(BLOCK_OUTPUTS, ['block_id', 'iteration']),
  order: orderBy(BLOCK_OUTPUTS, ['created_at', 'id']),
  cheaper: 'go on by the cursor of a page, or ask for one block',
};

/** `BlockOutput` records of finished attempts (docs/reference/instances.md). */
export const outputList = list({
  ...EVERYTHING,
  always: "(output_ref is null or output_ref not in ('__in_progress__', '__retry__'))",
  toText: outputText,
});

const storedOutputs = list({ ...EVERYTHING, toText: outputText });

/**
 * All `BlockOutput` records after a row, or from the first. Units of an instance commit in order,
 * with ascending times and ids, so that new rows always follow the visible ones.
 */
export function outputsAfter(
  instance_id: string,
  row: Pick<ListedOutput, 'id' | 'created_at'> | undefined,
): PageRequest<ListedOutput> {
  const cursor = row && EVERYTHING.order.cursorAfter(row);
  return storedOutputs({ instance_id, cursor, max_bytes: STREAM_BATCH_BYTES });
}

const entriesWith = (output: (row: ListedOutput) => string) =>
  list({ ...EVERYTHING, toText: (row: ListedOutput) => entryText(row, output(row)) });

export const entryList = entriesWith(({ output }) => `,"output":${output}`);
const bareEntryList = entriesWith(() => '');

export const timeline: Operation<'instances.timeline'> = async (
  { reads },
  { tenant, params: { id }, query },
) => {
  const { offset, limit, include_outputs: hasOutputs } = query;
  const row = await rowOf(reads, instanceById, 'instance', id, tenant);
  // One more than requested shows whether there are more.
  const narrowed = { ...query, instance_id: id, limit: limit + 1 };
  const request = hasOutputs ? entryList(narrowed) : bareEntryList(narrowed);
  const entries = await reads.page({ ...request, rowsMax: limit });
  const transitions = await reads.page(transitionList(id));
  const reply = jsonReply(
    `{"instance":${headText(row, hasOutputs)},"state_transitions":${transitions.text}` +
      `,"entries":${entries.text},"offset":${offset},"limit":${limit},"has_more":${entries.isCut}}`,
  );
  if (!entries.isCut || entries.cursor === undefined) return reply;
  return { ...reply, headers: [['x-next-cursor', entries.cursor]] };
};

function headText(row: InstanceWireRow, hasContext: boolean): string {
  return (
    `{"id":"${row.id}","sequence_id":"${row.sequence_id}","state":"${row.state}"` +
    `,"created_at":"${row.created_at}","updated_at":"${row.updated_at}"` +
    `${hasContext ? `,"context":${contextText(wholeRow(row))}` : ''}}`
  );
}

/** A sentinel row has a mark of the engine as its reference, and is not an output. */
function entryText(row: ListedOutput, output: string): string {
  return (
    `{"block_id":${JSON.stringify(row.block_id)},"attempt":${row.attempt}${iterationText(row)}` +
    `,"completed_at":"${row.created_at}"${output}` +
    (row.output_ref === null ? '' : `,"output_ref":${JSON.stringify(row.output_ref)}`) +
    `,"is_sentinel":${row.output_ref?.startsWith('__') === true}}`
  );
}
