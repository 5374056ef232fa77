/**
 * Lists of instances. Reads only.
 *
 * Shapes at 100,000 rows (test/integration/explain.test.ts): the lists of a tenant and of a sequence
 * walk `instances_by_tenant` or `instances_by_sequence` in their order and stop at the limit;
 * children walk `instances_by_parent`; dead letters walk `dead_letters_by_tenant` and fetch each
 * instance by its key. Filters that no index serves (state, namespace, metadata, or no tenant at all)
 * may read much, and have a time limit.
 */

import type { InstanceState } from '../../core/states.js';
import { selected } from '../tables.js';
import { filtersOf, type Narrowing, narrow } from './filters.js';
import { list } from './list.js';
import { lookup } from './lookup.js';
import { Conditions, IS_PRESENT, type Place, type Query } from './query.js';
import type { Reader } from './reader.js';
import { INSTANCE_COLUMNS, type InstanceWireRow, instanceText } from './wire.js';

/** An instance that a change of many may concern. */
export interface Candidate extends Place {
  readonly state: InstanceState;
}

/** By what lists of instances, and changes of many, can be narrowed. */
const FILTERS = filtersOf(
  'instances',
  ['tenant_id', 'namespace', 'sequence_id', 'state', 'metadata'],
  'i',
);
export type InstanceFilter = Narrowing<keyof typeof FILTERS>;

const INSTANCES = {
  columns: selected(INSTANCE_COLUMNS, 'i'),
  always: IS_PRESENT,
  toText: instanceText,
  cheaper:
    'name the tenant or a sequence_id, use a smaller offset, or ask /instances/dlq for failed ones',
};

/** `TaskInstance` records, newest first. */
export const instanceList = list({
  ...INSTANCES,
  from: 'instances i',
  by: FILTERS,
  order: 'i.created_at desc, i.id desc',
});

const { state: _, ...FILTERS_OF_FAILED } = FILTERS;

/** The failed ones among them, for which rows of `dead_letters` stand. */
export const deadLetterList = list({
  ...INSTANCES,
  from: 'dead_letters d join instances i on i.id = d.instance_id',
  by: { ...FILTERS_OF_FAILED, ...filtersOf('dead_letters', ['tenant_id'], 'd') },
  order: 'd.created_at desc, d.instance_id desc',
});

/** The instances that one started, oldest first. */
export const childList = list({
  ...INSTANCES,
  from: 'instances i',
  of: filtersOf('instances', ['parent_instance_id'], 'i'),
  order: 'i.created_at, i.id',
  cheaper: 'ask for a smaller offset and limit',
});

/** Whose instance it is. */
export const instanceTenant = lookup<{ readonly tenant_id: string }>(
  'reads_instance_tenant',
  `select i.tenant_id from instances i where i.id = $1::uuid and ${IS_PRESENT}`,
);

export const instanceById = lookup<InstanceWireRow>(
  'reads_instance',
  `select ${INSTANCES.columns} from instances i where i.id = $1::uuid and ${IS_PRESENT}`,
);

/** What a change of many may concern, newest first, after `after`. */
export function candidates(
  reads: Reader,
  ...asked: Parameters<typeof candidatesQuery>
): Promise<Candidate[]> {
  const cheaper = 'narrow the filter with a sequence_id and repeat the call';
  return reads.rowsOf<Candidate>(candidatesQuery(...asked), cheaper);
}

export function candidatesQuery(
  filter: InstanceFilter,
  after: Place | undefined,
  limit: number,
  terminal: 'left out' | 'included' = 'left out',
): Query {
  const conditions = new Conditions();
  narrow(conditions, FILTERS, filter);
  conditions.add(IS_PRESENT);
  if (terminal === 'left out') conditions.add("i.state not in ('completed', 'cancelled')");
  if (after !== undefined) conditions.add(`(i.created_at, i.id) < ${conditions.place(after)}`);
  return conditions.query(
    `select i.id, i.created_at::text as at, i.state from instances i ${conditions.where} ` +
      `order by i.created_at desc, i.id desc ${conditions.page({ limit })}`,
  );
}
