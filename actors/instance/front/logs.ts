/**
 * Log lines of steps. The lines of one unit are packed into one row. Those of an instance are few and sorted by their
 * times; those of a tenant are read in the order of their rows, newest first, and a page examines a bounded number.
 */

import type { LogQuery } from '../../../schema/log.js';
import {
  contains,
  type Filter,
  filtersOf,
  isAsked,
  narrow,
  timeFilters,
} from '../../../src/db/reads/filters.js';
import { list } from '../../../src/db/reads/list.js';
import { type Order, orderOf } from '../../../src/db/reads/order.js';
import { Conditions, isPresent, type Query } from '../../../src/db/reads/query.js';
import type { Page } from '../../../src/db/reads/reader.js';
import { SEQUENCES } from '../../catalog/tables.js';
import { STEP_LOGS } from '../output-tables.js';
import { INSTANCES } from '../tables.js';

const LINE_FILTERS = {
  block_id: { column: "l.line ->> 'block_id'", type: 'text' },
  level: { column: "l.line ->> 'level'", type: 'text' },
  text: contains("l.line ->> 'message'"),
} satisfies Record<string, Filter>;

const linesInOrder = (direction: 'ascending' | 'descending') =>
  list({
    columns: 'l.line, l.ts, l.id, l.place',
    from:
      "(select instance_id, id, line, line ->> 'ts' as ts, place::integer as place from step_logs " +
      'cross join lateral json_array_elements(entries) with ordinality as e(line, place)) l',
    of: filtersOf(STEP_LOGS, ['instance_id'], 'l'),
    by: LINE_FILTERS,
    order: orderOf(
      [
        { name: 'ts', type: 'text', column: 'l.ts collate "C"' },
        { name: 'id', type: 'uuid', column: 'l.id' },
        { name: 'place', type: 'integer', column: 'l.place' },
      ],
      direction,
    ),
    toText: (row: { readonly line: string }) => row.line,
    cheaper: 'go on by the cursor of a page, or ask for one block',
  });

/**
 * `StepLogLine` records, oldest first; equal times in the order of arrival. Workers set the times,
 * so no index has this order, and all lines of the instance are sorted.
 */
export const lineList = linesInOrder('ascending');
export const newestLineList = linesInOrder('descending');

/** Rows read for one page, and their stored size: some tens of milliseconds. */
const LOG_ROWS_MAX = 2_000;
const LOG_BYTES_MAX = 4 * 1024 * 1024;
export const NARROWER = 'ask for a shorter time';

const WRITTEN = timeFilters(STEP_LOGS, 'created_at', 'r');
const ROW_FILTERS = { since: WRITTEN.after, until: WRITTEN.before };
const OF_INSTANCE = {
  instance_id: { column: 'l.instance_id', type: 'uuid' } satisfies Filter,
  ...filtersOf(INSTANCES, ['namespace', 'sequence_id'], 'i'),
  sequence_name: { column: 's.name', type: 'text' } satisfies Filter,
  sequence: { column: 's.name', type: 'text' } satisfies Filter,
};

const FILTERS = { ...LINE_FILTERS, ...OF_INSTANCE };

const LINE_KEYS = [
  { name: 'created_at', type: 'timestamptz', column: 'l.created_at' },
  { name: 'id', type: 'uuid', column: 'l.id' },
  { name: 'place', type: 'integer', column: 'l.place' },
] as const;
const ORDER: Order = orderOf(LINE_KEYS, 'descending');

export interface LogRow {
  /** There are older rows that were not read. */
  readonly is_cut: boolean;
  /** Of the last row that was read; null if there was none. */
  readonly edge: string | null;
  readonly edge_id: string | null;
  /** Null if no line matches. */
  readonly line: string | null;
  readonly instance_id: string;
  readonly sequence_id: string;
  readonly sequence_name: string;
  readonly created_at: string;
  readonly id: string;
  readonly place: number;
}

/** There is always a row, which has no line if none matches. */
export function tenantLogQuery(query: LogQuery & { readonly tenant: string }): Query {
  const rows = new Conditions();
  rows.add(`r.tenant = ${rows.param(query.tenant)}::text`);
  narrow(rows, ROW_FILTERS, query);
  const lines = new Conditions(rows.values);
  if (query.cursor !== undefined) {
    ORDER.goOn(lines, query.cursor);
    const [at, id] = rows.values.slice(-LINE_KEYS.length);
    rows.add(`(r.created_at, r.id) <= (${rows.param(at)}::timestamptz, ${rows.param(id)}::uuid)`);
  }
  // Each row has a line, so that without filters no more rows are needed than lines.
  const isNarrowed = Object.keys(FILTERS).some((name) => isAsked(query[name as keyof LogQuery]));
  const most = rows.param(isNarrowed ? LOG_ROWS_MAX : query.limit);
  narrow(lines, FILTERS, query);
  lines.add(isPresent('i'));
  const limit = rows.param(query.limit);
  // The sum is of stored sizes, which are known without reading what is stored out of line.
  return rows.query(
    'with w as materialized (select r.*, row_number() over o as place, sum(pg_column_size(r.entries)) over o as bytes ' +
      `from (select r.id, r.instance_id, r.created_at, r.entries from step_logs r ${rows.where} ` +
      `order by r.created_at desc, r.id desc limit ${most}::bigint) r window o as (order by r.created_at desc, r.id desc)), ` +
      `r as (select * from w where place = 1 or bytes <= ${LOG_BYTES_MAX}) ` +
      'select n.is_cut, n.edge, n.edge_id, l.* from (select ' +
      `(select count(*) from w) > count(*) or count(*) = ${most}::bigint as is_cut, min(created_at) as edge, ` +
      '(array_agg(id order by created_at, id))[1] as edge_id from r) n ' +
      'left join (select l.line, l.instance_id, l.created_at, l.id, l.place, i.sequence_id, s.name as sequence_name ' +
      'from (select r.instance_id, r.created_at, r.id, e.line, e.place::integer as place from r ' +
      'cross join lateral json_array_elements(r.entries) with ordinality as e(line, place)) l ' +
      `join instances i on i.id = l.instance_id join ${SEQUENCES.name} s on s.id = i.sequence_id ` +
      `${lines.where} order by ${ORDER.text} limit ${limit}::bigint) l on true ` +
      'order by l.created_at desc, l.id desc, l.place desc',
  );
}

/** A page that ends at the bound has a cursor behind the last row that was read. */
export function tenantLogPage({ limit }: LogQuery, rows: readonly LogRow[]): Page {
  const found = rows.filter(({ line }) => line !== null);
  const texts = found.map(({ line, instance_id, sequence_id, sequence_name }) =>
    JSON.stringify({ instance_id, sequence_id, sequence_name, ...JSON.parse(line as string) }),
  );
  const isFull = found.length === limit;
  const [{ is_cut = false, edge = null, edge_id = null } = {}] = rows;
  const isWalked = !isFull && is_cut;
  const last = isFull ? found.at(-1) : { created_at: edge, id: edge_id, place: 0 };
  const hasNext = last !== undefined && (isFull || isWalked);
  return {
    text: `[${texts.join(',')}]`,
    count: texts.length,
    isCut: isWalked,
    isWalked,
    cursor: hasNext ? ORDER.cursorAfter(last) : undefined,
  };
}
