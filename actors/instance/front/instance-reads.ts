/**
 * Lists of instances. Reads only.
 *
 * Shapes at 100,000 rows (test/database/explain.test.ts): the lists of a tenant and of a sequence
 * walk `instances_by_tenant` or `instances_by_sequence` in their order and stop at the limit, and so does the list of a
 * name, over the stretches of its versions;
 * children walk `instances_by_parent`; dead letters walk `dead_letters_by_tenant` and fetch each
 * instance by its key. Filters that no index serves (state, namespace, metadata, times of change, failures, or no tenant at all)
 * may read much, and have a time limit.
 */

import type { StepPhase } from '../../../schema/execution.js';
import type { OpenWait } from '../../../schema/instance-filter.js';
import type { InstanceState } from '../../../schema/states.js';
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
import { list } from '../../../src/db/reads/list.js';
import { lookup, TRY_LATER } from '../../../src/db/reads/lookup.js';
import { orderBy } from '../../../src/db/reads/order.js';
import { Conditions, IS_PRESENT } from '../../../src/db/reads/query.js';
import type { Reader } from '../../../src/db/reads/reader.js';
import { selected } from '../../../src/db/table.js';
import { SEQUENCES } from '../../catalog/tables.js';
import { foldedSql } from '../core/failure-reason.js';
import { DEAD_LETTERS, INSTANCES } from '../tables.js';
import { INSTANCE_COLUMNS, type InstanceWireRow, instanceText } from '../wire-texts.js';

/** An instance that a change of many may concern. */
export interface Candidate {
  readonly id: string;
  readonly created_at: string;
  readonly state: InstanceState;
  readonly parent_instance_id: string | null;
}

/**
 * Those whose sequence has the name, of an instance `i`. The tenants are compared so that a tenant's
 * sequences are found by its names.
 */
export const SEQUENCE_NAME: Filter = {
  column: 'i.sequence_id',
  type: 'text',
  holds: (sequence, name) =>
    `exists (select from sequences s where s.id = ${sequence} and s.tenant_id = i.tenant_id ` +
    `and s.name = ${name})`,
};

const SEQUENCE_VERSION: Filter = {
  column: 'i.sequence_id',
  type: 'integer',
  holds: (sequence, version) =>
    `exists (select from sequences s where s.id = ${sequence} and s.version = ${version})`,
};

const IDS: Filter = { column: 'i.id', type: 'uuid' };

/** The phases of open steps that stand for each of them (`StepPhase`). */
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
const PHASES = JSON.stringify(WAITING_PHASES);

/** Those that wait for it now, by what is stored of their open steps; of ended ones nothing is looked into. */
const WAITING_FOR: Filter = {
  column: 'i.execution',
  type: 'text',
  holds: (execution, wait) =>
    "(i.state in ('scheduled', 'running', 'waiting') and case " +
    `when ${wait} = 'slot' then ${execution} ->> 'w' = '1' else ` +
    `exists (select from json_each(${execution} -> 'o') o where ` +
    `jsonb_exists('${PHASES}'::jsonb -> ${wait}, o.value ->> 'p')) end)`,
};

/** Those that failed for a reason that says so. */
const FAILURE = contains(
  'i.failure',
  (failure) => `array[${failure} ->> 'message', ${failure} ->> 'code']`,
);

/** Those whose failure has this member. */
function failureMember(member: string): Filter {
  return {
    column: 'i.failure',
    type: 'text',
    holds: (failure, value) => `${failure} ->> '${member}' = ${value}`,
  };
}

/** Those whose message is folded to this reason. */
const FAILURE_REASON: Filter = {
  column: 'i.failure',
  type: 'text',
  holds: (failure, reason) => `${foldedSql(`${failure} ->> 'message'`)} = ${reason}`,
};

const CREATED = timeFilters(INSTANCES, 'created_at', 'i');
const UPDATED = timeFilters(INSTANCES, 'updated_at', 'i');

/** By what lists of instances, and changes of many, can be narrowed. */
export const FILTERS = {
  ...filtersOf(
    INSTANCES,
    ['tenant_id', 'namespace', 'sequence_id', 'parent_instance_id', 'state', 'metadata'],
    'i',
  ),
  sequence_name: SEQUENCE_NAME,
  sequence: SEQUENCE_NAME,
  sequence_version: SEQUENCE_VERSION,
  /** The versions of a name, once they have been looked up. */
  sequence_ids: { column: 'i.sequence_id', type: 'uuid' } satisfies Filter,
  ids: IDS,
  waiting_for: WAITING_FOR,
  created_after: CREATED.after,
  created_before: CREATED.before,
  updated_after: UPDATED.after,
  updated_before: UPDATED.before,
  failure: FAILURE,
  failure_code: failureMember('code'),
  failure_block: failureMember('block_id'),
  failure_handler: failureMember('handler'),
  failure_reason: FAILURE_REASON,
};
export type InstanceFilter = Narrowing<keyof typeof FILTERS>;
/** Of changes of many, which may leave out what has ended for good. */
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

/** The versions of a name whose instances are merged: so many stretches of an index are planned within milliseconds. */
const VERSIONS_MERGED_MAX = 50;

/** An empty list would leave everything. */
const NO_SEQUENCE = '00000000-0000-0000-0000-000000000000';

const OF_NAME = {
  ...filtersOf(SEQUENCES, ['tenant_id'], 's'),
  sequence_name: { column: 's.name', type: 'text' },
  sequence: { column: 's.name', type: 'text' },
  sequence_version: { column: 's.version', type: 'integer' },
} satisfies Filters<string>;

/**
 * The same selection with the ids of its versions instead of a sequence's name, so that its instances are found
 * without looking at those of others. A name of more versions than are merged stays, and so does one of which
 * less is left by another filter, or of no tenant.
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

/** `TaskInstance` records, newest first. */
export const instanceList = list({
  ...SHOWN,
  from: 'instances i',
  by: FILTERS,
  walk: INSTANCE_WALK,
  order: orderBy(INSTANCES, ['created_at', 'id'], 'descending', 'i'),
});

const { state: _, ...FILTERS_OF_FAILED } = FILTERS;
const FAILED_CREATED = timeFilters(DEAD_LETTERS, 'created_at', 'd');

/** The failed ones among them, for which rows of `dead_letters` stand. */
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
    // Each by its key, whatever the planner thinks of so many: a list reads no more than it walks.
    sieve: {
      join: (only) =>
        `left join lateral (select * from instances where id = d.instance_id and ${only} offset 0) i on true`,
      by: {
        ...filtersOf(DEAD_LETTERS, ['sequence_id', 'failure_code'], 'd'),
        sequence_ids: { column: 'd.sequence_id', type: 'uuid' },
        failure_block: { column: 'd.block_id', type: 'text' },
        failure_handler: { column: 'd.handler', type: 'text' },
        failure_reason: { column: 'd.folded_reason', type: 'text' },
      },
      isTold: '(d.sequence_id is not null)',
    },
  },
  order: orderBy(DEAD_LETTERS, ['created_at', 'instance_id'], 'descending', 'd'),
});

/** The instances that one started, oldest first. */
export const childList = list({
  ...SHOWN,
  from: 'instances i',
  of: filtersOf(INSTANCES, ['parent_instance_id'], 'i'),
  by: filtersOf(INSTANCES, ['state'], 'i'),
  order: orderBy(INSTANCES, ['created_at', 'id'], 'ascending', 'i'),
  cheaper: 'ask for a smaller offset and limit',
});

/** Whose instance it is. */
export const instanceTenant = lookup<{ readonly tenant_id: string }>(
  'reads_instance_tenant',
  `select i.tenant_id from instances i where i.id = $1::uuid and ${IS_PRESENT}`,
);

export const instanceById = lookup<InstanceWireRow>(
  'reads_instance',
  `select ${SHOWN.columns} from instances i where i.id = $1::uuid and ${IS_PRESENT}`,
);

/** Those that have not ended for good. */
const OPEN: Filter = {
  column: 'i.state',
  type: 'boolean',
  holds: (state, isOpen) => `(${state} not in ('completed', 'cancelled')) = ${isOpen}`,
};

const CANDIDATES_ORDER = orderBy(INSTANCES, ['created_at', 'id'], 'descending', 'i');

/** What a change of many may concern, newest first, so that instances created meanwhile are not chased. */
export const candidateList = list({
  columns: 'i.id, i.created_at, i.state, i.parent_instance_id',
  from: 'instances i',
  by: { ...FILTERS, is_open: OPEN },
  always: IS_PRESENT,
  walk: INSTANCE_WALK,
  order: CANDIDATES_ORDER,
  toText: (row: Candidate) => JSON.stringify(row),
  cheaper: 'narrow the filter with a sequence_id and repeat the call',
});

/** The place behind one of them, for the next look. */
export function placeBehind(candidate: Candidate): string {
  return CANDIDATES_ORDER.cursorAfter(candidate);
}

export interface Candidates {
  readonly found: readonly Candidate[];
  /** The place behind what was looked at; undefined: there is nothing. */
  readonly next: string | undefined;
}

/**
 * At most `limit` of them, behind a place. Fewer do not mean that there are no more: no look reads more rows
 * than a page of a list.
 */
export async function candidates(
  reads: Reader,
  filter: CandidateFilter,
  limit: number,
  cursor?: string | null,
): Promise<Candidates> {
  const asked = { ...(await withVersions(reads, filter)), cursor: cursor ?? undefined, limit };
  const { texts, last, isCut } = await reads.batch<Candidate>(candidateList(asked));
  const found = texts.map((text) => JSON.parse(text) as Candidate);
  const isEnd = !isCut && found.length < limit;
  return { found, next: isEnd || last === undefined ? undefined : placeBehind(last) };
}
