/**
 * The statements over instances and what belongs to them. Pure, so that their plans can be tested.
 *
 * Shapes at 100,000 rows (test/integration/explain.test.ts): the lists of a tenant and of a sequence
 * walk `instances_by_tenant` or `instances_by_sequence` in their order and stop at the limit;
 * children walk `instances_by_parent`; dead letters walk `dead_letters_by_tenant` and fetch each
 * instance by its key. Outputs are fetched by the primary key of their table and sorted, all of one
 * instance: an index in their order would cost every step a second insert. Audit rows come by their
 * primary key, backwards, and only the entries within a row are sorted. Filters that no index serves
 * (state, namespace, metadata, or no tenant at all) may read much, and have a time limit.
 */

import type { InstanceState } from '../../core/states.js';
import { Conditions, IS_PRESENT, type PageBounds, type Place, type Query } from './query.js';

/** What instances must have; absent and null mean any. */
export interface InstanceFilter {
  readonly tenant?: string | null | undefined;
  readonly namespace?: string | null | undefined;
  readonly sequenceId?: string | null | undefined;
  /** An empty list is no condition. */
  readonly states?: readonly InstanceState[] | null | undefined;
  /** Top-level keys of `metadata` whose text equals the value. */
  readonly metadata?: Readonly<Record<string, string>> | null | undefined;
}

/** An instance that a change of many may concern. */
export interface Candidate extends Place {
  readonly state: InstanceState;
}

/** All that `instanceText` needs; the evaluator's snapshot is the actor's alone. */
const INSTANCE_COLUMNS =
  'i.id, i.sequence_id, i.tenant_id, i.namespace, i.state, i.next_fire_at, i.priority, ' +
  'i.timezone, i.metadata, i.data, i.config, i.context_audit, i.runtime, i.concurrency_key, ' +
  'i.max_concurrency, i.idempotency_key, i.parent_instance_id, i.created_at, i.updated_at';

const OUTPUT_COLUMNS =
  'id, instance_id, block_id, output, output_ref, output_size, attempt, created_at';

export const INSTANCE_SQL = {
  tenant: `select i.tenant_id from instances i where i.id = $1::uuid and ${IS_PRESENT}`,
  instance: `select ${INSTANCE_COLUMNS} from instances i where i.id = $1::uuid and ${IS_PRESENT}`,
} as const;

/**
 * The newest entries of one instance's audit (`$1`), at most `$2` of them: those that actors pack
 * into one row per unit, and, oldest of all, those that the instance's own row carries. Limited
 * before they are joined, so that a long audit is read from its end.
 */
function newestAudit(condition: string): string {
  const entries = (from: string, key: string) =>
    `from ${from} cross join lateral json_array_elements(entries) with ordinality ` +
    `as e(entry, place) where ${key} = $1::uuid ${condition}`;
  return (
    'from ((select seq, place, tenant_id, entry, created_at ' +
    `${entries('audit_log', 'instance_id')} order by seq desc, place desc limit $2::bigint) ` +
    'union all select 0, place, tenant_id, entry, created_at ' +
    `${entries('(select id, tenant_id, created_at, creation_audit as entries from instances) i', 'id')}` +
    ') audit'
  );
}

/** Newest first. */
export function instanceListQuery(filter: InstanceFilter, bounds: PageBounds): Query {
  const conditions = new Conditions();
  filterInstances(conditions, filter, 'i.tenant_id');
  return conditions.query(
    `select ${INSTANCE_COLUMNS} from instances i ${conditions.where} ` +
      `order by i.created_at desc, i.id desc ${conditions.page(bounds)}`,
  );
}

/** Newest first. Rows of `dead_letters` stand for the state `failed`. */
export function deadLetterQuery(filter: Omit<InstanceFilter, 'states'>, bounds: PageBounds): Query {
  const conditions = new Conditions();
  filterInstances(conditions, filter, 'd.tenant_id');
  return conditions.query(
    `select ${INSTANCE_COLUMNS} from dead_letters d join instances i on i.id = d.instance_id ` +
      `${conditions.where} order by d.created_at desc, d.instance_id desc ` +
      conditions.page(bounds),
  );
}

/** Oldest first. */
export function childrenQuery(parentId: string, bounds: PageBounds): Query {
  const conditions = new Conditions();
  conditions.add(`i.parent_instance_id = ${conditions.param(parentId)}::uuid`);
  conditions.add(IS_PRESENT);
  return conditions.query(
    `select ${INSTANCE_COLUMNS} from instances i ${conditions.where} ` +
      `order by i.created_at, i.id ${conditions.page(bounds)}`,
  );
}

/** Oldest first. Notes on a try in progress, or on one to come, are for the timeline alone. */
export function outputsQuery(
  instanceId: string,
  bounds: PageBounds,
  shows: 'outputs' | 'everything',
): Query {
  const conditions = new Conditions();
  conditions.add(`instance_id = ${conditions.param(instanceId)}::uuid`);
  if (shows === 'outputs') {
    conditions.add("(output_ref is null or output_ref not in ('__in_progress__', '__retry__'))");
  }
  return conditions.query(
    `select ${OUTPUT_COLUMNS} from block_outputs ${conditions.where} ` +
      `order by created_at, id ${conditions.page(bounds)}`,
  );
}

/**
 * Every row after that place, bookkeeping included, oldest first. The units of an instance are
 * committed in order, and the times and ids of their rows ascend: what becomes visible later lies
 * after everything that is visible now.
 */
export function laterOutputsQuery(instanceId: string, after: Place | undefined): Query {
  const conditions = new Conditions();
  conditions.add(`instance_id = ${conditions.param(instanceId)}::uuid`);
  if (after !== undefined) conditions.add(`(created_at, id) > ${conditions.place(after)}`);
  return conditions.query(
    `select ${OUTPUT_COLUMNS} from block_outputs ${conditions.where} order by created_at, id`,
  );
}

/** The newest entries of the audit, newest first: no more rows are read than hold them. */
export function auditQuery(instanceId: string, entriesMax: number): Query {
  return {
    text:
      `select tenant_id, entry, created_at ${newestAudit('')} ` +
      'order by seq desc, place desc limit $2::bigint',
    values: [instanceId, entriesMax],
  };
}

/** The newest changes of state, oldest first. */
export function transitionsQuery(instanceId: string, entriesMax: number): Query {
  return {
    text:
      'select entry, created_at from (' +
      'select seq, place, entry, created_at ' +
      `${newestAudit("and entry ->> 'event_type' = 'state_transition'")} ` +
      'order by seq desc, place desc limit $2::bigint' +
      ') newest order by seq, place',
    values: [instanceId, entriesMax],
  };
}

/** What a change of many may concern, newest first: those that come after `after` in this order. */
export function candidatesQuery(
  filter: InstanceFilter,
  after: Place | undefined,
  limit: number,
  terminal: 'left out' | 'included' = 'left out',
): Query {
  const conditions = new Conditions();
  filterInstances(conditions, filter, 'i.tenant_id');
  if (terminal === 'left out') conditions.add("i.state not in ('completed', 'cancelled')");
  if (after !== undefined) conditions.add(`(i.created_at, i.id) < ${conditions.place(after)}`);
  return conditions.query(
    `select i.id, i.created_at::text as at, i.state from instances i ${conditions.where} ` +
      `order by i.created_at desc, i.id desc limit ${conditions.param(limit)}::bigint`,
  );
}

function filterInstances(
  conditions: Conditions,
  filter: InstanceFilter,
  tenantColumn: 'i.tenant_id' | 'd.tenant_id',
): void {
  const { tenant, namespace, sequenceId, states, metadata } = filter;
  if (tenant) conditions.add(`${tenantColumn} = ${conditions.param(tenant)}::text`);
  if (namespace) conditions.add(`i.namespace = ${conditions.param(namespace)}::text`);
  if (sequenceId) conditions.add(`i.sequence_id = ${conditions.param(sequenceId)}::uuid`);
  if (states && states.length > 0) {
    conditions.add(`i.state = any(${conditions.param(states)}::text[])`);
  }
  conditions.add(IS_PRESENT);
  for (const [key, value] of Object.entries(metadata ?? {})) {
    const place = conditions.param(key);
    conditions.add(`i.metadata ->> ${place}::text = ${conditions.param(value)}::text`);
  }
}
