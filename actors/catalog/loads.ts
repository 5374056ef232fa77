/** Statements of sequences. */

import { INT32_MAX } from '../../schema/common.js';
import type { StoredRow } from '../../src/db/table.js';
import type { Queries } from '../runtime/queries.js';
import type { NamedId, SequenceName } from '../runtime/sequence-name.js';
import type { SEQUENCES } from './tables.js';

export type SequenceRow = StoredRow<
  typeof SEQUENCES,
  'id' | 'tenant_id' | 'namespace' | 'name' | 'version' | 'deprecated' | 'definition'
>;

export interface InstanceCounts {
  readonly live: number;
  readonly failed: number;
  /** Completed or cancelled. */
  readonly ended: number;
}

export const CATALOG_SQL = {
  sequence:
    'select id, tenant_id, namespace, name, version, deprecated, definition from sequences ' +
    'where id = $1::uuid',
  // Names never resolve to sequences on hold, and to candidates of unpromoted releases only if there is no other.
  namedSequence:
    'select w.n, o.id, o.is_on_hold from unnest($1::text[], $2::text[], $3::text[], $4::int[]) ' +
    'with ordinality as w(tenant_id, namespace, name, version, n) cross join lateral (' +
    'select s.id, (w.version is null and s.hold) as is_on_hold from sequences s ' +
    'where s.tenant_id = w.tenant_id and s.namespace = w.namespace ' +
    `and s.name = w.name and s.version between coalesce(w.version, -${INT32_MAX}) ` +
    `and coalesce(w.version, ${INT32_MAX}) and (w.version is not null or not s.deprecated) ` +
    "order by is_on_hold, coalesce((select r.state <> 'promoted' from releases r " +
    'where r.candidate_sequence_id = s.id order by r.created_at desc, r.id desc limit 1), false), ' +
    's.version desc limit 1) o',
  instanceCounts:
    "select count(*) filter (where state in ('completed', 'cancelled')) as ended, " +
    "count(*) filter (where state = 'failed') as failed, " +
    "count(*) filter (where state not in ('completed', 'cancelled', 'failed')) as live " +
    'from instances where sequence_id = $1::uuid',
} as const;

export function catalogLoads(queries: Queries) {
  const sql = queries.of(CATALOG_SQL);
  const namedSequence = sql.batch<SequenceName, { id: string; is_on_hold: boolean }>(
    'namedSequence',
    (names) => [
      names.map(({ tenant }) => tenant),
      names.map(({ namespace }) => namespace),
      names.map(({ name }) => name),
      names.map(({ version }) => version),
    ],
  );
  return {
    sequence: (id: string) => sql.one<SequenceRow>('sequence', [id]),
    async namedSequence(name: SequenceName): Promise<NamedId> {
      const [found] = await namedSequence.read(name);
      return found?.is_on_hold ? null : found?.id;
    },
    async instanceCounts(sequence: string): Promise<InstanceCounts> {
      return (await sql.one<InstanceCounts>('instanceCounts', [sequence])) as InstanceCounts;
    },
  };
}

export type CatalogLoads = ReturnType<typeof catalogLoads>;
