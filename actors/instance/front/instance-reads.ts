/**
 * Lists of instances. Each walks an index in its order (test/database/explain.test.ts): that of the
 * tenant, of the sequence or all versions of its name, or of the parent. Dead letters walk their
 * own index and fetch each instance by key. Filters without an index have a time limit.
 */

import type { StepPhase } from '../../../schema/execution.js';
import { COUNTED_INSTANCES_MAX } from '../../../schema/instance.js';
import type { OpenWait } from '../../../schema/instance-filter.js';
import { INSTANCE_STATES, type InstanceState } from '../../../schema/states.js';
import {
  contains,
  type Filter,
  type Filters,
  filtersOf,
  isAsked,
  type Narrowing,
  narrow,
  timeFilters,
} from '../../../src/db/reads/filters.js';
import { list, merged } from '../../../src/db/reads/list.js';
import { lookup, TRY_LATER } from '../../../src/db/reads/lookup.js';
import { orderBy } from '../../../src/db/reads/order.js';
import { Conditions, IS_PRESENT, type Query } from '../../../src/db/reads/query.js';
import type { Reader } from '../../../src/db/reads/reader.js';
import { selected } from '../../../src/db/table.js';
import { SEQUENCES } from '../../catalog/tables.js';
import { foldedSql } from '../core/failure-reason.js';
import { DEAD_LETTERS, INSTANCES } from '../tables.js';
import { INSTANCE_COLUMNS, type InstanceWireRow, instanceText } from '../wire-texts.js';

export interface Candidate {
  readonly id: string;
  readonly created_at: string;
  readonly state: InstanceState;
  readonly parent_instance_id: string | null;
}

/** The tenant is compared, too, so that the index by tenant and name is used. */
export const SEQUENCE_NAME: Filter = {
  column: 'i.sequence_id',
  type: 'text',
  holds: (sequence, name) =>
    `exists (select from sequences s where s.id = ${sequence} and s.tenant_id = i.tenant_id ` +
    `and s.name = ${name})`,
};

const WAITING_PHASES: Readonly<Record<Exclude<OpenWait, 'slot'>, readonly StepPhase[]>> = {
  task: ['task'],
  handler: ['run'],
  approval: ['gate'],
  sleep: ['sleep'],
  delay: ['delay'],
  retry: ['backoff'],
  child: ['child'],
  rate_limit: ['asking', 'limited'],
  event: ['event'],
};

/** Examines the stored open steps of instances that have not ended. */
const WAITING_FOR: Filter = {
  column: 'i.execution',
  type: 'text',
  holds: (execution, wait) =>
    "(i.state in ('scheduled', 'running', 'waiting') and case " +
    `when ${wait} = 'slot' then ${execution} ->> 'w' = '1' else ` +
    `exists (select from json_each(${execution} -> 'o') o where jsonb_exists(` +
    `'${JSON.stringify(WAITING_PHASES)}'::jsonb -> ${wait}, o.value ->> 'p')) end)`,
};

function failureMember(member: string): Filter {
  return {
    column: 'i.failure',
    type: 'text',
    holds: (failure, value) => `${failure} ->> '${member}' = ${value}`,
  };
}

/** Only failed instances: a retried one may keep its last failure. */
function failedAt(comparison: '<' | '>'): Filter {
  return {
    column: 'i.failure',
    type: 'timestamptz',
    holds: (failure, bound) =>
      `(i.state = 'failed' and (${failure} ->> 'at')::timestamptz ${comparison} ${bound})`,
  };
}

const CREATED = timeFilters(INSTANCES, 'created_at', 'i');
const UPDATED = timeFilters(INSTANCES, 'updated_at', 'i');

export const FILTERS = {
  ...filtersOf(
    INSTANCES,
    ['tenant_id', 'namespace', 'sequence_id', 'parent_instance_id', 'state', 'metadata'],
    'i',
  ),
  sequence_name: SEQUENCE_NAME,
  sequence: SEQUENCE_NAME,
  sequence_version: {
    column: 'i.sequence_id',
    type: 'integer',
    holds: (sequence, version) =>
      `exists (select from sequences s where s.id = ${sequence} and s.version = ${version})`,
  } satisfies Filter,
  /** Set by `withVersions`. */
  sequence_ids: { column: 'i.sequence_id', type: 'uuid' } satisfies Filter,
  ids: { column: 'i.id', type: 'uuid' } satisfies Filter,
  waiting_for: WAITING_FOR,
  created_after: CREATED.after,
  created_before: CREATED.before,
  updated_after: UPDATED.after,
  updated_before: UPDATED.before,
  failed_after: failedAt('>'),
  failed_before: failedAt('<'),
  failure: contains(
    'i.failure',
    (failure) => `array[${failure} ->> 'message', ${failure} ->> 'code']`,
  ),
  failure_code: failureMember('code'),
  failure_block: failureMember('block_id'),
  failure_handler: failureMember('handler'),
  failure_reason: {
    column: 'i.failure',
    type: 'text',
    holds: (failure, reason) => `${foldedSql(`${failure} ->> 'message'`)} = ${reason}`,
  } satisfies Filter,
};
export type InstanceFilter = Narrowing<keyof typeof FILTERS>;
/** Bulk changes may leave out completed and cancelled instances. */
export type CandidateFilter = InstanceFilter & { readonly is_open?: true | undefined };

const SHOWN = {
  columns: selected(INSTANCE_COLUMNS, 'i'),
  always: IS_PRESENT,
  toText: instanceText,
  cheaper:
    'name the tenant or a sequence_id, use a smaller offset, or ask /instances/dlq for failed ones',
};

const INSTANCE_WALK = {
  table: 'instances i',
  alias: 'i',
  along: ['parent_instance_id', 'sequence_id', 'sequence_ids', 'tenant_id'],
  found: ['ids'],
  within: ['created_after', 'created_before'],
} as const;

/** Versions of a name that are merged: planning so many index ranges takes milliseconds. */
const VERSIONS_MERGED_MAX = 50;
/** Matches no instance; an empty list would not filter. */
const NO_SEQUENCE = '00000000-0000-0000-0000-000000000000';

const OF_NAME = {
  ...filtersOf(SEQUENCES, ['tenant_id'], 's'),
  sequence_name: { column: 's.name', type: 'text' },
  sequence: { column: 's.name', type: 'text' },
  sequence_version: { column: 's.version', type: 'integer' },
} satisfies Filters<string>;

/**
 * Replaces a sequence name by the ids of its versions, so that no instance of another sequence is
 * read. The name stays without a tenant, with a more selective filter, or with too many versions.
 */
export async function withVersions<F extends InstanceFilter>(
  reads: Pick<Reader, 'rowsOf'>,
  filter: F,
): Promise<F> {
  const { tenant_id, parent_instance_id, sequence_id, ids } = filter;
  const isNamed = isAsked(filter.sequence_name) || isAsked(filter.sequence);
  const isFound = [parent_instance_id, sequence_id, ids].some(isAsked);
  if (!isNamed || isFound || !isAsked(tenant_id)) return filter;
  const conditions = new Conditions();
  narrow(conditions, OF_NAME, filter);
  const text =
    `select s.id from sequences s ${conditions.where} ` +
    conditions.page({ limit: VERSIONS_MERGED_MAX + 1 });
  const rows = await reads.rowsOf<{ readonly id: string }>(conditions.query(text), TRY_LATER);
  if (rows.length > VERSIONS_MERGED_MAX) return filter;
  const named = { sequence_name: undefined, sequence: undefined, sequence_version: undefined };
  const versions = rows.length === 0 ? [NO_SEQUENCE] : rows.map((row) => row.id);
  return { ...filter, ...named, sequence_ids: versions };
}

export const instanceList = list({
  ...SHOWN,
  from: 'instances i',
  by: FILTERS,
  walk: INSTANCE_WALK,
  order: orderBy(INSTANCES, ['created_at', 'id'], 'descending', 'i'),
});

const { state: _, ...FILTERS_OF_FAILED } = FILTERS;
const FAILED_CREATED = timeFilters(DEAD_LETTERS, 'created_at', 'd');
const FAILED_AT = timeFilters(DEAD_LETTERS, 'failed_at', 'd');

export const deadLetterList = list({
  ...SHOWN,
  columns: `${SHOWN.columns}, d.instance_id`,
  from: 'dead_letters d join instances i on i.id = d.instance_id',
  by: {
    ...FILTERS_OF_FAILED,
    ...filtersOf(DEAD_LETTERS, ['tenant_id'], 'd'),
    created_after: FAILED_CREATED.after,
    created_before: FAILED_CREATED.before,
  },
  walk: {
    table: 'dead_letters d',
    alias: 'd',
    along: ['tenant_id'],
    found: ['ids'],
    within: ['created_after', 'created_before'],
    // `offset 0` forces a lookup by key, so that a list reads only the instances that it walks.
    sieve: {
      join: (only) =>
        `left join lateral (select * from instances where id = d.instance_id and ${only} offset 0) i on true`,
      by: {
        ...filtersOf(DEAD_LETTERS, ['sequence_id', 'failure_code'], 'd'),
        sequence_ids: { column: 'd.sequence_id', type: 'uuid' },
        failure_block: { column: 'd.block_id', type: 'text' },
        failure_handler: { column: 'd.handler', type: 'text' },
        failure_reason: { column: 'd.folded_reason', type: 'text' },
        failed_after: FAILED_AT.after,
        failed_before: FAILED_AT.before,
      },
      isTold: '(d.sequence_id is not null)',
    },
  },
  order: orderBy(DEAD_LETTERS, ['created_at', 'instance_id'], 'descending', 'd'),
});

const COUNTED_ALONG = ['ids', ...INSTANCE_WALK.along] as const;

/**
 * Matching instances by state, of the newest ones that the most selective index has. One row beyond the bound shows that
 * there are more.
 */
export function countsQuery(filter: InstanceFilter): Query {
  const along = COUNTED_ALONG.find((name) => isAsked(filter[name]));
  const served = new Set<string | undefined>([along, ...INSTANCE_WALK.within]);
  const within: Record<string, Filter> = {};
  const others: Record<string, Filter> = {};
  for (const [name, one] of Object.entries<Filter>(FILTERS)) {
    (served.has(name) ? within : others)[name] = one;
  }
  const versions = along === 'sequence_ids' ? filter.sequence_ids : undefined;
  const walked = new Conditions();
  narrow(walked, within, versions ? { ...filter, sequence_ids: undefined } : filter);
  const matching = new Conditions(walked.values);
  narrow(matching, others, filter);
  matching.add(IS_PRESENT);
  const counts = INSTANCE_STATES.map(
    (state) => `count(*) filter (where i.state = '${state}' and i.matches)::integer as ${state}`,
  );
  const page = `order by i.created_at desc, i.id desc limit ${walked.param(COUNTED_INSTANCES_MAX + 1)}::bigint`;
  const from = versions
    ? merged('instances i', 'i', walked, page, FILTERS.sequence_ids, versions as readonly string[])
    : `instances i ${walked.where}`;
  // `offset 0` has the filters evaluated once for a row, and not for each state.
  return walked.query(
    `select count(*)::integer as looked_at, ${counts.join(', ')} from (` +
      `select i.state, ${matching.all} as matches from (` +
      `select * from ${from} ${page}) i offset 0) i`,
  );
}

export const childList = list({
  ...SHOWN,
  from: 'instances i',
  of: filtersOf(INSTANCES, ['parent_instance_id'], 'i'),
  by: filtersOf(INSTANCES, ['state'], 'i'),
  order: orderBy(INSTANCES, ['created_at', 'id'], 'ascending', 'i'),
  cheaper: 'ask for a smaller offset and limit',
});

export const instanceTenant = lookup<{ readonly tenant_id: string }>(
  'reads_instance_tenant',
  `select i.tenant_id from instances i where i.id = $1::uuid and ${IS_PRESENT}`,
);

export const instanceById = lookup<InstanceWireRow>(
  'reads_instance',
  `select ${SHOWN.columns} from instances i where i.id = $1::uuid and ${IS_PRESENT}`,
);

const CANDIDATES_ORDER = orderBy(INSTANCES, ['created_at', 'id'], 'descending', 'i');

/** Newest first, so that instances created meanwhile are not included. */
export const candidateList = list({
  columns: 'i.id, i.created_at, i.state, i.parent_instance_id',
  from: 'instances i',
  by: {
    ...FILTERS,
    is_open: {
      column: 'i.state',
      type: 'boolean',
      holds: (state, isOpen) => `(${state} not in ('completed', 'cancelled')) = ${isOpen}`,
    } satisfies Filter,
  },
  always: IS_PRESENT,
  walk: INSTANCE_WALK,
  order: CANDIDATES_ORDER,
  toText: (row: Candidate) => JSON.stringify(row),
  cheaper: 'narrow the filter with a sequence_id and repeat the call',
});

export function placeBehind(candidate: Candidate): string {
  return CANDIDATES_ORDER.cursorAfter(candidate);
}

export interface Candidates {
  readonly found: readonly Candidate[];
  /** The cursor after the last row read; undefined: there are no more. */
  readonly next: string | undefined;
}

/** Reads are bounded, so there may be more even when fewer than `limit` are found. */
export async function candidates(
  reads: Reader,
  filter: CandidateFilter,
  limit: number,
  cursor?: string | null,
): Promise<Candidates> {
  const query = { ...(await withVersions(reads, filter)), cursor: cursor ?? undefined, limit };
  const { texts, last, isCut } = await reads.batch<Candidate>(candidateList(query));
  const found = texts.map((text) => JSON.parse(text) as Candidate);
  const isEnd = !isCut && found.length < limit;
  return { found, next: isEnd || last === undefined ? undefined : placeBehind(last) };
}
