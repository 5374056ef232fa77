/** Failed instances by cause (docs/operate/statistics.md), and what those of one cause have in common. */

import {
  FAILURE_GROUPS_MAX,
  FAILURE_INTERVALS,
  FAILURE_RUNS_MAX,
  FAILURE_VERSIONS_MAX,
  FAILURES_COMPARED_MAX,
  FAILURES_LOOKED_AT_MAX,
  type FailureAttributes,
  type FailureGroup,
  type FailureGroups,
  VERSIONS_COMPARED_MAX,
} from '../../../schema/statistics.js';
import { isoTime, type UnixMs } from '../../../src/base/time.js';
import {
  type Filter,
  filtersOf,
  isAsked,
  type Narrowing,
  narrow,
  timeFilters,
} from '../../../src/db/reads/filters.js';
import { Conditions, isPresent, type Query } from '../../../src/db/reads/query.js';
import { jsonReply, listQuery, type Operation } from '../../../src/http/operation.js';
import { SEQUENCES } from '../../catalog/tables.js';
import { DEAD_LETTERS } from '../../instance/tables.js';
import { type AttributeRow, attributesOf } from '../core/failure-attributes.js';

/** Each aggregated row has the number of rows read. */
export interface LookedAt {
  readonly looked_at: number;
}

type CountedGroup = Omit<FailureGroup, 'counts' | 'new' | 'runs'> & {
  /** JSON: failures by interval. */
  readonly parts: string;
  /** Of the same reason. */
  readonly has_earlier: boolean;
  readonly finished: number | null;
  readonly sampled: number;
};
/** @property oldest the oldest failure that was read */
type FailureRow = LookedAt & { readonly oldest: string | null } & (
    | CountedGroup
    | { readonly count: null }
  );

export const failures: Operation<'instances.failures'> = async (deps, call) => {
  const filter = listQuery(call);
  // There is always a row, which has no count if there are no groups.
  const rows = await deps.reads.rowsOf<FailureRow>(
    failuresQuery(filter, deps.now()),
    'name the tenant',
  );
  const { looked_at: found = 0, oldest = null } = rows[0] ?? {};
  const isWhole = found <= FAILURES_LOOKED_AT_MAX;
  const after = filter.failed_after;
  const groups = rows.flatMap(({ looked_at: _, oldest: __, ...row }) =>
    row.count === null ? [] : [failureGroup(row, after === undefined, isWhole)],
  );
  const reaches = after !== undefined && oldest !== null && Date.parse(oldest) <= Date.parse(after);
  const answer: FailureGroups = {
    groups: groups.slice(0, FAILURE_GROUPS_MAX),
    looked_at: Math.min(found, FAILURES_LOOKED_AT_MAX),
    complete: (isWhole || reaches) && groups.length <= FAILURE_GROUPS_MAX,
  };
  return jsonReply(JSON.stringify(answer));
};

/** @param isWhole whether all failures before the period were read */
function failureGroup(
  { parts, has_earlier, finished, sampled: failed, ...group }: CountedGroup,
  isWithoutPeriod: boolean,
  isWhole: boolean,
): FailureGroup {
  if (isWithoutPeriod) return { ...group, counts: [], new: null, runs: null };
  const byInterval = JSON.parse(parts) as Readonly<Record<string, number>>;
  return {
    ...group,
    counts: Array.from({ length: FAILURE_INTERVALS }, (_, at) => byInterval[at + 1] ?? 0),
    new: has_earlier || isWhole ? !has_earlier : null,
    runs: finished === null ? null : { finished, failed },
  };
}

export const failureAttributes: Operation<'instances.failureAttributes'> = async (
  { reads },
  call,
) => {
  const filter = listQuery(call);
  type Failed = AttributeRow &
    LookedAt &
    Readonly<Record<'tenant_id' | 'namespace' | 'name', string>>;
  const found = await reads.rowsOf<Failed>(failedOfCauseQuery(filter), 'name the tenant');
  const failed = found.slice(0, FAILURES_COMPARED_MAX);
  const sought = new Map(
    failed.map(({ tenant_id, namespace, name }) => {
      const place = [tenant_id, namespace, name] as const;
      return [JSON.stringify(place), place];
    }),
  );
  const names = [...sought.values()];
  const columnOf = (at: 0 | 1 | 2) => names.map((place) => place[at]);
  const blocks = [...new Set(failed.flatMap(({ block }) => block ?? []))];
  const query = runsOfNamesQuery(
    [columnOf(0), columnOf(1), columnOf(2)],
    blocks,
    filter.failed_after,
  );
  const runs =
    names.length === 0 ? [] : await reads.rowsOf<AttributeRow>(query, 'name a later failed_after');
  const answer: FailureAttributes = {
    failed: failed.length,
    runs: runs.length,
    complete:
      found.length <= FAILURES_COMPARED_MAX && (found[0]?.looked_at ?? 0) <= FAILURES_LOOKED_AT_MAX,
    attributes: attributesOf(failed.map(attributesIn), runs),
  };
  return jsonReply(JSON.stringify(answer));
};

function attributesIn(row: AttributeRow): AttributeRow {
  const { version, block, attempt, has_task, queue, worker, worker_version, metadata } = row;
  return { version, block, attempt, has_task, queue, worker, worker_version, metadata };
}

const FAILURE_FILTERS = filtersOf(DEAD_LETTERS, ['namespace'], 'd');
const NAME_FILTERS = {
  ...filtersOf(SEQUENCES, ['tenant_id', 'namespace']),
  sequence_name: { column: 'sequences.name', type: 'text' } satisfies Filter,
};
type FailureFilter = Narrowing<keyof typeof FAILURE_FILTERS | keyof typeof NAME_FILTERS> & {
  readonly failed_after?: string | undefined;
  readonly failed_before?: string | undefined;
};
const FAILED_AT = timeFilters(DEAD_LETTERS, 'failed_at', 'd');
const FAILED_BETWEEN = { failed_after: FAILED_AT.after, failed_before: FAILED_AT.before };
const GROUPED_BY = 'namespace, sequence_id, failure_code, block_id, handler, folded_reason';
/** The interval of failures as long before the period as the period is. */
const BEFORE = 0;

/** Failures of a period, and of as long before it; one row beyond the bound shows that there are more. */
export function failuresQuery(filter: FailureFilter, now: UnixMs): Query {
  const walked = new Conditions();
  narrow(walked, filtersOf(DEAD_LETTERS, ['tenant_id']), filter);
  const { failed_after: after, failed_before: until } = filter;
  const to = until === undefined ? now : Date.parse(until);
  const from = after === undefined ? undefined : Date.parse(after);
  const timeOf = (ms: UnixMs) => `${walked.param(isoTime(ms))}::timestamptz`;
  if (until !== undefined) walked.add(`failed_at < ${timeOf(to)}`);
  let part = '1';
  let runs =
    'select null::uuid as sequence_id, null::timestamptz as since, 0 as finished where false';
  if (from !== undefined) {
    walked.add(`failed_at > ${timeOf(Math.max(0, from - Math.max(0, to - from)))}`);
    const since = timeOf(from);
    part = intervalOf('failed_at', since, timeOf(Math.max(to, from + FAILURE_INTERVALS)));
    runs = runsOf('walked', since);
  }
  const conditions = new Conditions(walked.values);
  narrow(conditions, FAILURE_FILTERS, filter);
  conditions.add(`d.failure_code is not null and ${isPresent('d')}`);
  if (isAsked(filter.sequence_name))
    conditions.add(`d.sequence_id = any(${named(walked, filter)})`);
  return walked.query(
    `with walked as materialized (select *, row_number() over () as place from (` +
      `select instance_id, created_at, failed_at, ${part} as part, ${GROUPED_BY} ` +
      `from dead_letters ${walked.where} ` +
      // The order of the index, also without a tenant; the last tenants are then read.
      `order by tenant_id desc, dead_letters.failed_at desc, instance_id desc limit ${FAILURES_LOOKED_AT_MAX + 1}) w), ` +
      'read as materialized (select count(*)::integer as looked_at, min(failed_at) as oldest, ' +
      'array_agg(instance_id order by place) as by_place from walked), ' +
      `runs as materialized (${runs}), ` +
      `parts as (select count(*)::integer as count, min(failed_at) as first_at, ` +
      'max(failed_at) as last_at, min(place) as place, ' +
      'count(*) filter (where created_at >= counted_since) ' +
      `as sampled, part, ${GROUPED_BY} from (select * from walked limit ${FAILURES_LOOKED_AT_MAX}) d ` +
      'left join (select sequence_id as counted, since as counted_since from runs) r on counted = d.sequence_id ' +
      `${conditions.where} group by part, ${GROUPED_BY}), ` +
      `marked as (select *, bool_or(part = ${BEFORE}) over (partition by failure_code, handler, ` +
      'folded_reason) as has_earlier from parts), ' +
      `groups as materialized (select sum(count) filter (where part > ${BEFORE})::integer as count, ` +
      `min(first_at) filter (where part > ${BEFORE}) as first_at, max(last_at) as last_at, ` +
      'min(place) as place, sum(sampled)::integer as sampled, ' +
      'bool_or(has_earlier) as has_earlier, ' +
      `json_object_agg(part, count) as parts, ${GROUPED_BY} from marked group by ${GROUPED_BY} ` +
      `having max(part) > ${BEFORE} order by count desc, last_at desc limit ${FAILURE_GROUPS_MAX + 1}) ` +
      'select looked_at, oldest, g.* from read left join (' +
      'select g.namespace, g.sequence_id, s.name as sequence_name, s.version, g.block_id, g.handler, ' +
      'g.failure_code as code, g.folded_reason as reason, g.count, g.first_at, g.last_at, ' +
      'd.instance_id as example_instance_id, d.reason as example_message, g.parts, ' +
      'g.has_earlier, g.sampled, (select r.finished::integer from runs r ' +
      'where r.sequence_id = g.sequence_id) as finished from groups g ' +
      'cross join lateral (select name, version from sequences where id = g.sequence_id offset 0) s ' +
      'cross join lateral (select instance_id, reason from dead_letters ' +
      'where instance_id = ((select by_place from read))[g.place] offset 0) d' +
      ') g on true order by g.count desc, g.last_at desc',
  );
}

type CauseFilter = FailureFilter & {
  readonly failure_code: string;
  readonly failure_reason: string;
  readonly failure_handler?: string | undefined;
};

const CAUSE_FILTERS = {
  ...FAILURE_FILTERS,
  failure_code: { column: 'd.failure_code', type: 'text' },
  failure_reason: { column: 'd.folded_reason', type: 'text' },
  failure_handler: { column: 'd.handler', type: 'text' },
} satisfies Readonly<Record<string, Filter>>;

/**
 * The last task of an instance at the blocks, or at any. The version is that with which its worker polls now.
 * @param blocks SQL of an array; at any block if it is null
 */
const attributesOfTask = (instance: string, blocks: string) =>
  `left join lateral (select true as has_task, worker_id, queue_name from worker_tasks w ` +
  `where w.instance_id = ${instance} and (${blocks} is null or w.block_id = any(${blocks})) ` +
  'order by w.created_at desc limit 1) w on true ' +
  "left join lateral (select version from workers p where p.tenant_id in (i.tenant_id, '') " +
  'and p.worker_id = w.worker_id order by last_seen_at desc limit 1) p on true';

const ATTRIBUTES =
  "s.name || ' ' || s.version as version, w.has_task, w.queue_name as queue, w.worker_id as worker, " +
  'p.version as worker_version, i.metadata';

/** Newest first; one row beyond the bound shows that there are more. */
export function failedOfCauseQuery(filter: CauseFilter): Query {
  const walked = new Conditions();
  narrow(walked, { ...filtersOf(DEAD_LETTERS, ['tenant_id'], 'd'), ...FAILED_BETWEEN }, filter);
  const conditions = new Conditions(walked.values);
  narrow(conditions, CAUSE_FILTERS, filter);
  conditions.add(isPresent('d'));
  if (isAsked(filter.sequence_name))
    conditions.add(`d.sequence_id = any(${named(walked, filter)})`);
  return walked.query(
    `with walked as materialized (select instance_id, sequence_id, namespace, failure_code, ` +
      `folded_reason, handler, block_id, failed_at from dead_letters d ${walked.where} ` +
      `order by tenant_id desc, failed_at desc, instance_id desc limit ${FAILURES_LOOKED_AT_MAX + 1}), ` +
      `picked as materialized (select * from walked d ${conditions.where} limit ${FAILURES_COMPARED_MAX + 1}) ` +
      `select ${ATTRIBUTES}, d.block_id as block, (i.failure ->> 'attempt')::integer as attempt, ` +
      's.tenant_id, s.namespace, s.name, (select count(*)::integer from walked) as looked_at from picked d ' +
      'cross join lateral (select tenant_id, metadata, failure from instances where id = d.instance_id offset 0) i ' +
      'cross join lateral (select tenant_id, namespace, name, version from sequences where id = d.sequence_id offset 0) s ' +
      attributesOfTask('d.instance_id', 'nullif(array[d.block_id], array[null::text])'),
  );
}

/**
 * The newest runs of all versions of these names.
 * @param names arrays of tenants, namespaces and names
 * @param blocks whose tasks are compared; those of all blocks if there are none
 */
export function runsOfNamesQuery(
  names: readonly [tenants: string[], namespaces: string[], names: string[]],
  blocks: readonly string[],
  since: string | undefined,
): Query {
  const conditions = new Conditions();
  const sought = names.map((texts) => `${conditions.param(texts)}::text[]`).join(', ');
  const created =
    since === undefined ? '' : `and created_at > ${conditions.param(since)}::timestamptz `;
  const at = `${conditions.param(blocks.length === 0 ? null : blocks)}::text[]`;
  return conditions.query(
    'with versions as materialized (select s.id, s.name, s.version from ' +
      `unnest(${sought}) n(tenant_id, namespace, name) join sequences s using (tenant_id, namespace, name) ` +
      `order by s.version desc limit ${VERSIONS_COMPARED_MAX}), ` +
      'newest as materialized (select r.id, v.name, v.version from versions v cross join lateral (' +
      `select id, created_at from instances where sequence_id = v.id ${created}` +
      `order by created_at desc, id desc limit ${FAILURES_COMPARED_MAX}) r ` +
      `order by r.created_at desc limit ${FAILURES_COMPARED_MAX}) ` +
      `select ${ATTRIBUTES}, null as block, null::integer as attempt from newest s ` +
      'cross join lateral (select id, tenant_id, metadata from instances where id = s.id offset 0) i ' +
      attributesOfTask('i.id', at),
  );
}

/** From 1 on; `BEFORE` lies before the first one. */
function intervalOf(at: string, from: string, to: string): string {
  const secs = (time: string) => `extract(epoch from ${time})::double precision`;
  const place = `width_bucket(${secs(at)}, ${secs(from)}, ${secs(to)}, ${FAILURE_INTERVALS})`;
  return `case when ${at} > ${from} then least(${place}, ${FAILURE_INTERVALS}) else ${BEFORE} end`;
}

/** The ids of the versions of a name, for an `any`. */
function named({ values }: Conditions, filter: FailureFilter): string {
  const conditions = new Conditions(values);
  narrow(conditions, NAME_FILTERS, filter);
  return `array(select id from sequences ${conditions.where})`;
}

/** The newest runs of the versions with the most failures: how many have finished, and since when they were created. */
function runsOf(failed: string, since: string): string {
  return (
    `select v.sequence_id, r.since, r.finished from (select sequence_id from ${failed} ` +
    `where part > ${BEFORE} group by sequence_id order by count(*) desc ` +
    `limit ${FAILURE_VERSIONS_MAX}) v cross join lateral (` +
    "select count(*) filter (where state in ('completed', 'failed', 'cancelled')) as finished, " +
    'min(created_at) as since from (select state, created_at from instances i ' +
    `where i.sequence_id = v.sequence_id and i.created_at > ${since} ` +
    `order by created_at desc, id desc limit ${FAILURE_RUNS_MAX}) i) r`
  );
}
