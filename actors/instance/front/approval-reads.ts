/**
 * What people are asked, and what became of it. Reads only. The lists walk `approvals_open_by_tenant` or
 * `approvals_open` in their order; instances are fetched by their keys, for their metadata.
 */

import { APPROVALS_COUNTED_MAX } from '../../../schema/approval.js';
import { LIMITS } from '../../../src/base/limits.js';
import { filtersOf, type Narrowing, narrow } from '../../../src/db/reads/filters.js';
import { list } from '../../../src/db/reads/list.js';
import { lookup } from '../../../src/db/reads/lookup.js';
import { orderBy } from '../../../src/db/reads/order.js';
import { Conditions, IS_PRESENT, type Query } from '../../../src/db/reads/query.js';
import type { Reader } from '../../../src/db/reads/reader.js';
import { columnsBut, type StoredRow, selected } from '../../../src/db/table.js';
import { APPROVALS } from '../output-tables.js';
import { SEQUENCE_NAME } from './instance-reads.js';

const COLUMNS = columnsBut(APPROVALS, 'iteration', 'outcome', 'closed_at', 'answer');
type OpenRow = StoredRow<typeof APPROVALS, (typeof COLUMNS)[number]> & {
  readonly sequence_name: string | null;
  readonly metadata: string;
};

const FILTERS = {
  ...filtersOf(APPROVALS, ['tenant_id', 'namespace', 'sequence_id'], 'a'),
  sequence_name: SEQUENCE_NAME,
  sequence: SEQUENCE_NAME,
};

/** `offset 0` keeps the instances look-ups by key, one for each approval. */
const INSTANCE =
  '(select tenant_id, sequence_id, fence, metadata from instances ' +
  'where id = a.instance_id offset 0) i';
/** What the indexes of the open ones have. */
const IN_INDEX = 'a.outcome is null';
/** An instance that is elsewhere, or on its way, is not answered here. */
const IS_OPEN = `${IN_INDEX} and i.fence is null and ${IS_PRESENT}`;
const ORDER = orderBy(APPROVALS, ['waiting_since', 'id'], 'ascending', 'a');
const CHEAPER = 'name the tenant, or use a smaller offset';

/** `Approval` records, oldest first. */
export const approvalList = list({
  columns:
    `${selected(COLUMNS, 'a')}, i.metadata, ` +
    '(select s.name from sequences s where s.id = a.sequence_id) as sequence_name',
  from: `approvals a cross join lateral ${INSTANCE}`,
  by: FILTERS,
  always: IS_OPEN,
  walk: {
    table: 'approvals a',
    alias: 'a',
    along: ['tenant_id'],
    isOfAll: true,
    only: IN_INDEX,
    within: [],
    join: `left join lateral ${INSTANCE} on true`,
  },
  order: ORDER,
  toText: approvalText,
  cheaper: CHEAPER,
});

/** How many the list has on all pages, as far as they are counted. */
export async function approvalCount(
  reads: Reader,
  asked: Narrowing<keyof typeof FILTERS>,
): Promise<number> {
  const [row] = await reads.rowsOf<{ readonly total: number }>(approvalCountQuery(asked), CHEAPER);
  return row?.total ?? 0;
}

export function approvalCountQuery(asked: Narrowing<keyof typeof FILTERS>): Query {
  const { tenant_id, ...others } = FILTERS;
  const walked = new Conditions();
  walked.add(IN_INDEX);
  narrow(walked, { tenant_id }, asked);
  const conditions = new Conditions(walked.values);
  narrow(conditions, others, asked);
  conditions.add(IS_OPEN);
  return conditions.query(
    'select count(*)::float8 as total from (select 1 from ' +
      `(select * from approvals a ${walked.where} limit ${LIMITS.rowsWalkedMax}) a cross join lateral ${INSTANCE} ${conditions.where} ` +
      `limit ${APPROVALS_COUNTED_MAX}) a`,
  );
}

const KNOWN = columnsBut(APPROVALS, 'iteration', 'sequence_id', 'waiting_since', 'path');
export type KnownApproval = StoredRow<typeof APPROVALS, (typeof KNOWN)[number]>;

/** Open or closed. */
export const approvalById = lookup<KnownApproval>(
  'reads_approval',
  `select ${selected(KNOWN, 'a')} from approvals a join instances i on i.id = a.instance_id ` +
    `where a.id = $1::uuid and ${IS_PRESENT}`,
);

/** What an instance asks, as it is put. */
export const promptsOf = lookup<StoredRow<typeof APPROVALS, 'id' | 'prompt'>>(
  'reads_approval_prompts',
  'select id, prompt from approvals where instance_id = $1::uuid and outcome is null ' +
    'order by waiting_since, id limit $2::bigint',
);

/** The gate's own members are JSON that the engine wrote, and are spliced in as they are. */
function approvalText({ gate, metadata, ...row }: OpenRow): string {
  return `${JSON.stringify(row).slice(0, -1)},${gate.trim().slice(1, -1)},"metadata":${metadata}}`;
}
