/** The newest audit entries of one instance. Rows are read backwards by their primary key. */

import type { AuditEntry } from '../../../schema/instance.js';
import { lookup, TRY_LATER } from '../../../src/db/reads/lookup.js';
import { orderOf } from '../../../src/db/reads/order.js';
import { Conditions, type PageBounds } from '../../../src/db/reads/query.js';
import type { PageRequest } from '../../../src/db/reads/reader.js';
import type { StoredRow } from '../../../src/db/table.js';
import type { AUDIT_LOG } from '../output-tables.js';

export interface AuditRow extends StoredRow<typeof AUDIT_LOG, 'tenant_id' | 'created_at'> {
  /** The text of a stored entry. */
  readonly entry: string;
}

/** Most entries are transitions, which are stored as `[id, from, to]`, or without their type; absent members may be null. */
const EVENT_TYPE = "coalesce(entry ->> 'event_type', 'state_transition')";
export const ENTRY_ID = "coalesce(entry ->> 'id', entry ->> 0)::uuid";
type StoredAuditEntry = Omit<AuditEntry, 'instance_id' | 'tenant_id' | 'created_at'>;
/** State transitions in a timeline, which are not paged. */
const TRANSITIONS_MAX = 1_000;

/**
 * At most `$2` entries of the instance `$1`. The entries of a unit are packed into one row, the
 * oldest ones into the row of the instance. Both are limited first, so that a long audit is read
 * from its end.
 */
function newest(condition: string): string {
  const entries = (from: string, key: string) =>
    `from ${from} cross join lateral json_array_elements(entries) with ordinality ` +
    `as e(entry, place) where ${key} = $1::uuid ${condition}`;
  return (
    'select seq, place::integer as place, tenant_id, entry, created_at ' +
    'from ((select seq, place, tenant_id, entry, created_at ' +
    `${entries('audit_log', 'instance_id')} order by seq desc, place desc limit $2::bigint) ` +
    'union all select seq, place, tenant_id, entry, created_at ' +
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
      const { from_state, to_state } = entryOf(row);
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

export function entryOf(row: AuditRow): StoredAuditEntry {
  const stored = JSON.parse(row.entry);
  const [id, from_state, to_state] = Array.isArray(stored) ? stored : [];
  const members = id === undefined ? stored : { id, from_state, to_state };
  return { event_type: 'state_transition', details: {}, ...members };
}

export function auditText(instanceId: string, row: AuditRow): string {
  const entry = entryOf(row);
  return JSON.stringify({
    id: entry.id,
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
