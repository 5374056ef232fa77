/** Reads of outputs, checkpoints and effects of instances. */

import { COLLECTED_BYTES_MAX } from '../../schema/blocks.js';
import type { JsonValue } from '../../src/base/json.js';
import { isProgressNote } from '../../src/core/loop-items.js';
import type { Plan } from '../../src/core/plan.js';
import type { KeptOutput } from '../../src/core/progress.js';
import type { StoredRow } from '../../src/db/table.js';
import { columnOf, ofIds, type Queries } from '../runtime/queries.js';
import { TASKS } from './old-tables.js';
import { type BLOCK_OUTPUTS, OUTPUT_ROWS } from './output-tables.js';
import { IS_REPORTED, IS_TOUCHED } from './task-tables.js';

export interface ItemsRequest {
  readonly instance: string;
  /** The common prefix of the items' iterations, and the position of the item in them, from 1. */
  readonly prefix: string;
  readonly depth: number;
  readonly blocks: readonly string[];
  /** Null: the last output of each item. Otherwise the last one of each block of these items. */
  readonly items: readonly number[] | null;
}

export interface ItemOutputRow
  extends StoredRow<typeof BLOCK_OUTPUTS, 'block_id' | 'iteration' | 'output' | 'output_ref'> {
  readonly item: number;
  /** False in a single row when the outputs exceed the limit of collected outputs. */
  readonly fits: boolean;
}

export type StoredOutput = StoredRow<
  typeof BLOCK_OUTPUTS,
  'block_id' | 'iteration' | 'attempt' | 'try' | 'output' | 'output_ref' | 'output_size'
>;

interface OutputRow {
  readonly block_id: string;
  readonly iteration: string;
  readonly output: string | null;
}

interface OutputTotals {
  readonly rows: number;
  readonly bytes: number;
}

interface BlocksRequest {
  readonly instance: string;
  readonly blocks: Iterable<string>;
}

function pairsOf(asks: readonly BlocksRequest[]): [number[], string[], string[]] {
  const pairs = asks.flatMap(({ instance, blocks }, at) =>
    [...blocks].map((block) => [at + 1, instance, block] as const),
  );
  return [pairs.map(([n]) => n), pairs.map(([, id]) => id), pairs.map(([, , block]) => block)];
}

function itemsOf(asks: readonly ItemsRequest[]): readonly unknown[] {
  return [
    asks.map((_, at) => at + 1),
    asks.map(({ instance }) => instance),
    asks.map(({ prefix }) => prefix),
    asks.map(({ depth }) => depth),
    asks.map(({ blocks }) => JSON.stringify(blocks)),
    asks.map(({ items }) => items && JSON.stringify(items)),
  ];
}

/** The rows of each pair of instance and block. `lateral` makes every pair a look-up by key. */
function ofPairs(columns: string, rows: string): string {
  return (
    `select w.n, ${columns} from unnest($1::int[], $2::uuid[], $3::text[]) ` +
    `as w(n, instance_id, block_id) cross join lateral (${rows}) o`
  );
}

/** Bytes; the limit is in characters. */
const COLLECTED_TEXT_MAX = 6 * COLLECTED_BYTES_MAX;

/** The item of the row; null without one, as for the answer of a person. */
const ITEM_OF_ITERATION = "substring(split_part(b.iteration, '.', w.depth) from '^[0-9]+$')::int";

/** Progress notes of a for_each are smaller, and are not outputs. */
const NOTE_BYTES_MAX = 4_096;

export const OUTPUT_SQL = {
  outputs: ofPairs(
    'w.block_id, o.iteration, o.output',
    `select iteration, output from ${OUTPUT_ROWS} b ` +
      'where instance_id = w.instance_id and block_id = w.block_id ' +
      "and (output_ref is null or output_ref = '__error__') order by created_at desc, id desc limit 1",
  ),
  allOutputs: ofIds(
    'o.block_id, o.iteration, o.output',
    `select distinct on (block_id) block_id, iteration, output from ${OUTPUT_ROWS} b ` +
      "where instance_id = w.id and (output_ref is null or output_ref = '__error__') " +
      'order by block_id, created_at desc, id desc',
  ),
  // For each item of a for_each: its last output of any block, or of each block if items are
  // requested. If they are too large together, a single row reports it.
  itemOutputs:
    'select w.n, o.item, o.block_id, o.iteration, o.output, o.output_ref, o.fits ' +
    'from unnest($1::int[], $2::uuid[], $3::text[], $4::int[], $5::jsonb[], $6::jsonb[]) ' +
    'as w(n, instance_id, prefix, depth, blocks, items) cross join lateral (' +
    'select l.*, row_number() over () as place, ' +
    `w.items is not null or sum(l.output_size) over () <= ${COLLECTED_TEXT_MAX} as fits from (` +
    'select distinct on (item, part) ' +
    `${ITEM_OF_ITERATION} as item, ` +
    'case when w.items is not null then b.block_id end as part, ' +
    'b.block_id, b.iteration, b.output, b.output_ref, b.output_size, b.created_at, b.id ' +
    `from ${OUTPUT_ROWS} b where b.instance_id = w.instance_id ` +
    'and b.block_id = any(array(select jsonb_array_elements_text(w.blocks))) ' +
    'and starts_with(b.iteration, w.prefix) and (w.items is null or w.items @> to_jsonb(' +
    `${ITEM_OF_ITERATION})) ` +
    "and (b.output_ref is null or w.items is not null and b.output_ref = '__error__') " +
    `and (w.items is not null or b.output is null or b.output_size > ${NOTE_BYTES_MAX} or ` +
    `b.output::text not like '{"_index":%,"_snapshot_ref":%') ` +
    'order by item, part, b.created_at desc, b.id desc) l where l.item is not null) o ' +
    'where o.fits or o.place = 1 order by w.n, o.created_at, o.id',
  outputTotals: ofPairs(
    'o.rows, o.bytes',
    `select count(*) as rows, coalesce(sum(output_size), 0) as bytes from ${OUTPUT_ROWS} b ` +
      'where instance_id = w.instance_id and block_id = w.block_id',
  ),
  outputRows:
    'select block_id, iteration, attempt, try, output, output_ref, output_size ' +
    `from ${OUTPUT_ROWS} b where instance_id = $1::uuid and block_id = any($2::text[]) ` +
    'order by created_at, id',
  endedBlocks: ofIds(
    'o.block_id',
    `select distinct block_id from ${OUTPUT_ROWS} b where instance_id = w.id ` +
      "and (output_ref is null or output_ref not in ('__error__', 'human_input'))",
  ),
  newestCheckpoint:
    'select id from checkpoints where instance_id = $1::uuid order by id desc limit 1',
  checkpoints: ofIds(
    'o.stored',
    'select count(*) as stored from checkpoints where instance_id = w.id',
  ),
  // The outcome is unknown after a silent worker, or a request without a response.
  doubtfulEffect:
    `select t.id from ${TASKS} t where t.instance_id = $1::uuid and t.state = 'failed' ` +
    `and ${IS_TOUCHED} and not ${IS_REPORTED} and ` +
    'coalesce((select r.state from effect_resolutions r ' +
    "where r.id = t.id), 'unknown') = 'unknown' " +
    'union all select e.id from effect_receipts e where e.instance_id = $1::uuid ' +
    "and e.state = 'unknown' and coalesce((select r.state from effect_resolutions r " +
    "where r.id = e.id), 'unknown') = 'unknown' limit 1",
} as const;

export function outputLoads(queries: Queries) {
  const sql = queries.of(OUTPUT_SQL);
  const allOutputs = sql.batch<string, OutputRow>('allOutputs', columnOf);
  const checkpoints = sql.batch<string, { stored: number }>('checkpoints', columnOf);
  const endedBlocks = sql.batch<string, { block_id: string }>('endedBlocks', columnOf);
  const itemOutputs = sql.batch<ItemsRequest, ItemOutputRow>('itemOutputs', itemsOf);
  const outputTotals = sql.batch<BlocksRequest, OutputTotals>('outputTotals', pairsOf);
  const outputs = sql.batch<BlocksRequest, OutputRow>('outputs', pairsOf);
  return {
    /** The latest outputs that the expressions of the plan can read. */
    async outputs(instance: string, refs: Plan['outputRefs']): Promise<Map<string, KeptOutput>> {
      if (refs !== 'all' && refs.size === 0) return new Map();
      const rows = await (refs === 'all'
        ? allOutputs.read(instance)
        : outputs.read({ instance, blocks: refs }));
      const kept = rows.map(({ block_id, iteration, output: text }) => {
        const output = text === null ? null : (JSON.parse(text) as JsonValue);
        return [block_id, { iteration, output }] as const;
      });
      return new Map(kept.filter(([, { output }]) => !isProgressNote(output)));
    },

    /** Oldest first. */
    itemOutputs: (ask: ItemsRequest): Promise<ItemOutputRow[]> => itemOutputs.read(ask),
    async outputTotals(instance: string, blocks: readonly string[]): Promise<OutputTotals> {
      const totals = await outputTotals.read({ instance, blocks });
      return {
        rows: totals.reduce((sum, { rows }) => sum + rows, 0),
        bytes: totals.reduce((sum, { bytes }) => sum + bytes, 0),
      };
    },

    /** Oldest first. */
    outputRows: (instance: string, blocks: readonly string[]): Promise<StoredOutput[]> =>
      sql.all('outputRows', [instance, blocks]),
    endedBlocks: async (instance: string): Promise<Set<string>> =>
      new Set((await endedBlocks.read(instance)).map((row) => row.block_id)),
    checkpoints: async (instance: string): Promise<number> =>
      (await checkpoints.read(instance))[0]?.stored ?? 0,
    newestCheckpoint: async (instance: string): Promise<string | undefined> =>
      (await sql.one<{ id: string }>('newestCheckpoint', [instance]))?.id,
    /** Whether the outcome of an effect is unknown and unresolved. */
    hasDoubtfulEffect: async (instance: string): Promise<boolean> =>
      (await sql.one('doubtfulEffect', [instance])) !== undefined,
  };
}
