/** The newest audit entries of one instance. Rows are read backwards by their primary key. */

import { lookup, TRY_LATER } from '../../../src/db/reads/lookup.js';
import { orderOf } from '../../../src/db/reads/order.js';
import { Conditions, type PageBounds } from '../../../src/db/reads/query.js';
import type { PageRequest } from '../../../src/db/reads/reader.js';
import type { StoredRow } from '../../../src/db/table.js';
import { entryIn } from '../core/audit-entry.js';
import type { AUDIT_LOG } from '../output-tables.js';

export interface AuditRow extends StoredRow<typeof AUDIT_LOG, 'tenant_id' | 'created_at'> {
  readonly id: string;
  /** The text of a stored entry. */
  readonly entry: string;
}

/** Of a stored entry: see `entryText`. */
const EVENT_TYPE = "coalesce(entry ->> 'event_type', 'state_transition')";

/** The `entry`s of a column, each with its `place` from 1, and the id of the first one. @param entries their column */
export function entriesOf(entries: string): string {
  const first = `coalesce(${entries} -> 0 ->> 'id', ${entries} -> 0 ->> 0)`;
  return (
    // Without `offset 0` it is read again for every entry, which takes the square of their number.
    `cross join lateral (select ${first} as first_id offset 0) f ` +
    `cross join lateral json_array_elements(${entries}) with ordinality as e(entry, place)`
  );
}

/** Its own id, or the one that follows from that of the first entry (`entryText`). */
export const ENTRY_ID =
  "coalesce(entry ->> 'id', case when entry ->> 2 is not null then entry ->> 0 end, " +
  'overlay(first_id placing to_hex(32767 + place) from 20 for 4))::uuid';

/** State transitions in a timeline, which are not paged. */
const TRANSITIONS_MAX = 1_000;

/**
 * At most `$2` entries of the instance `$1`. The entries of a unit are packed into one row, the
 * oldest ones into the row of the instance. Both are limited first, so that a long audit is read
 * from its end.
 */
function newest(condition: string): string {
  const entries = (from: string, key: string) =>
    `from ${from} ${entriesOf('entries')} where ${key} = $1::uuid ${condition}`;
  return (
    `select seq, place::integer as place, ${ENTRY_ID} as id, tenant_id, entry, created_at ` +
    'from ((select seq, place, tenant_id, entry, first_id, created_at ' +
    `${entries('audit_log', 'instance_id')} order by seq desc, place desc limit $2::bigint) ` +
    'union all select seq, place, tenant_id, entry, first_id, created_at ' +
    `${entries('(select id, 0 as seq, tenant_id, created_at, creation_audit as entries from instances) i', 'id')}` +
    ') audit order by seq desc, place desc limit $2::bigint'
  );
}

const ENTRIES_ORDER = orderOf(
  (['seq', 'place'] as const).map((name) => ({ name, type: 'integer', column: name })),
  'descending',
);

export function auditList(
  instanceId: string,
  { limit, cursor }: Pick<PageBounds, 'cursor' | 'limit'>,
): PageRequest<AuditRow> {
  const place = new Conditions([instanceId, limit]);
  if (cursor !== undefined) ENTRIES_ORDER.goOn(place, cursor);
  return {
    query: place.query(newest(place.isEmpty ? '' : `and ${place.all}`)),
    toText: (row) => auditText(instanceId, row),
    cheaper: TRY_LATER,
    cursorAfter: ENTRIES_ORDER.cursorAfter,
  };
}

/** The newest `StateTransition` records, oldest first. */
export function transitionList(instanceId: string): PageRequest<AuditRow> {
  const transitions = newest(`and ${EVENT_TYPE} = 'state_transition'`);
  const text = `select * from (${transitions}) newest order by seq, place`;
  return {
    query: { text, values: [instanceId, TRANSITIONS_MAX] },
    toText: (row) => {
      const { from_state, to_state } = entryIn(row.entry);
      const [from, to] = [from_state ?? undefined, to_state ?? undefined];
      return JSON.stringify({ from_state: from, to_state: to, at: row.created_at });
    },
    cheaper: TRY_LATER,
  };
}

/** State transitions and retried attempts, newest first. */
export const recentMoves = lookup<AuditRow>(
  'reads_recent_moves',
  newest(`and ${EVENT_TYPE} in ('state_transition', 'step_retried')`),
);

export function auditText(instanceId: string, row: AuditRow): string {
  const entry = entryIn(row.entry);
  return JSON.stringify({
    id: row.id,
    instance_id: instanceId,
    tenant_id: row.tenant_id,
    event_type: entry.event_type,
    from_state: entry.from_state ?? undefined,
    to_state: entry.to_state ?? undefined,
    block_id: entry.block_id ?? undefined,
    details: entry.details,
    failure: entry.failure,
    created_at: row.created_at,
  });
}
