/**
 * What the blocks of an instance gave, oldest first, and the timeline made of it. Reads only. Pages walk
 * `block_outputs_by_time` in its order (docs/decisions/0016-lists.md).
 */

import { filtersOf } from '../../../src/db/reads/filters.js';
import { list } from '../../../src/db/reads/list.js';
import { rowOf, TRY_LATER } from '../../../src/db/reads/lookup.js';
import { orderBy } from '../../../src/db/reads/order.js';
import { Conditions, type PageBounds, type Place } from '../../../src/db/reads/query.js';
import type { PageRequest, Reader } from '../../../src/db/reads/reader.js';
import { selected } from '../../../src/db/table.js';
import { type ListedOutput, OUTPUT_COLUMNS } from '../loads.js';
import { BLOCK_OUTPUTS } from '../output-tables.js';
import { contextText, type InstanceWireRow, iterationText, outputText } from '../wire-texts.js';
import { transitionList } from './audit-reads.js';
import { instanceById } from './instance-reads.js';

interface OfBlock {
  readonly block_id?: string | undefined;
  readonly iteration?: string | undefined;
}

export interface TimelineOptions extends OfBlock {
  readonly offset: number;
  readonly limit: number;
  readonly cursor?: string | undefined;
  readonly max_bytes?: number | undefined;
  /** False leaves out the payloads: outputs and the context. */
  readonly include_outputs: boolean;
}

/** Outputs handed to a stream at once: what a client that does not read can make the server hold. */
const STREAM_BATCH_BYTES = 1024 * 1024;

/** All rows, bookkeeping included. */
const EVERYTHING = {
  columns: selected(OUTPUT_COLUMNS),
  from: 'block_outputs',
  of: filtersOf(BLOCK_OUTPUTS, ['instance_id']),
  by: filtersOf(BLOCK_OUTPUTS, ['block_id', 'iteration']),
  order: orderBy(BLOCK_OUTPUTS, ['created_at', 'id']),
  cheaper: 'go on by the cursor of a page, or ask for one block',
};

const shownOutputs = list({
  ...EVERYTHING,
  always: "(output_ref is null or output_ref not in ('__in_progress__', '__retry__'))",
  toText: outputText,
});

/** A part of what an instance left. */
export interface OutputsAsked extends Partial<PageBounds>, OfBlock {
  readonly instance_id: string;
  readonly max_bytes?: number | undefined;
}

/** `BlockOutput` records without notes on unfinished tries (docs/reference/instances.md). */
export function outputList(asked: OutputsAsked): PageRequest<ListedOutput> {
  return shownOutputs(asked);
}

/**
 * `BlockOutput` records after a row, all kinds of them. The units of an instance are committed in
 * order, and the times and ids of their rows ascend: what becomes visible later lies after everything
 * that is visible now.
 *
 * @param row undefined: from the first
 */
export function outputsAfter(
  instanceId: string,
  row: Pick<ListedOutput, 'id' | 'created_at'> | undefined,
): PageRequest<ListedOutput> {
  const conditions = new Conditions();
  conditions.add(`instance_id = ${conditions.param(instanceId)}::uuid`);
  if (row !== undefined) {
    const place: Place = { id: row.id, at: row.created_at };
    conditions.add(`(created_at, id) > ${conditions.place(place)}`);
  }
  const { columns, from, order } = EVERYTHING;
  const rows = `select ${columns} from ${from} ${conditions.where} order by ${order.text}`;
  return {
    query: conditions.query(rows),
    toText: outputText,
    cheaper: TRY_LATER,
    bytesMax: STREAM_BATCH_BYTES,
  };
}

/** `TimelineEntry` records. */
export const entryList = list({
  ...EVERYTHING,
  toText: (row: ListedOutput) => entryText(row, `,"output":${row.output}`),
});

const bareEntryList = list({
  ...EVERYTHING,
  toText: (row: ListedOutput) => entryText(row, ''),
});

export interface TimelinePage {
  /** `Timeline`. */
  readonly text: string;
  /** The place behind the last entry; undefined: there are no more. */
  readonly cursor: string | undefined;
}

/** @throws EngineError 404 when the tenant ('' is any) has no such instance */
export async function timelineText(
  reads: Reader,
  id: string,
  tenant: string,
  { offset, limit, include_outputs: hasOutputs, ...options }: TimelineOptions,
): Promise<TimelinePage> {
  const row = await rowOf(reads, instanceById, 'instance', id, tenant);
  // One more than asked shows whether there are more.
  const asked = { ...options, instance_id: id, offset, limit: limit + 1 };
  const request = hasOutputs ? entryList(asked) : bareEntryList(asked);
  const entries = await reads.page({ ...request, rowsMax: limit });
  const transitions = await reads.page(transitionList(id));
  const text =
    `{"instance":${headText(row, hasOutputs)},"state_transitions":${transitions.text}` +
    `,"entries":${entries.text},"offset":${offset},"limit":${limit},"has_more":${entries.isCut}}`;
  return { text, cursor: entries.isCut ? entries.cursor : undefined };
}

function headText(row: InstanceWireRow, hasContext: boolean): string {
  return (
    `{"id":"${row.id}","sequence_id":"${row.sequence_id}","state":"${row.state}"` +
    `,"created_at":"${row.created_at}","updated_at":"${row.updated_at}"` +
    `${hasContext ? `,"context":${contextText(row)}` : ''}}`
  );
}

/** A row whose reference is a mark of the engine is no output of a block. */
function entryText(row: ListedOutput, output: string): string {
  return (
    `{"block_id":${JSON.stringify(row.block_id)},"attempt":${row.attempt}${iterationText(row)}` +
    `,"completed_at":"${row.created_at}"${output}` +
    (row.output_ref === null ? '' : `,"output_ref":${JSON.stringify(row.output_ref)}`) +
    `,"is_sentinel":${row.output_ref?.startsWith('__') === true}}`
  );
}
