/**
 * Lists and lookups of events, as JSON text with redacted payloads. An event expires by its time, before its row is
 * updated.
 */

import { EVENT_TAKERS_SHOWN_MAX } from '../../../schema/event.js';
import type { JsonValue } from '../../../src/base/json.js';
import { redacted } from '../../../src/core/redaction.js';
import { type Filter, filtersOf, timeFilters } from '../../../src/db/reads/filters.js';
import { list } from '../../../src/db/reads/list.js';
import { lookup } from '../../../src/db/reads/lookup.js';
import { orderBy } from '../../../src/db/reads/order.js';
import { columnsBut, type StoredRow, selected } from '../../../src/db/table.js';
import { type EVENT_TAKES, EVENTS } from '../tables.js';
import type { FiringEvent } from './firing.js';

const EVENT_COLUMNS = columnsBut(EVENTS, 'key_id', 'seq', 'status', 'targets', 'fires');
type EventRow = StoredRow<typeof EVENTS, (typeof EVENT_COLUMNS)[number]> & {
  readonly status: string;
};

const STATUS =
  "case when status = 'pending' and expires_at <= now() then 'expired' else status end";
const COLUMNS = `${selected(EVENT_COLUMNS)}, ${STATUS} as status`;

const BY_STATUS: Filter = {
  column: STATUS,
  type: 'text',
  // Because of its estimate for a comparison, the planner would sort.
  holds: (status, wanted) => `coalesce(${status} = ${wanted}, false)`,
};
const CREATED = timeFilters(EVENTS, 'created_at');

/** `StoredEvent` records, newest first. */
export const eventList = list({
  columns: COLUMNS,
  from: 'events',
  by: {
    ...filtersOf(EVENTS, ['tenant_id', 'event_name', 'correlation_key', 'producer_event_id']),
    status: BY_STATUS,
    created_after: CREATED.after,
    created_before: CREATED.before,
  },
  walk: {
    table: 'events',
    alias: 'events',
    along: ['tenant_id'],
    within: ['created_after', 'created_before'],
  },
  order: orderBy(EVENTS, ['created_at', 'id'], 'descending'),
  toText: (row: EventRow) => JSON.stringify(shownEvent(row)),
});

export const eventById = lookup<EventRow>(
  'read_event',
  `select ${COLUMNS} from events where id = $1::uuid`,
);

/** Events with triggers to fire, oldest first, after a time and an id; `$3` at most. */
export const firingEvents = lookup<FiringEvent>(
  'read_firing_events',
  'select id, key_id, tenant_id, event_name, correlation_key, payload, fires, created_at ' +
    'from events where fires is not null and (created_at, id) > ($1::timestamptz, $2::uuid) ' +
    'order by created_at, id limit $3::int',
);

/** `EventTaker` records, oldest first. */
const takersOf = lookup<StoredRow<typeof EVENT_TAKES>>(
  'read_event_takers',
  'select instance_id, block_id, outcome, taken_at from event_takes where event_id = $1::uuid ' +
    `order by taken_at, instance_id limit ${EVENT_TAKERS_SHOWN_MAX}`,
);

/** `EventDetails`. */
export async function eventText(
  reads: Parameters<typeof takersOf.rows>[0],
  row: EventRow,
): Promise<string> {
  const taken_by = await takersOf.rows(reads, row.id);
  return JSON.stringify({ ...shownEvent(row), taken_by });
}

function shownEvent({ payload, ended_at, ...row }: EventRow): object {
  return {
    ...row,
    payload: redacted(JSON.parse(payload ?? 'null') as JsonValue),
    consumed_at: row.status === 'consumed' ? ended_at : null,
  };
}
