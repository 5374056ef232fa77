/** Reads of events, with redacted payloads, and batches, which are split by the shards of the keys. */

import {
  EVENT_TAKERS_SHOWN_MAX,
  type EventReceipt,
  type ReceivedEvent,
} from '../../../schema/event.js';
import { eventKeyId } from '../../../src/base/ids.js';
import type { JsonValue } from '../../../src/base/json.js';
import { eventTenant } from '../../../src/base/tenancy.js';
import { checkCallersId } from '../../../src/core/creation-key.js';
import { redacted } from '../../../src/core/redaction.js';
import { type Filter, filtersOf, timeFilters } from '../../../src/db/reads/filters.js';
import { list } from '../../../src/db/reads/list.js';
import { lookup, rowOf } from '../../../src/db/reads/lookup.js';
import { orderBy } from '../../../src/db/reads/order.js';
import { columnsBut, type StoredRow, selected } from '../../../src/db/table.js';
import type { FrontRoom } from '../../../src/http/front-room.js';
import { jsonReply, listBy } from '../../../src/http/operation.js';
import type { Shards } from '../../runtime/shards.js';
import type { eventOperations } from '../room.js';
import { type EVENT_TAKES, EVENTS } from '../tables.js';

const EVENT_COLUMNS = columnsBut(EVENTS, 'key_id', 'seq', 'status', 'targets', 'fires');
type EventRow = StoredRow<typeof EVENTS, (typeof EVENT_COLUMNS)[number]> & {
  readonly status: string;
};

/** An event expires at its time, before its row is updated. */
const STATUS =
  "case when status = 'pending' and expires_at <= now() then 'expired' else status end";
const COLUMNS = `${selected(EVENT_COLUMNS)}, ${STATUS} as status`;

const BY_STATUS: Filter = {
  column: STATUS,
  type: 'text',
  // Without `coalesce`, the planner's estimate would make it sort.
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

const eventById = lookup<EventRow>(
  'read_event',
  `select ${COLUMNS} from events where id = $1::uuid`,
);

/** `EventTaker` records, oldest first. */
const takersOf = lookup<StoredRow<typeof EVENT_TAKES>>(
  'read_event_takers',
  'select instance_id, block_id, outcome, taken_at from event_takes where event_id = $1::uuid ' +
    `order by taken_at, instance_id limit ${EVENT_TAKERS_SHOWN_MAX}`,
);

/** `EventCancel` records. */
const cancelledBy = lookup<{ readonly instance_id: string }>(
  'read_event_cancels',
  "select instance_id, coalesce(outcome, 'pending') as outcome, taken_at as cancelled_at " +
    'from event_cancels where event_id = $1::uuid union ' +
    "select pending_id, 'pending', null from collected_cancels where event_id = $1::uuid " +
    `order by cancelled_at, instance_id limit ${EVENT_TAKERS_SHOWN_MAX}`,
);

export function openEventFront({ client }: { readonly client: Shards<typeof eventOperations> }) {
  const send = async (event: ReceivedEvent, tenant: string): Promise<EventReceipt> => {
    const key = eventKeyId(tenant, event.event_name, event.correlation_key ?? undefined);
    const { body } = await client.ask(client.shardOf(key), 'events.receive', tenant, '', event);
    return JSON.parse(body) as EventReceipt;
  };
  return {
    operations: {
      'events.list': listBy(eventList),
      'events.get': async ({ reads }, { params, tenant }) => {
        const row = await rowOf(reads, eventById, 'event', params.id, tenant);
        const [taken_by, cancelled] = await Promise.all([
          takersOf.rows(reads, row.id),
          cancelledBy.rows(reads, row.id),
        ]);
        return jsonReply(JSON.stringify({ ...shownEvent(row), taken_by, cancelled }));
      },
      'events.sendBatch': async (_deps, { tenant, body: { events } }) => {
        const owners = events.map(({ tenant_id, producer_event_id }, index) => {
          checkCallersId(producer_event_id, `events[${index}].producer_event_id`);
          return eventTenant(tenant, tenant_id, `events[${index}].`);
        });
        // After a failure the caller sends the whole batch again; stored events are then duplicates.
        const sent = events.map((event, index) => send(event, owners[index] as string));
        return jsonReply(JSON.stringify({ outcomes: await Promise.all(sent) }));
      },
    },
  } satisfies FrontRoom;
}

function shownEvent({ payload, ended_at, ...row }: EventRow): object {
  return {
    ...row,
    payload: redacted(JSON.parse(payload ?? 'null') as JsonValue),
    consumed_at: row.status === 'consumed' ? ended_at : null,
  };
}
